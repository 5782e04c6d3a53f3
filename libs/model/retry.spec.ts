import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import fc from 'fast-check'
import type { ModelFailure, ModelRequest, ModelStreamEvent } from '#kernel/ports/model-gateway'
import { CUT, DONE, type FakeUpstream, finishChunk, sse, startFakeUpstream, textChunk } from '#test/support/fake-upstream'
import { createOpenAiGateway, type OpenAiGateway } from './openai-gateway.ts'
import { DEFAULT_RETRY_POLICY, retryDelayMs, type RetryArguments, streamWithRetry } from './retry.ts'

const failure = (extra: Partial<ModelFailure> = {}): ModelFailure => ({ type: 'failed', code: 'rate_limited', retryable: true, ...extra })
const policy = { maxTries: 4, baseDelayMs: 100, maxDelayMs: 1_000, maxRetryAfterMs: 5_000 }

describe('the delay before another try', () => {
  const delay = (tryNumber: number, random: number, extra: Partial<ModelFailure> = {}) =>
    retryDelayMs(policy, { tryNumber, failure: failure(extra), random: () => random })

  it('grows exponentially inside its ceiling, jittered by the given random', () => {
    expect([1, 2, 3].map((tryNumber) => delay(tryNumber, 0))).toEqual([50, 100, 200])
    expect([1, 2, 3].map((tryNumber) => delay(tryNumber, 0.5))).toEqual([75, 150, 300])
    expect(retryDelayMs({ ...policy, maxTries: 99 }, { tryNumber: 50, failure: failure(), random: () => 0.999 })).toBeLessThanOrEqual(1_000)
  })

  it('honours Retry-After, and gives up where it passes the cap', () => {
    expect(delay(1, 0, { retryAfterMs: 4_000 })).toBe(4_000)
    expect(delay(1, 0, { retryAfterMs: 5_001 })).toBeUndefined()
    expect(delay(3, 0.5, { retryAfterMs: 10 })).toBe(300)
  })

  it('ends with the tries, and never begins for what is not retryable', () => {
    expect(delay(4, 0)).toBeUndefined()
    expect(delay(1, 0, { retryable: false })).toBeUndefined()
  })

  it('is bounded for every policy', () => {
    fc.assert(
      fc.property(
        fc.nat(20),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        fc.option(fc.nat(100_000), { nil: undefined }),
        (tryNumber, random, retryAfterMs) => {
          const value = retryDelayMs(policy, { tryNumber: tryNumber + 1, failure: failure({ retryAfterMs }), random: () => random })
          if (value === undefined) return
          expect(value).toBeGreaterThanOrEqual(Math.max(50, retryAfterMs ?? 0))
          expect(value).toBeLessThanOrEqual(5_000)
        },
      ),
    )
  })
})

describe('a call with tries', () => {
  let upstream: FakeUpstream
  let gateway: OpenAiGateway
  beforeEach(async () => {
    upstream = await startFakeUpstream()
    gateway = createOpenAiGateway({ endpoint: { baseUrl: upstream.baseUrl } })
  })
  afterEach(async () => {
    gateway.close()
    await upstream.close()
  })

  const call = async (extra: Partial<RetryArguments> = {}, abort = new AbortController()) => {
    const body = { model: 'm', stream: true, messages: [{ role: 'user' as const, content: 'x' }] }
    const request: ModelRequest = { body, bodyText: JSON.stringify(body), purpose: 'answer', signal: abort.signal }
    const reports: unknown[] = []
    const slept: number[] = []
    const events: ModelStreamEvent[] = []
    const stream = streamWithRetry({
      policy: DEFAULT_RETRY_POLICY,
      signal: abort.signal,
      random: () => 0,
      dispatch: () => gateway.stream(request),
      onFailed: (report) => void reports.push([report.tryNumber, report.failure.code, report.delayMs]),
      sleep: async (ms) => void slept.push(ms),
      ...extra,
    })
    for await (const event of stream) events.push(event)
    return { events, reports, slept }
  }
  const good = { steps: [textChunk('ok'), finishChunk(), DONE] }

  it('comes again after 429 and 5xx, reporting each try', async () => {
    upstream.script({ status: 429, headers: { 'retry-after': '2' } }, { status: 503 }, good)
    const { events, reports, slept } = await call()
    expect(events.map((event) => event.type)).toEqual(['opened', 'text', 'usage', 'finished'])
    expect(reports).toEqual([
      [1, 'rate_limited', 2_000],
      [2, 'provider_unavailable', 500],
    ])
    expect(slept).toEqual([2_000, 500])
    expect(upstream.requests).toHaveLength(3)
  })

  it('yields the last failure when the tries are used up', async () => {
    upstream.script({ status: 500 }, { status: 500 }, { status: 502 }, good)
    const { events, reports } = await call()
    expect(events).toEqual([expect.objectContaining({ type: 'failed', code: 'provider_unavailable', status: 502 })])
    expect(reports.at(-1)).toEqual([3, 'provider_unavailable', undefined])
    expect(upstream.requests).toHaveLength(3)
  })

  it('S4 never comes again once a delta was published', async () => {
    upstream.script({ steps: [textChunk('visible'), sse({ error: { code: 'rate_limit' } })] }, good)
    const { events, reports } = await call()
    expect(events.at(-1)).toMatchObject({ type: 'interrupted', providerCode: 'rate_limit' })
    expect(reports).toEqual([])
    expect(upstream.requests).toHaveLength(1)
  })

  it('never comes again where the outcome is unknown (K3)', async () => {
    upstream.script({ beforeHeaders: CUT }, good)
    const { events } = await call()
    expect(events).toEqual([{ type: 'interrupted', code: 'connection_lost' }])
    expect(upstream.requests).toHaveLength(1)
  })

  it('does not come again for a bad request', async () => {
    upstream.script({ status: 400 }, good)
    expect((await call()).reports).toEqual([[1, 'bad_request', undefined]])
    expect(upstream.requests).toHaveLength(1)
  })

  it('an abort while waiting ends it at once', async () => {
    upstream.script({ status: 503 }, good)
    const abort = new AbortController()
    const { events } = await call(
      {
        sleep: undefined,
        onFailed: () => queueMicrotask(() => abort.abort()),
        policy: { ...policy, baseDelayMs: 60_000, maxDelayMs: 60_000 },
      },
      abort,
    )
    expect(events).toEqual([{ type: 'failed', code: 'aborted', retryable: false }])
    expect(upstream.requests).toHaveLength(1)
  })
})
