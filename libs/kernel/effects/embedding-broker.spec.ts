import { describe, expect, it } from 'vitest'
import type { NewEvent } from '#contracts'
import { EmbeddingError } from '../ports/embedder.ts'
import type { EmbeddingCause, EmbeddingEndpoint, EmbeddingOutcome } from '../ports/embedder.ts'
import type { EmbeddingLedger, EmbeddingLimits, EmbeddingSettlement, NewEmbeddingRequest } from '../ports/embedding-ledger.ts'
import { chainEvents, EMPTY_HEAD, saltedDigest, sha256Hex } from '../record/chain.ts'
import { EMBEDDING_TOKENS_MAX, EmbeddingBroker, EmbeddingInTransactionError, refusalOf } from './embedding-broker.ts'
import { settleLeftEmbeddings } from './embedding-record.ts'
import { openRecordedEmbedder } from './recorded-embedder.ts'

const id = (number: number): string => `01900000-0000-7000-8000-${String(number).padStart(12, '0')}`
const cause: EmbeddingCause = { purpose: 'recall', ownerId: id(901), characterId: id(902), runId: id(903) }
const done = (texts: readonly string[], tokens: number | null = null): EmbeddingOutcome => ({
  type: 'done',
  vectors: texts.map((text) => Float32Array.of(text.length, 0, 1)),
  tokens,
})

type Scene = {
  answers?: (texts: readonly string[]) => EmbeddingOutcome | Error
  limits?: EmbeddingLimits
  price?: number | null
  /** Nothing can be written. */
  isFull?: boolean
  inTransaction?: boolean
}

/** A broker whose ledger, log and endpoint are lists; `happened` has everything in order. */
function scene({
  answers = done,
  limits = { killed: false, cost: null },
  price = 2_000_000,
  isFull = false,
  inTransaction = false,
}: Scene = {}) {
  const happened: string[] = []
  const events: (NewEvent & { stream: string })[] = []
  const opened: NewEmbeddingRequest[] = []
  const settled = new Map<string, EmbeddingSettlement>()
  let next = 0
  let isCommitted = !inTransaction
  const ledger: EmbeddingLedger = {
    limits: () => Promise.resolve(limits),
    open: (request) => {
      opened.push(request)
      return Promise.resolve()
    },
    settle: (requestId, settlement) => {
      if (settled.has(requestId)) return Promise.resolve(false)
      settled.set(requestId, settlement)
      return Promise.resolve(true)
    },
    left: () => Promise.resolve(opened.filter((request) => !settled.has(request.id))),
    spentBy: () => Promise.resolve(0),
  }
  const deps = {
    ledger,
    unitOfWork: {
      run: async <Result>(work: () => Promise<Result>): Promise<Result> => {
        isCommitted = false
        const result = await work()
        isCommitted = true
        happened.push('committed')
        return result
      },
      afterRollback: () => Promise.resolve(),
      afterCommit: (callback: () => void) => {
        if (isCommitted) callback()
      },
    },
    log: {
      append: ({ stream, ownerId, events: appended }: { stream: string; ownerId: string | null; events: readonly NewEvent[] }) => {
        if (isFull) return Promise.reject(new Error('no space left'))
        // What the dictionary does not know is refused here.
        const { chained } = chainEvents({ stream, ownerId, head: EMPTY_HEAD, events: appended })
        for (const event of appended) {
          events.push({ ...event, stream })
          happened.push(event.type)
        }
        return Promise.resolve(chained)
      },
    },
    clock: { now: () => new Date('2026-01-02T03:04:05.678Z') },
    ids: { next: () => id(++next), bytes: (length: number) => new Uint8Array(length).fill(7), seed: () => 1 },
    holder: 'here',
    countTokens: (text: string) => text.length,
    priceMicros: price,
  }
  const endpoint: EmbeddingEndpoint = {
    model: 'e 5',
    request: (texts) => {
      happened.push(`sent ${texts.length}${isCommitted ? '' : ' in a transaction'}`)
      const outcome = answers(texts)
      return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome)
    },
    isDegenerate: () => false,
  }
  // The other methods of the log are nobody's here.
  const brokerDeps = deps as unknown as ConstructorParameters<typeof EmbeddingBroker>[1]
  return { broker: new EmbeddingBroker(endpoint, brokerDeps), deps: brokerDeps, endpoint, happened, events, opened, settled }
}

const thrown = async (work: Promise<unknown>): Promise<unknown> => work.then(() => undefined).catch((error: unknown) => error)

