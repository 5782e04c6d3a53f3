import type { Cause } from '#contracts'
import type { ApprovalStore, CheckpointStore, NewApproval } from '#kernel/ports/approval-store'
import type { Clock } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { EffectLedger } from '#kernel/ports/effect-ledger'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { chainEvents } from '#kernel/record/chain'
import type { ChainedEvent, StreamHead } from '#kernel/record/chain'
import type { RunAction } from '#kernel/reducer/actions'
import { isOutUnheld } from '#kernel/reducer/reduce-effects'
import { REDUCER_VERSION } from '#kernel/reducer/state'
import { applyEffectEvents, tellsOfEffects } from './effect-events.ts'
import type { PendingContent } from './ports.ts'
import { envelopEvents } from './run-sealer.ts'

export type RunSuspenderDeps = {
  unitOfWork: UnitOfWork
  log: EventLog
  runs: RunStore
  contents: ContentStore
  actions: { ledger: EffectLedger; approvals: ApprovalStore; checkpoints: CheckpointStore }
  clock: Clock
}

/**
 * Leaves a run where it stands, in one transaction: what happened last, the loop's state, the question to the owner if there is one; the seat
 * is the next one's (spec/2 "Seat"; decision 23).
 */
export class RunSuspender {
  readonly #deps: RunSuspenderDeps

  constructor(deps: RunSuspenderDeps) {
    this.#deps = deps
  }

  /**
   * Answers the events written; null when the run is somebody else's by now. `cancelled`: its owner wants it to end and nothing is out, so it
   * has nothing to wait for, and nothing was written. Where something is to be kept of an action, or one is out, the run stands in line again
   * at once, to be ended by whoever takes it up.
   */
  async suspend(input: {
    run: RunRow
    head: StreamHead
    action: Extract<RunAction, { type: 'suspend' }>
    cause: Cause
    contents: readonly PendingContent[]
    question: NewApproval | null
    /** Milliseconds that the run has been at work so far. */
    spentWallMs: number
  }): Promise<ChainedEvent[] | 'cancelled' | null> {
    const { run, head, action, cause, question, spentWallMs } = input
    const { unitOfWork, log, runs, contents, actions, clock } = this.#deps
    return unitOfWork.run(async () => {
      if (!(await runs.holdFence(run.id, run.fence))) return null
      // With the row locked: what is accepted from here on finds a run that is suspended.
      const isCancelled = (await runs.openCommands(run.id)).some(({ kind }) => kind === 'cancel')
      if (isCancelled && !isOutUnheld(action.state) && !tellsOfEffects(action.events)) return 'cancelled'
      for (const content of input.contents) await contents.put(content)
      await applyEffectEvents(run, action.events, { ...actions, now: clock.now() })
      const { chained, head: after } = chainEvents({
        stream: `run:${run.id}`,
        ownerId: run.owner_id,
        head,
        events: envelopEvents(run, action.events, { at: clock.now().toISOString(), cause, actor: 'kernel' }),
      })
      await log.write(chained)
      await actions.checkpoints.write({
        id: action.checkpoint_id,
        run_id: run.id,
        owner_id: run.owner_id,
        event_offset: after.seq,
        reducer_version: REDUCER_VERSION,
        state: action.state,
        spent_wall_ms: spentWallMs,
      })
      if (question) await actions.approvals.ask(question)
      if (!(await runs.suspend({ id: run.id, fence: run.fence, reason: action.reason })))
        throw new Error(`run ${run.id} cannot be suspended`)
      // What nobody knows the outcome of is waited for all the same (case E12).
      if (isCancelled && action.reason !== 'reconcile_required') await runs.requeue(run.id)
      return chained
    })
  }
}
