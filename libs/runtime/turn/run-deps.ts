import type { Trust } from '#contracts'
import type { Checkpoint } from '#kernel/ports/approval-store'
import type { Clock, Ids, Scheduler } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { Fanout } from '#kernel/ports/fanout'
import type { ModelGateway } from '#kernel/ports/model-gateway'
import type { RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { FoldInsert } from './fold-answer.ts'
import type { ContextProjector, EndpointQuirks, RunPin, SproutKeeper } from './ports.ts'
import type { ActionDeps } from './action-facts.ts'
import type { RunAppender } from './run-appender.ts'
import type { RunSealer } from './run-sealer.ts'
import type { SaidSegment } from './run-so-far.ts'
import type { RunSuspender } from './run-suspender.ts'

/** Everything that running runs needs from outside. */
export type RunHostDeps = {
  unitOfWork: UnitOfWork
  log: EventLog
  runs: RunStore
  contents: ContentStore
  sprouts: SproutKeeper
  appender: RunAppender
  sealer: RunSealer
  suspender: RunSuspender
  actions: ActionDeps
  projector: ContextProjector
  gateway: ModelGateway
  quirks: EndpointQuirks
  fanout: Fanout
  clock: Clock
  ids: Ids
  scheduler: Scheduler
  /** Milliseconds before try number `tries` + 1, or null when it is not worth it. */
  retryDelay(failure: { retryable: boolean; retryAfterMs?: number; tries: number }): number | null
  /** Told when a run that was driven here has ended or is another process's: what tools keep open for it may go. */
  leaveRun(runId: string): void
  report(error: unknown, runId: string): void
}

/** Where a run that waited goes on: the loop's state, and what its record shows of what was said and done. */
export type RunResumption = {
  checkpoint: Checkpoint
  pin: RunPin
  segments: readonly SaidSegment[]
  inserts: readonly FoldInsert[]
  /** The meet of everything that the model saw so far (K1). */
  trust: Trust
}
