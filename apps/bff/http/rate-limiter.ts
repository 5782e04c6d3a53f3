/** Requests per second that are given back, and how many may come at once. */
export type Rate = { perSecond: number; burst: number }

/** Owners or addresses that are remembered; past it, the one unseen for longest is forgotten (and starts afresh). */
const MOST_KEYS = 10_000

type Bucket = { tokens: number; at: number }

/** A token bucket per key, in bounded memory. Times in milliseconds of any steady clock. */
export class RateLimiter {
  readonly #rate: Rate
  readonly #mostKeys: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(rate: Rate, mostKeys = MOST_KEYS) {
    this.#rate = rate
    this.#mostKeys = mostKeys
  }

  /** Takes one; answers 0, or the milliseconds after which there is one again. */
  take(key: string, now: number): number {
    const bucket = this.#buckets.get(key) ?? { tokens: this.#rate.burst, at: now }
    const tokens = Math.min(this.#rate.burst, bucket.tokens + (Math.max(0, now - bucket.at) / 1000) * this.#rate.perSecond)
    this.#buckets.delete(key)
    this.#buckets.set(key, { tokens: tokens >= 1 ? tokens - 1 : tokens, at: now })
    this.#forget()
    return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) / this.#rate.perSecond) * 1000)
  }

  #forget(): void {
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size > this.#mostKeys && oldest !== undefined) this.#buckets.delete(oldest)
  }
}

/** Requests in flight per key. */
export class ConcurrencyLimiter {
  readonly #most: number
  readonly #inFlight = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** A release to call once, or null where the key has its most already. */
  enter(key: string): (() => void) | null {
    const count = this.#inFlight.get(key) ?? 0
    if (count >= this.#most) return null
    this.#inFlight.set(key, count + 1)
    let left = false
    return () => {
      if (left) return
      left = true
      const now = (this.#inFlight.get(key) ?? 1) - 1
      if (now === 0) this.#inFlight.delete(key)
      else this.#inFlight.set(key, now)
    }
  }
}
