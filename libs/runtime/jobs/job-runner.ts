import type { Ids, Scheduler } from '#kernel/ports/clock'
import type { JobQueue } from '#kernel/ports/job-queue'
import type { OutboxRow, OutboxStore } from '#kernel/ports/outbox'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'

/**
 * `isLast`: after this one the row is given up; `isLastAway`: also where what it needs is away. `signal`: the process stops; a handler that then
 * throws hands its row back.
 */
export type JobAttempt = { isLast: boolean; isLastAway: boolean; signal: AbortSignal }

/** Thrown by a handler that may not work now (the kill switch): nothing was tried, and no attempt is counted. The name is kept with the row. */
export class JobStoppedError extends Error {
  override readonly name = 'JobStoppedError'
}

/** Thrown by a handler whose work needs something that is away, its cause: it is tried for about a day, ever more seldom. */
export class JobAwayError extends Error {
  override readonly name = 'JobAwayError'
}

/**
 * Does the work of one outbox row. It closes the row itself (`outbox.close`) in the transaction that stores its result, so that a job that
 * runs twice stores once; a throw is a failed attempt.
 */
export type JobHandler = (row: OutboxRow, attempt: JobAttempt) => Promise<void>

const CLAIM_SECONDS = 120
const SWEEP_MS = 3_000
const SWEEP_ROWS = 100
const ATTEMPTS_MAX = 6
/** With the pauses below some 22 hours; the longest pause between two of them, in seconds. */
const AWAY_ATTEMPTS_MAX = 30
const AWAY_PAUSE_SECONDS = 3_600
/** How soon it is looked whether stopped work may go on. Seconds. */
const STOPPED_SECONDS = 30

export type JobRunnerDeps = {
  outbox: OutboxStore
  queue: JobQueue
  unitOfWork: UnitOfWork
  ids: Ids
  scheduler: Scheduler
  handlers: Readonly<Record<string, JobHandler>>
  report(error: unknown, topic: string): void
}

/** Rows in, work out: adds and wakes rows, claims them, retries with growing pauses, gives up visibly (decision 28). */
export class JobRunner {
  readonly #deps: JobRunnerDeps
  #stop: () => void = () => undefined
  readonly #stopping = new AbortController()

  constructor(deps: JobRunnerDeps) {
    this.#deps = deps
  }

  /** Adds work inside the current unit of work and wakes a worker after its commit. */
  async add(job: { topic: string; ownerId: string | null; payload: Record<string, string>; dueAt?: Date }): Promise<void> {
    const { outbox, queue, unitOfWork, ids, report } = this.#deps
    const id = ids.next()
    await outbox.add({ id, ...job })
    unitOfWork.afterCommit(() => {
      queue.wake({ outboxId: id, dueAt: job.dueAt }).catch((error: unknown) => report(error, job.topic))
    })
  }

  async start(concurrency: number): Promise<void> {
    await this.#deps.queue.work((id) => this.perform(id), concurrency)
    this.#scheduleSweep(0)
  }

  #scheduleSweep(milliseconds: number): void {
    this.#stop = this.#deps.scheduler.after(milliseconds, () => {
      this.#sweep()
        .catch((error: unknown) => this.#deps.report(error, 'outbox'))
        .finally(() => {
          if (!this.#stopping.signal.aborted) this.#scheduleSweep(SWEEP_MS)
        })
    })
  }

  /** Wakes rows whose wake-up was lost (case Q1, Q5). */
  async #sweep(): Promise<void> {
    for (const outboxId of await this.#deps.outbox.open(SWEEP_ROWS)) await this.#deps.queue.wake({ outboxId })
  }

  async perform(id: string): Promise<void> {
    const { outbox, handlers, report } = this.#deps
    const row = await outbox.claim(id, CLAIM_SECONDS)
    if (!row) return
    const handler = handlers[row.topic]
    const { signal } = this.#stopping
    const isLast = row.attempts >= ATTEMPTS_MAX
    const isLastAway = row.attempts >= AWAY_ATTEMPTS_MAX
    try {
      if (!handler) throw new Error(`there is no handler for ${row.topic}`)
      await handler(row, { isLast, isLastAway, signal })
    } catch (error) {
      // Who is told to stop has not failed: the row is the next process's at once, also after its last attempt.
      if (signal.aborted) return outbox.fail(row.id, 'stopped', 0)
      if (error instanceof JobStoppedError) return outbox.fail(row.id, error.name, STOPPED_SECONDS, { uncounted: true })
      report(error, row.topic)
      if (error instanceof JobAwayError) {
        await outbox.fail(
          row.id,
          error.cause instanceof Error ? error.cause.name : error.name,
          Math.min(2 ** row.attempts, AWAY_PAUSE_SECONDS),
        )
        if (isLastAway) await outbox.close(row.id, 'given_up')
        return
      }
      await outbox.fail(row.id, error instanceof Error ? error.name : 'error', 2 ** Math.min(row.attempts, 8))
      if (isLast) await outbox.close(row.id, 'given_up')
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#stop()
    await this.#deps.queue.close()
  }
}
