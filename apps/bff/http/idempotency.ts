import { createHmac, timingSafeEqual } from 'node:crypto'
import { LingtaiError } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { IdempotencyStore } from '#infra/prisma/idempotency.repository'
import type { KeptIds } from './api-route.ts'

const KEPT_MS = 24 * 3_600_000

/** A mutation that came with a key. `content` is all that makes it this request: path, query and body. */
export type KeyedCall<Answer> = {
  ownerId: string
  method: string
  route: string
  key: string
  content: readonly (string | Uint8Array)[]
  /** Runs before the transaction; what it throws counts only while the key is nobody's. */
  before?: () => Promise<void>
  act: () => Promise<Answer>
  status: number
  keep: (answer: Answer) => KeptIds | null
  rebuild: (kept: KeptIds | null) => Promise<Answer>
}

/**
 * The same key and the same request have one effect and one answer (decision 30): the key's row belongs to the mutation's own transaction,
 * so a twin waits for the first one's end and then finds either its row or nothing.
 */
export class Idempotency {
  readonly #unit: UnitOfWork
  readonly #store: IdempotencyStore
  readonly #clock: Clock
  readonly #ids: Ids

  constructor(parts: { unit: UnitOfWork; store: IdempotencyStore; clock: Clock; ids: Ids }) {
    this.#unit = parts.unit
    this.#store = parts.store
    this.#clock = parts.clock
    this.#ids = parts.ids
  }

  /** Throws idempotency_mismatch, or what the mutation throws; then nothing is kept and the key is free again. */
  async run<Answer>(call: KeyedCall<Answer>): Promise<{ answer: Answer; replayed: boolean }> {
    try {
      await call.before?.()
    } catch (error) {
      if (!(await this.#store.isKept({ ownerId: call.ownerId, method: call.method, route: call.route, key: call.key }))) throw error
    }
    const outcome = await this.#unit.run(async (): Promise<{ kept: KeptIds | null } | { answer: Answer }> => {
      const now = this.#clock.now()
      const salt = this.#ids.bytes(32)
      const name = { ownerId: call.ownerId, method: call.method, route: call.route, key: call.key }
      const earlier = await this.#store.claim({
        ...name,
        salt,
        bodyHash: hashOf(salt, call.content),
        at: now,
        expiredBefore: new Date(now.getTime() - KEPT_MS),
      })
      if (earlier) {
        // Where the hash went with an erasure the key alone tells: what was done is not done twice.
        if (earlier.hash && !timingSafeEqual(earlier.hash.bodyHash, hashOf(earlier.hash.salt, call.content))) {
          throw new LingtaiError('idempotency_mismatch', undefined, {
            errors: [{ path: 'headers.idempotency-key', message: 'was used with another request' }],
          })
        }
        return { kept: earlier.kept }
      }
      const answer = await call.act()
      await this.#store.settle({ ...name, status: call.status, kept: call.keep(answer) })
      return { answer }
    })
    if ('answer' in outcome) return { answer: outcome.answer, replayed: false }
    return { answer: await call.rebuild(outcome.kept), replayed: true }
  }

  /** Forgets keys that are past their day. */
  async tidy(): Promise<void> {
    await this.#store.removeBefore(new Date(this.#clock.now().getTime() - KEPT_MS))
  }
}

function hashOf(salt: Uint8Array, content: readonly (string | Uint8Array)[]): Uint8Array {
  const hash = createHmac('sha256', salt)
  for (const piece of content) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
    hash.update(`${bytes.byteLength}:`).update(bytes)
  }
  return hash.digest()
}
