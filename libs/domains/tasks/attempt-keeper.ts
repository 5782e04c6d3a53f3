import type { AttemptStatus, StartAttempt, SuspendReason } from '#contracts'
import type { AttemptRow, TaskRow } from '#kernel/ports/task-store'
import { isSettledAction } from '#kernel/tasks/action-state'
import { attemptStatusOf, isCancelledTask, isLiveAttempt, isQuiet } from '#kernel/tasks/task-state'
import type { ActionPlane } from './action-plane.ts'
import { AttemptCancels } from './attempt-cancels.ts'
import { AttemptCheckpoints } from './attempt-checkpoints.ts'
import { AttemptEnds } from './attempt-ends.ts'
import { AttemptStandings } from './attempt-standings.ts'
import { AttemptStarts } from './attempt-starts.ts'
import type { RuntimeAdapter } from './attempt-starts.ts'
import type { TaskDeps } from './deps.ts'
import { tellChange } from './task-stream.ts'

/**
 * Attempts from their start to their end: chosen by capabilities, looked after by one process at a time, recovered from checkpoint and
 * events, cancelled only when quiet (`003…` §4, §5).
 */
export class AttemptKeeper {
  readonly #deps: TaskDeps
  readonly #plane: ActionPlane
  readonly #starts: AttemptStarts
  readonly #checkpoints: AttemptCheckpoints
  readonly #standings: AttemptStandings
  readonly #ends: AttemptEnds
  readonly #cancels: AttemptCancels

  constructor(parts: {
    deps: TaskDeps
    plane: ActionPlane
    runtimes: readonly RuntimeAdapter[]
    schedule: (attempt: AttemptRow) => Promise<void>
  }) {
    const { deps, plane } = parts
    this.#deps = deps
    this.#plane = plane
    this.#checkpoints = new AttemptCheckpoints(deps)
    this.#standings = new AttemptStandings(deps, this.#checkpoints)
    this.#starts = new AttemptStarts({ ...parts, standings: this.#standings })
    this.#ends = new AttemptEnds({ deps, plane, standings: this.#standings })
    this.#cancels = new AttemptCancels({ deps, plane, ends: this.#ends, sync: (attemptId) => this.sync(attemptId) })
  }

  get runtimes(): readonly RuntimeAdapter[] {
    return this.#starts.runtimes
  }

  start(ownerId: string, taskId: string, wanted: StartAttempt, diagnosticsId: string | null = null): Promise<AttemptRow> {
    return this.#starts.start(ownerId, taskId, wanted, diagnosticsId)
  }

  /** Lets an attempt's status and its run follow its actions; where it stops to wait, a checkpoint says where. */
  async sync(attemptId: string): Promise<void> {
    const { unitOfWork, store } = this.#deps
    await unitOfWork.run(async () => {
      const found = await store.attempt(attemptId)
      const task = found && (await store.lock(found.task_id))
      const attempt = await store.attempt(attemptId)
      if (!task || !attempt || attempt.runtime !== 'external' || !isLiveAttempt(attempt.status)) return
      const actions = await store.actions(attemptId)
      const status = attemptStatusOf(actions.map(({ state }) => state))
      if (status !== attempt.status) {
        await store.changeAttempt(attemptId, { status, ended_at: null })
        await tellChange(this.#deps, task, attempt, status, null)
      }
      await this.#standings.suspend(task, attempt, waitsFor(status))
    })
  }

  /** A task's state as its stream alone says it. */
  rebuild: AttemptCheckpoints['rebuild'] = (taskId, checkpoint) => this.#checkpoints.rebuild(taskId, checkpoint)

  /**
   * Looks after an attempt that others drive: by one process at a time, from its checkpoint and the events after it; what is out is read
   * back or sent where it never was; what is being cancelled is only cancelled further (`003…` §4). Answers false where somebody else does.
   */
  async recover(attemptId: string): Promise<boolean> {
    const { store, process } = this.#deps
    const claim = await store.claimAttempt(attemptId, process)
    if (!claim) return false
    try {
      const state = await this.#checkpoints.resumedState(attemptId)
      if (!state) return true
      if (isCancelledTask(state.status)) {
        await this.continueCancel(state.task_id)
        return true
      }
      // What was sent before comes first: nothing that depends on it passes it.
      for (const actionId of state.open) {
        if (!(await this.#stillOurs(attemptId, claim.fence))) return false
        await this.#plane.advance(actionId)
      }
      await this.sync(attemptId)
      return true
    } finally {
      await store.releaseAttempt(attemptId, claim.fence)
    }
  }

  /** Takes what is open of an attempt as far as it goes now; false where something of it is still out, or nobody knows. Not inside a unit of work. */
  async settleActions(attemptId: string): Promise<boolean> {
    const { store } = this.#deps
    for (const action of await store.actions(attemptId)) {
      if (!isSettledAction(action.state)) await this.#plane.advance(action.id)
    }
    return isQuiet((await store.actions(attemptId)).map(({ state }) => state))
  }

  async #stillOurs(attemptId: string, fence: number): Promise<boolean> {
    return this.#deps.unitOfWork.run(() => this.#deps.runs.holdFence(attemptId, fence))
  }

  cancel(...task: Parameters<AttemptCancels['cancel']>): Promise<void> {
    return this.#cancels.cancel(...task)
  }

  continueCancel(taskId: string): Promise<void> {
    return this.#cancels.continueCancel(taskId)
  }

  /** A candidate was handed over and is not good enough yet: the attempt waits for the next. Inside a unit of work that holds the task. */
  async again(task: TaskRow, attempt: AttemptRow): Promise<void> {
    await this.#standings.resume(task, attempt, 'waiting_for_user')
    await this.#standings.suspend(task, attempt, 'waiting_for_user')
  }

  endExternal(...ending: Parameters<AttemptEnds['endExternal']>): Promise<boolean> {
    return this.#ends.endExternal(...ending)
  }

  endLooped(...ending: Parameters<AttemptEnds['endLooped']>): Promise<void> {
    return this.#ends.endLooped(...ending)
  }

  overtake(attemptId: string): Promise<'finished' | 'ended' | null> {
    return this.#ends.overtake(attemptId)
  }

  interrupt(attemptId: string, reason: string): Promise<void> {
    return this.#ends.interrupt(attemptId, reason)
  }
}

/** Whoever drives a live attempt that waits for nothing else is waited for. */
function waitsFor(status: AttemptStatus): SuspendReason {
  return status === 'waiting_for_approval' || status === 'waiting_for_effect' || status === 'reconcile_required'
    ? status
    : 'waiting_for_user'
}