describe('a request for embeddings', () => {
  it('is reserved, recorded and committed before it is sent, and settled after', async () => {
    const { broker, happened, events, opened, settled } = scene({ answers: (texts) => done(texts, 3) })
    expect(await broker.embed(['plum', 'pear'], cause)).toHaveLength(2)
    expect(happened).toEqual([
      'budget.reserved',
      'embedding.requested',
      'committed',
      'sent 2',
      'embedding.completed',
      'budget.settled',
      'committed',
    ])
    expect(new Set(events.map(({ stream }) => stream))).toEqual(new Set([`embedding:${id(1)}`]))
    const digest = sha256Hex(
      ['plum', 'pear'].map((text) => Buffer.from(saltedDigest(new Uint8Array(32).fill(7), text)).toString('hex')).join(''),
    )
    expect(events.map(({ payload }) => payload)).toEqual([
      { effect_id: id(1), tokens: 8, cost_micros: 16 },
      { effect_id: id(1), purpose: 'recall', model: 'other', texts: 2, request_digest: digest, reserved_tokens: 8 },
      { effect_id: id(1), tokens: 3, estimated: false, dimensions: 3 },
      { effect_id: id(1), tokens: 3, cost_micros: 6, estimated: false },
    ])
    expect(events[0]).toMatchObject({ run_id: cause.runId, character_id: cause.characterId, actor: 'kernel', cause: { tag: 'embed' } })
    expect(opened).toMatchObject([
      { ...cause, id: id(1), texts: 2, reservedTokens: 8, reservedMicros: 16, holder: 'here', dueInMs: 120_000 },
    ])
    expect(settled.get(id(1))).toEqual({ state: 'completed', code: null, chargedTokens: 3, chargedMicros: 6 })
    expect(JSON.stringify(events)).not.toContain('plum')
  })

  it('is not sent where its intent cannot be made durable', async () => {
    const full = scene({ isFull: true })
    await expect(full.broker.embed(['plum'], cause)).rejects.toThrow('no space left')
    expect(full.happened).toEqual([])
    const inside = scene({ inTransaction: true })
    await expect(inside.broker.embed(['plum'], cause)).rejects.toThrow(EmbeddingInTransactionError)
    expect(inside.happened).toEqual([])
  })

  it('is charged as reserved where the provider did not count, and without a price not at all', async () => {
    const { broker, events, settled } = scene({ price: null })
    await broker.embed(['plum'], cause)
    expect(events.map(({ payload }) => payload)).toMatchObject([{ tokens: 4 }, {}, {}, { tokens: 4, estimated: true }])
    expect(events[3]?.payload).not.toHaveProperty('cost_micros')
    expect(settled.get(id(1))).toMatchObject({ chargedTokens: 4, chargedMicros: null })
  })

  it.each<[string, EmbeddingOutcome, object, object]>([
    [
      'failed',
      { type: 'failed', code: 'rate_limited', providerCode: 'busy', status: 429, retryable: true },
      { code: 'rate_limited', provider_code: 'busy', status: 429 },
      { tokens: 0, cost_micros: 0, estimated: false },
    ],
    [
      'unknown',
      { type: 'unknown', code: 'timeout', retryable: true },
      { code: 'timeout', settled_tokens: 4 },
      { tokens: 4, cost_micros: 8, estimated: true },
    ],
  ])('that is %s says so once and is not sent again', async (type, outcome, terminal, charge) => {
    const { broker, events, happened } = scene({ answers: () => outcome })
    const error = await thrown(broker.embed(['plum'], cause))
    expect(error).toBeInstanceOf(EmbeddingError)
    expect(error).toMatchObject({ outcome: type, retryable: true })
    expect(happened.filter((what) => what.startsWith('sent'))).toHaveLength(1)
    expect(events.slice(2)).toMatchObject([
      { type: `embedding.${type}`, payload: terminal },
      { type: 'budget.settled', payload: charge },
    ])
  })

  it('keeps to so many texts and tokens, and refuses a text that is too long before anything is sent', async () => {
    const many = scene()
    await many.broker.embed(
      Array.from({ length: 130 }, () => 'x'),
      cause,
    )
    expect(many.happened.filter((what) => what.startsWith('sent'))).toEqual(['sent 64', 'sent 64', 'sent 2'])
    const long = scene()
    await long.broker.embed(['x'.repeat(EMBEDDING_TOKENS_MAX), 'y', 'z'], cause)
    expect(long.happened.filter((what) => what.startsWith('sent'))).toEqual(['sent 1', 'sent 2'])
    const tooLong = scene()
    const error = await thrown(tooLong.broker.embed(['y', 'x'.repeat(EMBEDDING_TOKENS_MAX + 1)], cause))
    expect(error).toMatchObject({ outcome: 'refused', code: 'max_tokens' })
    expect(tooLong.happened).toEqual(['budget.exhausted', 'embedding.refused', 'committed'])
  })

  it('is refused, and recorded as such, by the kill switch and by the run’s bound on cost', async () => {
    const killed = scene({ limits: { killed: true, cost: null } })
    expect(await thrown(killed.broker.embed(['plum'], cause))).toMatchObject({ outcome: 'refused', code: 'killed' })
    expect(killed.happened).toEqual(['embedding.refused', 'committed'])
    expect(killed.opened).toEqual([])
    const poor = scene({ limits: { killed: false, cost: { boundMicros: 10, spentMicros: 3 } } })
    expect(await thrown(poor.broker.embed(['plum'], cause))).toMatchObject({ outcome: 'refused', code: 'max_cost_micros' })
    expect(poor.events).toMatchObject([
      { type: 'budget.exhausted', payload: { which: 'max_cost_micros', limit: 10, needed: 11 } },
      { type: 'embedding.refused', payload: { code: 'max_cost_micros', purpose: 'recall', texts: 1 } },
    ])
    expect(poor.happened).not.toContain('sent 1')
  })

  it('under a bound on cost needs a price, and may use all that is left', () => {
    const bounded = { killed: false, cost: { boundMicros: 10, spentMicros: 3 } }
    expect(refusalOf(bounded, 7)).toBeNull()
    expect(refusalOf(bounded, 8)).toMatchObject({ code: 'max_cost_micros' })
    expect(refusalOf(bounded, null)).toMatchObject({ code: 'price_unknown' })
    expect(refusalOf({ killed: false, cost: null }, null)).toBeNull()
    expect(refusalOf({ killed: true, cost: null }, 0)).toEqual({ code: 'killed' })
  })

  it('that was given up before it began leaves nothing; one given up meanwhile is unknown, and the reason is thrown', async () => {
    const before = scene()
    const reason = new Error('enough')
    expect(await thrown(before.broker.embed(['plum'], cause, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(before.happened).toEqual([])
    const abort = new AbortController()
    const meanwhile = scene({
      answers: () => {
        abort.abort(reason)
        return { type: 'unknown', code: 'aborted', retryable: true }
      },
    })
    expect(await thrown(meanwhile.broker.embed(['plum'], cause, { signal: abort.signal }))).toBe(reason)
    expect(meanwhile.happened).toContain('embedding.unknown')
  })
})

describe('a request whose sender is gone', () => {
  it('is unknown, once, whoever finds it; a late answer changes nothing', async () => {
    let late: Promise<number[]> | null = null
    const it_ = scene({
      answers: (texts) => {
        const settle = (): Promise<number> => settleLeftEmbeddings({ ...it_.deps, report: () => undefined }, { aliveHolder: null })
        late = Promise.all([settle(), settle()])
        return done(texts)
      },
    })
    const slow: EmbeddingEndpoint = {
      ...it_.endpoint,
      request: async (texts) => {
        const outcome = await it_.endpoint.request(texts, {})
        await late
        return outcome
      },
    }
    const error = await thrown(new EmbeddingBroker(slow, it_.deps).embed(['plum'], cause))
    expect((await (late ?? Promise.resolve([]))).reduce((sum, count) => sum + count, 0)).toBe(1)
    expect(error).toMatchObject({ outcome: 'unknown', code: 'settled_late' })
    expect(it_.events.slice(2)).toMatchObject([
      { type: 'embedding.unknown', payload: { code: 'owner_lost', settled_tokens: 4 }, cause: { tag: 'owner_lost' } },
      { type: 'budget.settled', payload: { tokens: 4, cost_micros: 8, estimated: true } },
    ])
  })
})

describe('the embedder over it', () => {
  it('asks how long vectors are, and refuses other ones later', async () => {
    let length = 3
    const { endpoint, deps, happened } = scene({
      answers: (texts) => ({ type: 'done', vectors: texts.map(() => new Float32Array(length).fill(1)), tokens: null }),
    })
    const embedder = await openRecordedEmbedder(endpoint, { ...deps, knownDimensions: null })
    expect(embedder.space).toEqual({ id: 'e-5-3', model: 'e 5', version: 'v1', dimensions: 3 })
    length = 4
    await expect(embedder.embed(['x'], cause)).rejects.toMatchObject({ outcome: 'unfit', code: 'dimensions_changed' })
    expect(happened.filter((what) => what === 'embedding.completed')).toHaveLength(2)
  })

  it('believes what was known where nobody answers, and cannot begin without', async () => {
    const { endpoint, deps } = scene({ limits: { killed: true, cost: null } })
    expect((await openRecordedEmbedder(endpoint, { ...deps, knownDimensions: 5 })).space.id).toBe('e-5-5')
    await expect(openRecordedEmbedder(endpoint, { ...deps, knownDimensions: null })).rejects.toMatchObject({ code: 'killed' })
  })
})
