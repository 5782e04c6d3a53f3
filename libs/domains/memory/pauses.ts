import type { Clock } from '#kernel/ports/clock'

/** After a first refusal, and at most, in ms: each further one doubles the pause. */
const FIRST_MS = 60_000
const LONGEST_MS = 24 * 60 * 60_000
/** Kept at once; beyond it the one that was refused longest ago is tried again first. */
const KEPT_MAX = 2_000

/** What was refused and is let rest for a growing while. Of one process: another one, or the next, finds out by one try of its own. */
export class Pauses {
  readonly #clock: Pick<Clock, 'now'>
  readonly #kept = new Map<string, { refusals: number; until: number }>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  refused(key: string): void {
    const refusals = (this.#kept.get(key)?.refusals ?? 0) + 1
    this.#kept.delete(key)
    this.#kept.set(key, { refusals, until: this.#clock.now().getTime() + Math.min(FIRST_MS * 2 ** (refusals - 1), LONGEST_MS) })
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest)
  }

  served(key: string): void {
    this.#kept.delete(key)
  }

  /** Whose time has not come yet. */
  resting(): string[] {
    const now = this.#clock.now().getTime()
    return [...this.#kept].flatMap(([key, { until }]) => (until > now ? [key] : []))
  }
}
