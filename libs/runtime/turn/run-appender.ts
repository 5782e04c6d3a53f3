import type { EventLog, FencedAppend } from '#kernel/ports/event-log'

type Waiting = { append: FencedAppend; resolve: (written: boolean) => void; reject: (error: unknown) => void }

/** Rows of one statement; more wait for the next (decision 17). */
const BATCH_MAX = 400

/**
 * Gathers what this process's runs append into one statement at a time. While one is under way the next one fills, so the window widens by
 * itself under load (spec/1 "Data rules").
 */
export class RunAppender {
  readonly #log: EventLog
  #waiting: Waiting[] = []
  #busy = false

  constructor(log: EventLog) {
    this.#log = log
  }

  /** True when written; false when the run's fence is somebody else's or it was killed. */
  append(append: FencedAppend): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ append, resolve, reject })
      if (!this.#busy) {
        this.#busy = true
        queueMicrotask(() => void this.#drain())
      }
    })
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) await this.#write(this.#waiting.splice(0, BATCH_MAX))
    this.#busy = false
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    try {
      const written = await this.#log.appendFenced(batch.map((item) => item.append))
      for (const item of batch) item.resolve(written.has(item.append.runId))
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error)
      // What is wrong with one run's rows is not the others' fault: each alone then.
      else for (const item of batch) await this.#write([item])
    }
  }
}
