import { LingtaiError } from '#contracts'
import type { OwnerView } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { IdentityStore } from './ports.ts'
import { hashSecret, newSecret } from './secrets.ts'

const LINK_LASTS_MS = 15 * 60_000
const SESSION_LASTS_MS = 30 * 24 * 3_600_000

export type OpenedSession = { id: string; owner: OwnerView; secret: string; expiresAt: Date }

/** Sign-in links and sessions (decision 33). */
export class SigninService {
  readonly #unit: UnitOfWork
  readonly #store: IdentityStore
  readonly #log: EventLog
  readonly #clock: Clock
  readonly #ids: Ids

  constructor(parts: { unit: UnitOfWork; store: IdentityStore; log: EventLog; clock: Clock; ids: Ids }) {
    this.#unit = parts.unit
    this.#store = parts.store
    this.#log = parts.log
    this.#clock = parts.clock
    this.#ids = parts.ids
  }

  /** A secret that signs its owner in once, within 15 minutes. */
  async mintLink(ownerId: string): Promise<string> {
    const { secret, hash } = newSecret(this.#ids)
    const now = this.#clock.now()
    await this.#store.insertSigninLink({
      id: this.#ids.next(),
      owner_id: ownerId,
      hash,
      created_at: now,
      expires_at: new Date(now.getTime() + LINK_LASTS_MS),
    })
    return secret
  }

  /** Uses a link up and opens a session of 30 days. Throws signin_link_invalid. */
  async redeem(linkSecret: string): Promise<OpenedSession> {
    return this.#unit.run(async () => {
      const now = this.#clock.now()
      const ownerId = await this.#store.useSigninLink(hashSecret(linkSecret), now)
      const owner = ownerId === null ? null : await this.#store.owner(ownerId)
      if (!owner)
        throw new LingtaiError('signin_link_invalid', undefined, {
          errors: [{ path: 'secret', message: 'is used up, expired or unknown' }],
        })
      const id = this.#ids.next()
      const { secret, hash } = newSecret(this.#ids)
      const expiresAt = new Date(now.getTime() + SESSION_LASTS_MS)
      await this.#store.insertSession({ id, owner_id: owner.id, hash, created_at: now, expires_at: expiresAt })
      await this.#log.append({
        stream: `admin:${owner.id}`,
        ownerId: owner.id,
        events: [
          {
            type: 'session.opened',
            payload: { session_id: id, owner_id: owner.id },
            actor: 'owner',
            at: now.toISOString(),
            cause: { tag: 'session.redeem' },
          },
        ],
      })
      return { id, owner: { id: owner.id, name: owner.name, role: owner.role }, secret, expiresAt }
    })
  }

  async close(sessionId: string): Promise<void> {
    await this.#store.revokeSession(sessionId, this.#clock.now())
  }

  /** Whether anybody is signed in; while nobody is, the start prints a link. */
  async isAnybodySignedIn(): Promise<boolean> {
    return this.#store.hasLiveSession(this.#clock.now())
  }

  /** Removes links and sessions that ended more than a day ago. */
  async tidy(): Promise<void> {
    await this.#store.removeEnded(new Date(this.#clock.now().getTime() - 24 * 3_600_000))
  }
}
