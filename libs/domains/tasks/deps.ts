import type { AdmissionFacts } from '#contracts'
import type { Clock, Ids, Scheduler } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { TaskStore } from '#kernel/ports/task-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { ActionDeps } from '#runtime/turn/action-facts'

/** Judges one action; what it answers is a message and is checked as one. Admission judges too, and the stricter word counts. */
export interface TaskPolicy {
  evaluate(actionId: string, facts: AdmissionFacts): Promise<unknown>
}

/** What delegated work stands on. */
export type TaskDeps = {
  unitOfWork: UnitOfWork
  store: TaskStore
  runs: RunStore
  contents: ContentStore
  log: EventLog
  clock: Clock
  ids: Ids
  scheduler: Scheduler
  actions: ActionDeps
  policy: TaskPolicy
  /** Names this process in claims and leases; `alone`: no other process lives (decision 4). */
  process: { holder: string; alone: boolean }
  /** Stores the resolved profile and answers its version and hash. */
  profile(ownerId: string, profile: Record<string, string | number | null>): Promise<{ versionId: string; hash: string }>
  /** Ends a run that a loop drives and that waits; false when it is at work. */
  endWaiting(run: RunRow): Promise<boolean>
  /** Tells a run that is at work that a command was accepted for it. */
  announce(runId: string): void
  report(error: unknown, id: string): void
}
