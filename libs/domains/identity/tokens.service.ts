import { LingtaiError } from '#contracts'
import type { CreatedToken, TokenScope, TokenView } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { IdentityStore, TokenRow } from './ports.ts'
import { newTokenSecret } from './secrets.ts'

/** API tokens: shown once, kept as SHA-256, revocable. */
export class TokensService {
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

  async list(ownerId: string): Promise<TokenView[]> {
    return (await this.#store.tokens(ownerId)).map(viewOf)
  }

  /**
   * A fresh token. `grantable` are the scopes of whoever asks: nobody hands out more than they hold, so that a token cannot make itself
   * an approving one (decision 35). Throws forbidden_scope.
   */
  async create(input: {
    ownerId: string
    name: string
    scopes: readonly TokenScope[]
    grantable: ReadonlySet<TokenScope>
    actor: 'owner' | 'operator'
  }): Promise<CreatedToken> {
    const scopes = [...new Set(input.scopes)]
    const beyond = scopes.filter((scope) => !input.grantable.has(scope))
    if (beyond.length > 0) {
      throw new LingtaiError('forbidden_scope', `a token with ${beyond.join(', ')} can be made only by who may do that`, {
        errors: beyond.map((scope) => ({
          path: `scopes[${input.scopes.indexOf(scope)}]`,
          message: `${scope} is beyond what this credential allows`,
        })),
      })
    }
    const { secret, hash } = newTokenSecret(this.#ids)
    const id = this.#ids.next()
    await this.#unit.run(async () => {
      const now = this.#clock.now()
      await this.#store.insertToken({ id, owner_id: input.ownerId, name: input.name, scopes, created_at: now, hash })
      await this.#record({ type: 'token.issued', ownerId: input.ownerId, tokenId: id, actor: input.actor, tag: 'token.create' })
    })
    return { id, name: input.name, scopes, token: secret }
  }

  /** What a replayed creation answers: everything but the token itself (decision 30). Throws not_found. */
  async describe(ownerId: string, tokenId: string): Promise<CreatedToken> {
    const token = await this.#store.token(ownerId, tokenId)
    if (!token) throw new LingtaiError('not_found')
    return { id: token.id, name: token.name, scopes: token.scopes, token: null }
  }

  /** Revoking twice is the same as once. Throws not_found. */
  async revoke(ownerId: string, tokenId: string): Promise<void> {
    await this.#unit.run(async () => {
      if (!(await this.#store.token(ownerId, tokenId))) throw new LingtaiError('not_found')
      const revoked = await this.#store.revokeToken({ ownerId, tokenId, at: this.#clock.now() })
      if (revoked) await this.#record({ type: 'token.revoked', ownerId, tokenId, actor: 'owner', tag: 'token.revoke' })
    })
  }

  async #record(input: {
    type: 'token.issued' | 'token.revoked'
    ownerId: string
    tokenId: string
    actor: string
    tag: string
  }): Promise<void> {
    await this.#log.append({
      stream: `admin:${input.ownerId}`,
      ownerId: input.ownerId,
      events: [
        {
          type: input.type,
          payload: { token_id: input.tokenId, owner_id: input.ownerId },
          actor: input.actor,
          at: this.#clock.now().toISOString(),
          cause: { tag: input.tag },
        },
      ],
    })
  }
}

function viewOf(token: TokenRow): TokenView {
  return {
    id: token.id,
    name: token.name,
    scopes: token.scopes,
    created_at: token.created_at.toISOString(),
    last_used_at: token.last_used_at?.toISOString() ?? null,
    revoked_at: token.revoked_at?.toISOString() ?? null,
  }
}
