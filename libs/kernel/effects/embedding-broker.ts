import type { EventPayload } from '#contracts'
import { toSlug } from '#contracts'
import type { Ids } from '../ports/clock.ts'
import { EMBEDDING_TEXTS_MAX, EMBEDDING_TIMEOUT_MS, EmbeddingError } from '../ports/embedder.ts'
import type { EmbeddingCause, EmbeddingEndpoint, EmbeddingOutcome } from '../ports/embedder.ts'
import type { EmbeddingLimits } from '../ports/embedding-ledger.ts'
import { saltedDigest, sha256Hex } from '../record/chain.ts'
import { appendEvents, costOf, settleRequest } from './embedding-record.ts'
import type { EmbeddingEffect, EmbeddingRecordDeps } from './embedding-record.ts'

/** Tokens of one request at most; a text that is longer by itself is refused. */
export const EMBEDDING_TOKENS_MAX = 65_536

/** A request has given up long before this; whoever finds it open later says that nobody knows (K3). Milliseconds. */
const DUE_MS = 2 * EMBEDDING_TIMEOUT_MS

type Refusal = EventPayload<'embedding.refused'>['code']

export type EmbeddingBrokerDeps = EmbeddingRecordDeps & {
  ids: Ids
  /** Names this process in the ledger. */
  holder: string
  /** Never less than what the provider counts, as far as anybody knows. */
  countTokens(text: string): number
  /** Micro-units per million tokens; null where nobody said, so that no bound on cost can be kept (K6). */
  priceMicros: number | null
}

/** Vectors were asked for inside a unit of work, whose commit nobody can wait for before the request leaves. */
export class EmbeddingInTransactionError extends Error {
  constructor() {
    super('vectors are asked for before or after a unit of work, never inside: their intent has to be durable first')
    this.name = 'EmbeddingInTransactionError'
  }
}

/**
 * The only way to an embeddings endpoint (K3, K6): per request an id of ours, reservation and intent committed before it is sent, one
 * terminal with its settlement after, on a stream of its own. Never sends anything twice: who wants to try again asks again, which is another
 * effect. Judged by configuration, budget and the kill switch alone (K2).
 */
export class EmbeddingBroker {
  readonly #deps: EmbeddingBrokerDeps
  readonly #endpoint: EmbeddingEndpoint

  constructor(endpoint: EmbeddingEndpoint, deps: EmbeddingBrokerDeps) {
    this.#endpoint = endpoint
    this.#deps = deps
  }

