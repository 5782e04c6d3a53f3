import type { MomentName } from './plan.ts'

/** `place`: the replica (0 or 1) where it happened; `runId` where only the run is known. */
export type Seen = { name: MomentName; place?: number; runId?: string }

/** What has been seen to happen in one round, and somebody who waits for one of it. */
export class Moments {
  readonly counts = new Map<MomentName, number>()
  #awaited: { name: MomentName; count: number; reached: (seen: Seen) => void } | null = null

  saw(seen: Seen): void {
    const count = (this.counts.get(seen.name) ?? 0) + 1
    this.counts.set(seen.name, count)
    const awaited = this.#awaited
    if (awaited?.name !== seen.name || count < awaited.count) return
    this.#awaited = null
    awaited.reached(seen)
  }

  /** Calls back in the very moment; before anything has happened. */
  await(name: MomentName, count: number, reached: (seen: Seen) => void): void {
    this.#awaited = { name, count, reached }
  }

  /** Nobody waits any more. False where it was reached already. */
  giveUp(): boolean {
    const waited = this.#awaited !== null
    this.#awaited = null
    return waited
  }
}
