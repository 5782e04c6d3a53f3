import type { JobQueue, JobWake } from '#kernel/ports/job-queue'

const TIMER_MAX_MS = 2 ** 31 - 1

/** Wake-ups for outbox rows inside one process (light tier). Bounded by `concurrency`; a row is woken once at a time. */
export class LocalJobQueue implements JobQueue {
  readonly #report: (error: unknown) => void
  readonly #waiting = new Set<string>()
  readonly #running = new Map<string, Promise<void>>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #handler: ((outboxId: string) => Promise<void>) | null = null
  #concurrency = 1
  #closed = false

  constructor(report: (error: unknown) => void) {
    this.#report = report
  }

  wake({ outboxId, dueAt }: JobWake): Promise<void> {
    const wait = dueAt ? dueAt.getTime() - Date.now() : 0
    if (wait <= 0) this.#enqueue(outboxId)
    else {
      // A timer reaches so far, and may be a millisecond early by the clock that the row is judged by: what is not due then waits on.
      const timer = setTimeout(
        () => {
          this.#timers.delete(timer)
          void this.wake({ outboxId, dueAt })
        },
        Math.min(wait, TIMER_MAX_MS),
      )
      timer.unref()
      this.#timers.add(timer)
    }
    return Promise.resolve()
  }

  work(handler: (outboxId: string) => Promise<void>, concurrency: number): Promise<void> {
    this.#handler = handler
    this.#concurrency = concurrency
    this.#pump()
    return Promise.resolve()
  }

  #enqueue(outboxId: string): void {
    if (this.#closed) return
    this.#waiting.add(outboxId)
    setImmediate(() => this.#pump())
  }

  #pump(): void {
    if (!this.#handler || this.#closed) return
    for (const outboxId of this.#waiting) {
      if (this.#running.size >= this.#concurrency) return
      if (this.#running.has(outboxId)) continue
      this.#waiting.delete(outboxId)
      const work = this.#handler(outboxId)
        .catch(this.#report)
        .finally(() => {
          this.#running.delete(outboxId)
          this.#pump()
        })
      this.#running.set(outboxId, work)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const timer of this.#timers) clearTimeout(timer)
    this.#waiting.clear()
    await Promise.all(this.#running.values())
  }
}
