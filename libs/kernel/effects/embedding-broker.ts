import type { EventPayload, NewEvent } from '#contracts'
import { toSlug } from '#contracts'
import type { Clock, Ids } from '../ports/clock.ts'
import { EMBEDDING_TEXTS_MAX, EMBEDDING_TIMEOUT_MS, EmbeddingError } from '../ports/embedder.ts'
import type { Embedder, EmbeddingCause, EmbeddingEndpoint, EmbeddingOutcome, EmbeddingSpace } from '../ports/embedder.ts'
import type { EmbeddingLedger, EmbeddingLimits, LeftEmbeddingRequest } from '../ports/embedding-ledger.ts'
import type { EventLog } from '../ports/event-log.ts'
import type { UnitOfWork } from '../ports/unit-of-work.ts'
import { saltedDigest, sha256Hex } from '../record/chain.ts'

/** Tokens of one request at most; a text that is longer by itself is refused. */
export const EMBEDDING_TOKENS_MAX = 65_536

/** A request has given up long before this; whoever finds it open later says that nobody knows (K3). Milliseconds. */
const DUE_MS = 2 * EMBEDDING_TIMEOUT_MS

type Refusal = EventPayload<'embedding.refused'>['code']

export type EmbeddingBrokerDeps = {
  unitOfWork: UnitOfWork
  log: EventLog
  ledger: EmbeddingLedger
  clock: Clock
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

type Effect = { id: string; cause: EmbeddingCause; reservedTokens: number; reservedMicros: number | null }

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
  async #reserve(batch: readonly Counted[], cause: EmbeddingCause): Promise<Effect> {
    const { unitOfWork, ledger, ids, holder } = this.#deps
    const reservedTokens = batch.reduce((sum, { tokens }) => sum + tokens, 0)
    const effect: Effect = { id: ids.next(), cause, reservedTokens, reservedMicros: this.#price(reservedTokens) }
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
      await this.#append(effect, [
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
    await this.#append({ id: effectId, cause }, [
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
  async #settle(effect: Effect, outcome: EmbeddingOutcome): Promise<boolean> {
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

  async #append({ id, cause }: Pick<Effect, 'id' | 'cause'>, events: readonly EmbeddingEvent[]): Promise<void> {
    await appendEvents(this.#deps, { id, ...cause }, 'embed', events)
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

type EmbeddingEvent = { [Type in NewEvent['type']]: Pick<Extract<NewEvent, { type: Type }>, 'type' | 'payload'> }[NewEvent['type']]

type RecordDeps = Pick<EmbeddingBrokerDeps, 'unitOfWork' | 'log' | 'ledger' | 'clock'>

async function appendEvents(
  { log, clock }: Pick<RecordDeps, 'log' | 'clock'>,
  { id, ownerId, characterId, runId }: Pick<LeftEmbeddingRequest, 'id' | 'ownerId' | 'characterId' | 'runId'>,
  tag: 'embed' | 'owner_lost',
  events: readonly EmbeddingEvent[],
): Promise<void> {
  const at = clock.now().toISOString()
  await log.append({
    stream: `embedding:${id}`,
    ownerId,
    events: events.map((event): NewEvent => ({ ...event, character_id: characterId, run_id: runId, actor: 'kernel', at, cause: { tag } })),
  })
}

type Terminal =
  | { type: 'done'; tokens: number; micros: number | null; estimated: boolean; dimensions: number }
  | Exclude<EmbeddingOutcome, { type: 'done' }>

/** Ledger and record in one transaction: the terminal, and what is charged. What nobody knows is charged at its reservation. */
async function settleRequest(
  deps: RecordDeps,
  effect: Effect,
  terminal: Terminal,
  tag: 'embed' | 'owner_lost' = 'embed',
): Promise<boolean> {
  const { reservedTokens, reservedMicros } = effect
  const nothing = { tokens: 0, micros: reservedMicros === null ? null : 0, estimated: false }
  const everything = { tokens: reservedTokens, micros: reservedMicros, estimated: true }
  const charged = terminal.type === 'done' ? terminal : terminal.type === 'failed' ? nothing : everything
  return deps.unitOfWork.run(async () => {
    const isFirst = await deps.ledger.settle(effect.id, {
      state: terminal.type === 'done' ? 'completed' : terminal.type,
      code: terminal.type === 'done' ? null : toSlug(terminal.code),
      chargedTokens: charged.tokens,
      chargedMicros: charged.micros,
    })
    if (!isFirst) return false
    const settled = { effect_id: effect.id, tokens: charged.tokens, ...costOf(charged.micros), estimated: charged.estimated }
    await appendEvents(deps, { id: effect.id, ...effect.cause }, tag, [
      terminalEvent(effect, terminal),
      { type: 'budget.settled', payload: settled },
    ])
    return true
  })
}

function terminalEvent({ id: effect_id, reservedTokens }: Effect, terminal: Terminal): EmbeddingEvent {
  switch (terminal.type) {
    case 'done': {
      const { tokens, estimated, dimensions } = terminal
      return { type: 'embedding.completed', payload: { effect_id, tokens, estimated, dimensions } }
    }
    case 'failed':
      return {
        type: 'embedding.failed',
        payload: {
          effect_id,
          code: toSlug(terminal.code),
          provider_code: terminal.providerCode === null ? null : toSlug(terminal.providerCode),
          status: terminal.status,
        },
      }
    case 'unknown':
      return { type: 'embedding.unknown', payload: { effect_id, code: toSlug(terminal.code), settled_tokens: reservedTokens } }
  }
}

function costOf(micros: number | null): { cost_micros?: number } {
  return micros === null ? {} : { cost_micros: micros }
}

/** Left ones that are looked at in one round. */
const LEFT_AT_ONCE = 100

/**
 * Says of requests whose sender is gone that nobody knows what became of them, each once, whichever replicas do this at the same time.
 * `aliveHolder`: the only process that there can be, on the light tier (decision 4). Answers how many.
 */
export async function settleLeftEmbeddings(
  deps: RecordDeps & { report(error: unknown, effectId: string): void },
  { aliveHolder }: { aliveHolder: string | null },
): Promise<number> {
  let settled = 0
  for (const left of await deps.ledger.left({ aliveHolder, limit: LEFT_AT_ONCE })) {
    const { id, reservedTokens, reservedMicros, ...who } = left
    const effect: Effect = { id, cause: { ...who, purpose: 'index' }, reservedTokens, reservedMicros }
    const isFirst = await settleRequest(deps, effect, { type: 'unknown', code: 'owner_lost', retryable: true }, 'owner_lost').catch(
      (error: unknown) => {
        // One that cannot be settled does not keep the others from it.
        deps.report(error, id)
        return false
      },
    )
    if (isFirst) settled += 1
  }
  return settled
}

/** What the endpoint's vectors are asked with. */
const PROBE_TEXT = 'dimensions'
/** The index's limit (decision 31). */
const DIMENSIONS_MAX = 4_000

const probe: EmbeddingCause = { purpose: 'probe', ownerId: null, characterId: null, runId: null }

/**
 * The embedder over a broker. Asks the endpoint how long its vectors are; where it does not answer, `knownDimensions` of the same model are
 * believed, and without them this rejects with EmbeddingError.
 */
export async function openRecordedEmbedder(
  endpoint: EmbeddingEndpoint,
  deps: EmbeddingBrokerDeps & { knownDimensions: number | null },
): Promise<Embedder> {
  const broker = new EmbeddingBroker(endpoint, deps)
  const space = spaceOf(endpoint.model, await dimensionsOf(broker, deps.knownDimensions))
  return {
    space,
    isDegenerate: (vector) => endpoint.isDegenerate(vector),
    embed: async (texts, cause, options) => {
      const vectors = await broker.embed(texts, cause, options)
      if (vectors.some((vector) => vector.length !== space.dimensions)) {
        throw new EmbeddingError({ outcome: 'unfit', code: 'dimensions_changed', retryable: false })
      }
      return vectors
    },
  }
}

async function dimensionsOf(broker: EmbeddingBroker, known: number | null): Promise<number> {
  let found: number
  try {
    found = (await broker.embed([PROBE_TEXT], probe))[0]?.length ?? 0
  } catch (error) {
    if (known !== null && error instanceof EmbeddingError) return known
    throw error
  }
  if (found < 1 || found > DIMENSIONS_MAX) throw new EmbeddingError({ outcome: 'unfit', code: 'bad_dimensions', retryable: false })
  return found
}

function spaceOf(model: string, dimensions: number): EmbeddingSpace {
  const slug = model.replace(/[^A-Za-z0-9_.:/-]+/g, '-').slice(0, 48)
  return { id: `${slug}-${dimensions}`, model, version: 'v1', dimensions }
}
