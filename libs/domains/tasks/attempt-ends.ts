import type { AttemptStatus } from '#contracts'
import type { RunRow } from '#kernel/ports/run-store'
import type { AttemptRow, TaskRow } from '#kernel/ports/task-store'
import { isCancelledTask, isLiveAttempt, isQuiet } from '#kernel/tasks/task-state'
import type { ActionPlane } from './action-plane.ts'
import { AttemptBudget } from './attempt-budget.ts'
import type { AttemptStandings } from './attempt-standings.ts'
import type { TaskDeps } from './deps.ts'
import { tellChange } from './task-stream.ts'

/** Ends of attempts and their runs: as their task says, or because the run ended without it. */
export class AttemptEnds {
  readonly #deps: TaskDeps
  readonly #plane: ActionPlane
  readonly #standings: AttemptStandings
  readonly #budget: AttemptBudget

  constructor(parts: { deps: TaskDeps; plane: ActionPlane; standings: AttemptStandings }) {
    this.#deps = parts.deps
    this.#plane = parts.plane
    this.#standings = parts.standings
    this.#budget = new AttemptBudget(parts.deps)
  }

  /** Ends an attempt that others drive, and its run. Inside a unit of work that holds the task; false where somebody has the run, or a check is out. */
  async endExternal(
    task: TaskRow,
    attempt: AttemptRow,
    ending: {
      status: Extract<AttemptStatus, 'candidate_verified' | 'needs_escalation' | 'cancelled'>
      outcome: 'finished' | 'interrupted' | 'failed'
    },
  ): Promise<boolean> {
    const { store, runs, clock, process, actions } = this.#deps
    const settled = await this.#budget.settleCheck({ task, attempt })
    const run = settled && (await runs.takeQueued(attempt.id, process.holder))
    if (!run) return false
    await this.#recordRunEnd(run, ending.outcome)
    const open = await runs.openCommands(run.id)
    await runs.recordCommands(
      open.map(({ id }) => id),
      false,
    )
    await actions.approvals.revokeOf(run.id, clock.now())
    const reason = { finished: null, interrupted: 'cancelled', failed: 'stuck' }[ending.outcome]
    if (!(await runs.end({ id: run.id, fence: run.fence, state: ending.outcome, reason }))) {
      throw new Error(`run ${run.id} was taken while it was being ended`)
    }
    await store.changeAttempt(attempt.id, { status: ending.status, ended_at: clock.now() })
    await tellChange(this.#deps, task, attempt, ending.status, reason)
    return true
  }

  async #recordRunEnd(run: RunRow, outcome: 'finished' | 'interrupted' | 'failed'): Promise<void> {
    const end = { candidate_id: null, delta_count: 0, turns: 0 }
    const event = {
      finished: { type: 'run.finished' as const, payload: end },
      interrupted: { type: 'run.interrupted' as const, payload: { reason: 'cancelled' as const, which: null, code: null, ...end } },
      failed: { type: 'run.failed' as const, payload: { code: 'stuck' as const, rule: null, ...end } },
    }[outcome]
    // What is cancelled is left where it waited; any other end is what it waited for.
    const resumption = outcome === 'interrupted' ? null : await this.#standings.resumption(run)
    const at = this.#deps.clock.now().toISOString()
    const envelope = {
      run_id: run.id,
      character_id: run.character_id,
      trace_id: run.trace_id,
      actor: 'kernel',
      at,
      cause: { tag: 'end_attempt' },
    } as const
    await this.#deps.log.append({
      stream: `run:${run.id}`,
      ownerId: run.owner_id,
      events: [...(resumption ? [resumption] : []), event].map((each) => ({ ...each, ...envelope })),
    })
  }

  /** A loop's attempt whose run is over, and nothing of it out. Inside a unit of work that holds the task. */
  async endLooped(task: TaskRow, attempt: AttemptRow, ending: { status: AttemptStatus; reason: string | null }): Promise<void> {
    const { store, clock } = this.#deps
    await this.#budget.settleRun({ task, attempt })
    await store.changeAttempt(attempt.id, { status: ending.status, ended_at: clock.now() })
    await tellChange(this.#deps, task, attempt, ending.status, ending.reason)
  }

  /**
   * An attempt whose run ended without it: cancelled, killed, or its process died. `finished` where there is a candidate to be looked at;
   * null where it is not over, or something of it is still out.
   */
  async overtake(attemptId: string): Promise<'finished' | 'ended' | null> {
    const { unitOfWork, store, runs, actions } = this.#deps
    return unitOfWork.run(async () => {
      const found = await store.attempt(attemptId)
      const task = found && (await store.lock(found.task_id))
      const attempt = await store.attempt(attemptId)
      const run = await runs.get(attemptId)
      if (!task || !attempt || !run || run.ended_at === null || !isLiveAttempt(attempt.status)) return null
      if (run.state === 'finished' && !isCancelledTask(task.status)) {
        // What it held is free for the checks that look at its candidate.
        await this.#budget.settleRun({ task, attempt })
        return 'finished'
      }
      await this.#plane.cancelOpen(task, attemptId)
      const open = await actions.ledger.open(attemptId)
      const isOut = open.some(({ state, consequence }) => state !== 'unknown' || consequence === 'lasting')
      if (isOut || !isQuiet((await store.actions(attemptId)).map(({ state }) => state))) return null
      const settled = await this.#budget.settleCheck({ task, attempt })
      if (!settled) return null
      const ending = { status: isCancelledTask(task.status) ? 'cancelled' : 'interrupted', reason: run.reason } as const
      if (attempt.runtime !== 'external') await this.endLooped(settled.task, settled.attempt, ending)
      else {
        await store.changeAttempt(attemptId, { status: ending.status, ended_at: this.#deps.clock.now() })
        await tellChange(this.#deps, task, attempt, ending.status, ending.reason)
      }
      return 'ended'
    })
  }

  /** A loop's run that ended with nothing to show. */
  async interrupt(attemptId: string, reason: string): Promise<void> {
    const { unitOfWork, store } = this.#deps
    await unitOfWork.run(async () => {
      const found = await store.attempt(attemptId)
      const task = found && (await store.lock(found.task_id))
      const attempt = await store.attempt(attemptId)
      if (!task || !attempt || !isLiveAttempt(attempt.status)) return
      const settled = await this.#budget.settleCheck({ task, attempt })
      if (settled) await this.endLooped(settled.task, settled.attempt, { status: 'interrupted', reason })
    })
  }
}