  /**
   * One vector per text. All texts are judged by their length before the first request leaves; what one of several requests brought is
   * lost where a later one brings nothing. Rejects with EmbeddingError, on abort with the signal's reason.
   */
  async embed(texts: readonly string[], cause: EmbeddingCause, { signal }: { signal?: AbortSignal } = {}): Promise<Float32Array[]> {
    signal?.throwIfAborted()
    let isDurable = false
    this.#deps.unitOfWork.afterCommit(() => {
      isDurable = true
    })
    if (!isDurable) throw new EmbeddingInTransactionError()
    const counted = texts.map((text) => ({ text, tokens: this.#deps.countTokens(text) }))
    const longest = counted.reduce((most, { tokens }) => Math.max(most, tokens), 0)
    if (longest > EMBEDDING_TOKENS_MAX) {
      await this.#deps.unitOfWork.run(() =>
        this.#refuse(this.#deps.ids.next(), cause, texts.length, { code: 'max_tokens', limit: EMBEDDING_TOKENS_MAX, needed: longest }),
      )
      throw new EmbeddingError({ outcome: 'refused', code: 'max_tokens', retryable: false })
    }
    const vectors: Float32Array[] = []
    for (const batch of batchesOf(counted)) vectors.push(...(await this.#request(batch, cause, signal)))
    return vectors
  }

  async #request(batch: readonly Counted[], cause: EmbeddingCause, signal: AbortSignal | undefined): Promise<Float32Array[]> {
    signal?.throwIfAborted()
    const effect = await this.#reserve(batch, cause)
    const texts = batch.map(({ text }) => text)
    // A fault of ours leaves the intent open: it is past its time later, and then unknown.
    const outcome = await this.#endpoint.request(texts, { signal })
    const isOurs = await this.#settle(effect, outcome)
    if (outcome.type !== 'done') {
      signal?.throwIfAborted()
      throw new EmbeddingError({ outcome: outcome.type, code: outcome.code, retryable: outcome.retryable })
    }
    // Somebody has said meanwhile that nobody knows, and the record stands by it.
    if (!isOurs) throw new EmbeddingError({ outcome: 'unknown', code: 'settled_late', retryable: true })
    return outcome.vectors
  }

  /** Judges, reserves and records the intent, or the refusal, in one transaction (K5, K6). */
  async #reserve(batch: readonly Counted[], cause: EmbeddingCause): Promise<EmbeddingEffect> {
    const { unitOfWork, ledger, ids, holder } = this.#deps
    const reservedTokens = batch.reduce((sum, { tokens }) => sum + tokens, 0)
    const effect: EmbeddingEffect = { id: ids.next(), ...cause, reservedTokens, reservedMicros: this.#price(reservedTokens) }
    const salt = ids.bytes(32)
    const digests = batch.map(({ text }) => Buffer.from(saltedDigest(salt, text)).toString('hex'))
    const refusal = await unitOfWork.run(async () => {
      const refused = refusalOf(await ledger.limits(cause), effect.reservedMicros)
      if (refused) {
        await this.#refuse(effect.id, cause, batch.length, refused)
        return refused
      }
      const { reservedMicros } = effect
      await ledger.open({ ...cause, id: effect.id, texts: batch.length, reservedTokens, reservedMicros, salt, holder, dueInMs: DUE_MS })
      await appendEvents(this.#deps, effect, 'embed', [
        { type: 'budget.reserved', payload: { effect_id: effect.id, tokens: reservedTokens, ...costOf(reservedMicros) } },
        {
          type: 'embedding.requested',
          payload: {
            effect_id: effect.id,
            purpose: cause.purpose,
            model: toSlug(this.#endpoint.model),
            texts: batch.length,
            request_digest: sha256Hex(digests.join('')),
            reserved_tokens: reservedTokens,
          },
        },
      ])
      return null
    })
    if (refusal) throw new EmbeddingError({ outcome: 'refused', code: refusal.code, retryable: false })
    return effect
  }

  async #refuse(effectId: string, cause: EmbeddingCause, texts: number, refused: Refused): Promise<void> {
    await appendEvents(this.#deps, { id: effectId, ...cause }, 'embed', [
      ...(refused.code === 'killed'
        ? []
        : [
            {
              type: 'budget.exhausted' as const,
              payload: {
                which: refused.code === 'max_tokens' ? ('max_tokens' as const) : ('max_cost_micros' as const),
                limit: refused.limit,
                needed: refused.needed,
              },
            },
          ]),
      { type: 'embedding.refused', payload: { effect_id: effectId, purpose: cause.purpose, texts, code: refused.code } },
    ])
  }

  /** Records the terminal and what is charged; false where there was a terminal already, which stands. */
  async #settle(effect: EmbeddingEffect, outcome: EmbeddingOutcome): Promise<boolean> {
    if (outcome.type !== 'done') return settleRequest(this.#deps, effect, outcome)
    const tokens = outcome.tokens ?? effect.reservedTokens
    return settleRequest(this.#deps, effect, {
      type: 'done',
      tokens,
      micros: this.#price(tokens),
      estimated: outcome.tokens === null,
      dimensions: outcome.vectors[0]?.length ?? 0,
    })
  }

  #price(tokens: number): number | null {
    const { priceMicros } = this.#deps
    return priceMicros === null ? null : Math.ceil((tokens * priceMicros) / 1_000_000)
  }
}

type Counted = { text: string; tokens: number }

/** Requests that keep within the bounds, in order. */
function batchesOf(counted: readonly Counted[]): Counted[][] {
  const batches: Counted[][] = []
  let tokens = 0
  for (const one of counted) {
    const last = batches.at(-1)
    tokens += one.tokens
    if (last && last.length < EMBEDDING_TEXTS_MAX && tokens <= EMBEDDING_TOKENS_MAX) last.push(one)
    else {
      batches.push([one])
      tokens = one.tokens
    }
  }
  return batches
}

type Refused = { code: 'killed' } | { code: Exclude<Refusal, 'killed'>; limit: number; needed: number }

/** Why a request may not leave, or null. A bound on cost without a known price fails closed (K6). Pure. */
export function refusalOf({ killed, cost }: EmbeddingLimits, reservedMicros: number | null): Refused | null {
  if (killed) return { code: 'killed' }
  if (cost === null) return null
  const { boundMicros: limit, spentMicros } = cost
  if (reservedMicros === null) return { code: 'price_unknown', limit, needed: limit + 1 }
  const needed = spentMicros + reservedMicros
  return needed > limit ? { code: 'max_cost_micros', limit, needed } : null
}
