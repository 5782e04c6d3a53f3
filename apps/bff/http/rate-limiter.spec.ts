import { describe, expect, it } from 'vitest'
import { ConcurrencyLimiter, RateLimiter } from './rate-limiter.ts'

describe('the rate limiter', () => {
  it('lets a burst through, then as many as are given back', () => {
    const limiter = new RateLimiter({ perSecond: 2, burst: 3 })
    expect([0, 0, 0].map(() => limiter.take('a', 1000))).toEqual([0, 0, 0])
    expect(limiter.take('a', 1000)).toBe(500)
    expect(limiter.take('a', 1499)).toBeGreaterThan(0)
    expect(limiter.take('a', 1500)).toBe(0)
    expect(limiter.take('a', 1500)).toBeGreaterThan(0)
  })

  it('keeps keys apart', () => {
    const limiter = new RateLimiter({ perSecond: 1, burst: 1 })
    expect(limiter.take('a', 0)).toBe(0)
    expect(limiter.take('b', 0)).toBe(0)
    expect(limiter.take('a', 0)).toBe(1000)
  })

  it('never holds more than the burst, and never gains from a clock that goes back', () => {
    const limiter = new RateLimiter({ perSecond: 1, burst: 2 })
    expect(limiter.take('a', 1_000_000)).toBe(0)
    expect(limiter.take('a', 0)).toBe(0)
    expect(limiter.take('a', 0)).toBeGreaterThan(0)
    expect([0, 0, 0].map(() => limiter.take('a', 9_000_000) === 0)).toEqual([true, true, false])
  })

  it('forgets whoever was unseen for longest when it is full', () => {
    const limiter = new RateLimiter({ perSecond: 0.001, burst: 1 }, 2)
    limiter.take('a', 0)
    limiter.take('b', 0)
    limiter.take('a', 0)
    limiter.take('c', 0)
    expect(limiter.take('a', 0)).toBeGreaterThan(0)
    expect(limiter.take('b', 0)).toBe(0)
  })
})

describe('the concurrency limiter', () => {
  it('lets so many in at once, and releases once each', () => {
    const limiter = new ConcurrencyLimiter(2)
    const first = limiter.enter('a')
    expect(first).not.toBeNull()
    expect(limiter.enter('a')).not.toBeNull()
    expect(limiter.enter('a')).toBeNull()
    expect(limiter.enter('b')).not.toBeNull()
    first?.()
    first?.()
    expect(limiter.enter('a')).not.toBeNull()
    expect(limiter.enter('a')).toBeNull()
  })
})
