import { describe, expect, it } from 'vitest'
import fc from 'fast-check'
import type { ModelFailure } from '#kernel/ports/model-gateway'
import { retryDelayMs } from './retry.ts'

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
