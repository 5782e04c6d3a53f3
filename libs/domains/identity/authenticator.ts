import type { Clock } from '#kernel/ports/clock'
import type { IdentityStore } from './ports.ts'
import { sessionScopes } from './principal.ts'
import type { Principal } from './principal.ts'
import { hashSecret } from './secrets.ts'

/** A token's last use is noted at most this often, so that reading does not mean writing. */
const TOUCH_EVERY_MS = 60_000

/** Tells who a credential belongs to; asked on every request, so that a revocation counts at once. */
export class Authenticator {
  readonly #store: IdentityStore
  readonly #clock: Clock

  constructor({ store, clock }: { store: IdentityStore; clock: Clock }) {
    this.#store = store
    this.#clock = clock
  }

  /** null for an unknown or revoked token. */
  async byToken(token: string): Promise<Principal | null> {
    const found = await this.#store.credentialOfToken(hashSecret(token))
    if (!found) return null
    const now = this.#clock.now()
    if (!found.last_used_at || now.getTime() - found.last_used_at.getTime() > TOUCH_EVERY_MS) await this.#store.touchToken(found.id, now)
    return {
      ownerId: found.owner_id,
      ownerName: found.owner_name,
      role: found.role,
      scopes: new Set(found.scopes),
      credential: { kind: 'token', id: found.id },
    }
  }

  /** null for an unknown, expired or revoked session. */
  async bySession(secret: string): Promise<Principal | null> {
    const found = await this.#store.credentialOfSession(hashSecret(secret), this.#clock.now())
    if (!found) return null
    return {
      ownerId: found.owner_id,
      ownerName: found.owner_name,
      role: found.role,
      scopes: sessionScopes(found.role),
      credential: { kind: 'session', id: found.id },
    }
  }
}
