import type { OwnerRole, TokenScope } from '#contracts'

/** Who stands behind a request, and what the credential allows. */
export type Principal = {
  ownerId: string
  ownerName: string
  role: OwnerRole
  scopes: ReadonlySet<TokenScope>
  credential: { kind: 'session' | 'token'; id: string }
}

/** What a signed-in session may do: all that its owner may (decision 35). */
export function sessionScopes(role: OwnerRole): ReadonlySet<TokenScope> {
  return new Set<TokenScope>(role === 'admin' ? ['read', 'write', 'approve', 'admin'] : ['read', 'write', 'approve'])
}

/** A scope that is granted counts only while the owner's role allows it. */
export function allows(principal: Principal, scope: TokenScope): boolean {
  return principal.scopes.has(scope) && (scope !== 'admin' || principal.role === 'admin')
}
