import type { OwnerRole, TokenScope } from '#contracts'

export type OwnerRow = { id: string; name: string; role: OwnerRole; created_at: Date }

export type TokenRow = {
  id: string
  owner_id: string
  name: string
  scopes: TokenScope[]
  created_at: Date
  last_used_at: Date | null
  revoked_at: Date | null
}

export type NewToken = Pick<TokenRow, 'id' | 'owner_id' | 'name' | 'scopes' | 'created_at'> & { hash: Uint8Array }

/** A credential as it is checked on every request. */
export type CredentialRow = {
  id: string
  owner_id: string
  owner_name: string
  role: OwnerRole
  scopes: TokenScope[]
  last_used_at: Date | null
}

/** Owners and what they sign in with. Secrets are known by their SHA-256 alone. */
export interface IdentityStore {
  /** False where the name is taken. */
  insertOwner(owner: OwnerRow): Promise<boolean>
  owner(ownerId: string): Promise<OwnerRow | null>
  ownerByName(name: string): Promise<OwnerRow | null>
  owners(): Promise<OwnerRow[]>
  insertToken(token: NewToken): Promise<void>
  token(ownerId: string, tokenId: string): Promise<TokenRow | null>
  tokens(ownerId: string): Promise<TokenRow[]>
  /** False where there is no such token, or it is revoked already. */
  revokeToken(input: { ownerId: string; tokenId: string; at: Date }): Promise<boolean>
  /** Not revoked; null where unknown. */
  credentialOfToken(hash: Uint8Array): Promise<CredentialRow | null>
  touchToken(tokenId: string, at: Date): Promise<void>
  insertSigninLink(link: { id: string; owner_id: string; hash: Uint8Array; created_at: Date; expires_at: Date }): Promise<void>
  /** Uses the link up and answers its owner; null where it is unknown, used up or expired. */
  useSigninLink(hash: Uint8Array, at: Date): Promise<string | null>
  insertSession(session: { id: string; owner_id: string; hash: Uint8Array; created_at: Date; expires_at: Date }): Promise<void>
  /** Neither expired nor revoked at the given time; `scopes` are left to the role. */
  credentialOfSession(hash: Uint8Array, at: Date): Promise<Omit<CredentialRow, 'scopes' | 'last_used_at'> | null>
  revokeSession(sessionId: string, at: Date): Promise<void>
  hasLiveSession(at: Date): Promise<boolean>
  /** Removes links and sessions that ended before the given time. */
  removeEnded(before: Date): Promise<void>
}
