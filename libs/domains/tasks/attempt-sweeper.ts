import type { AttemptRow } from '#kernel/ports/task-store'
import type { AttemptKeeper } from './attempt-keeper.ts'
import type { TaskDeps } from './deps.ts'
import type { TaskRetention } from './task-retention.ts'

/** Looks for attempts that nobody woke. Milliseconds. */
const SWEEP_MS = 2_000
const ROWS = 100

/** What runtimes with a loop of their own do for attempts. */
export interface LoopedRuntimes {
  /** Takes the attempt's run if it waits to be taken; resolves when it stopped. */
  drive(attempt: AttemptRow): Promise<void>
  /** Its run finished: its candidate goes on trial. */
  conclude(attempt: AttemptRow): Promise<void>
  /** It is over: where another attempt is to follow it, and none has, that one begins. */
  follow(attempt: AttemptRow): Promise<void>
}

/** Looks after attempts whose submitter, owner or process is gone, and takes up those that waited; on any number of processes at once. */
export class AttemptSweeper {
  readonly #deps: Pick<TaskDeps, 'store' | 'scheduler' | 'process' | 'report'>
  readonly #keeper: AttemptKeeper
  readonly #looped: LoopedRuntimes
  readonly #retention: TaskRetention
  readonly #underWay = new Map<string, Promise<void>>()
  #cancelTimer: () => void = () => undefined
  #stopped = true
  #round: Promise<void> = Promise.resolve()

  constructor(parts: {
    deps: Pick<TaskDeps, 'store' | 'scheduler' | 'process' | 'report'>
    keeper: AttemptKeeper
    looped: LoopedRuntimes
    retention: TaskRetention
  }) {
    this.#deps = parts.deps
    this.#keeper = parts.keeper
    this.#looped = parts.looped
    this.#retention = parts.retention
  }

  async start(): Promise<void> {
    this.#stopped = false
    await this.sweep()
    this.#plan()
  }

  #plan(): void {
    if (this.#stopped) return
    this.#cancelTimer = this.#deps.scheduler.after(SWEEP_MS, () => {
      this.#round = this.sweep()
        .catch((error: unknown) => this.#deps.report(error, 'tasks'))
        .then(() => this.#plan())
    })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancelTimer()
    await this.#round
    await Promise.all(this.#underWay.values())
  }

  /** One round; it begins work and does not wait for it. */
  async sweep(): Promise<void> {
    const { store, process } = this.#deps
    for (const attempt of await store.overtakenAttempts(process, ROWS)) this.#begin(attempt.id, () => this.#overtake(attempt))
    for (const attempt of await store.unfollowedAttempts({ attemptId: null, limit: ROWS }))
      this.#begin(attempt.id, () => this.#looped.follow(attempt))
    for (const attempt of await store.queuedAttempts(ROWS)) this.take(attempt)
    for (const attempt of await store.strandedAttempts(process, ROWS)) this.take(attempt)
    for (const task of await store.orphaned(ROWS))
      this.#begin(task.id, () => this.#keeper.cancel(task.owner_id, task.id, 'parent_cancelled'))
    for (const { id } of await this.#retention.due(ROWS)) this.#begin(id, () => this.#retention.forget(id))
    for (const task of await store.cancelling(ROWS)) this.#begin(task.id, () => this.#keeper.continueCancel(task.id))
  }

  /** Something that an attempt waited for may be there. */
  wake(attemptId: string): void {
    if (this.#stopped) return
    this.#deps.store.attempt(attemptId).then(
      (attempt) => attempt && this.take(attempt),
      (error: unknown) => this.#deps.report(error, attemptId),
    )
  }

  take(attempt: AttemptRow): void {
    this.#begin(attempt.id, async () => {
      if (attempt.runtime === 'external') {
        await this.#keeper.recover(attempt.id)
        return
      }
      await this.#looped.drive(attempt)
      await this.#overtake(attempt)
    })
  }

  async #overtake(attempt: AttemptRow): Promise<void> {
    const outcome = await this.#keeper.overtake(attempt.id)
    if (attempt.runtime === 'external' || outcome === null) return
    if (outcome === 'finished') await this.#looped.conclude(attempt)
    await this.#looped.follow(attempt)
  }

  /** One thing at a time for each. */
  #begin(id: string, work: () => Promise<void>): void {
    if (this.#stopped || this.#underWay.has(id)) return
    const done = work()
      .catch((error: unknown) => this.#deps.report(error, id))
      .finally(() => this.#underWay.delete(id))
    this.#underWay.set(id, done)
  }
}
