import { LingtaiError } from '#contracts'
import type { AttemptRow, TaskRow } from '#kernel/ports/task-store'
import { isSettledAction } from '#kernel/tasks/action-state'
import { isLiveAttempt, isQuiet, nextTaskStatus } from '#kernel/tasks/task-state'
import type { ActionPlane } from './action-plane.ts'
import type { AttemptEnds } from './attempt-ends.ts'
import type { TaskDeps } from './deps.ts'
import { appendTaskEvents } from './task-stream.ts'

/** Cancelling: marked, stopped, revoked, read back, and over once nothing of it is out (cases E11, E12). */
export class AttemptCancels {
  readonly #deps: TaskDeps
  readonly #plane: ActionPlane
  readonly #ends: AttemptEnds
  readonly #sync: (attemptId: string) => Promise<void>

  constructor(parts: { deps: TaskDeps; plane: ActionPlane; ends: AttemptEnds; sync: (attemptId: string) => Promise<void> }) {
    this.#deps = parts.deps
    this.#plane = parts.plane
    this.#ends = parts.ends
    this.#sync = parts.sync
  }

  /** Marks a task as cancelled, revokes what was asked for it, and ends it once it is quiet. Throws not_found. */
  async cancel(ownerId: string, taskId: string, why: 'cancel_requested' | 'parent_cancelled' = 'cancel_requested'): Promise<void> {
    const { unitOfWork, store, clock } = this.#deps
    const isAsked = why === 'cancel_requested'
    await unitOfWork.run(async () => {
      if (!(await store.find(ownerId, taskId))) throw new LingtaiError('not_found')
      const task = await store.lock(taskId)
      const to = task && nextTaskStatus(task.status, 'cancel_requested')
      if (!task || !to) return
      await store.change(taskId, { status: to, cancel_requested_at: clock.now() })
      const payload = { task_id: taskId, from: task.status, to, reason: why, by: isAsked ? ownerId : null }
      await appendTaskEvents(this.#deps, task, [{ type: 'task.changed', payload }], { actor: isAsked ? 'owner' : 'kernel', tag: 'cancel' })
      for (const attempt of await store.attempts(taskId)) {
        if (isLiveAttempt(attempt.status)) await this.#cancelAttempt({ ...task, status: to }, attempt)
      }
    })
    for (const child of await store.openChildren(taskId)) await this.cancel(ownerId, child.id, 'parent_cancelled')
    for (const attempt of await store.attempts(taskId)) {
      if (!isLiveAttempt(attempt.status)) continue
      this.#plane.abort(attempt.id)
      this.#deps.announce(attempt.id)
    }
    await this.continueCancel(taskId)
  }

  async #cancelAttempt(task: TaskRow, attempt: AttemptRow): Promise<void> {
    const { runs, actions, ids, clock } = this.#deps
    const open = await runs.openCommands(attempt.id)
    if (!open.some(({ kind }) => kind === 'cancel')) {
      await runs.insertCommand({ id: ids.next(), run_id: attempt.id, owner_id: task.owner_id, kind: 'cancel', content_id: null })
    }
    await actions.approvals.revokeOf(attempt.id, clock.now())
    await this.#plane.cancelOpen(task, attempt.id)
  }

  /** As far as it can be cancelled now: what is out is read back, and `cancelled` is said when nothing is (case E12). */
  async continueCancel(taskId: string): Promise<void> {
    const { store, runs } = this.#deps
    for (const attempt of await store.attempts(taskId)) {
      if (!isLiveAttempt(attempt.status)) continue
      for (const action of await store.actions(attempt.id)) {
        if (!isSettledAction(action.state)) await this.#plane.advance(action.id)
      }
      const run = await runs.get(attempt.id)
      const waits = run && (run.state === 'queued' || (run.state === 'suspended' && run.reason !== 'reconcile_required'))
      if (attempt.runtime !== 'external' && waits) await this.#deps.endWaiting(run)
      if (attempt.runtime === 'external') await this.#sync(attempt.id)
    }
    await this.#finishCancel(taskId)
  }

  async #finishCancel(taskId: string): Promise<void> {
    const { unitOfWork, store, actions } = this.#deps
    await unitOfWork.run(async () => {
      const task = await store.lock(taskId)
      const to = task && nextTaskStatus(task.status, 'quiet')
      if (!task || !to || !isQuiet((await store.actionsOfTask(taskId)).map(({ state }) => state))) return
      // What it handed on is part of it.
      if ((await store.openChildren(taskId)).length > 0) return
      for (const attempt of await store.attempts(taskId)) {
        const open = await actions.ledger.open(attempt.id)
        if (open.some(({ state, consequence }) => state !== 'unknown' || consequence === 'lasting')) return
        if (isLiveAttempt(attempt.status) && !(await this.#endCancelled(task, attempt))) return
      }
      await store.change(taskId, { status: to, ended_at: this.#deps.clock.now() })
      const payload = { task_id: taskId, from: task.status, to, reason: 'quiet', by: null }
      await appendTaskEvents(this.#deps, task, [{ type: 'task.changed', payload }], { actor: 'kernel', tag: 'cancel' })
    })
  }

  async #endCancelled(task: TaskRow, attempt: AttemptRow): Promise<boolean> {
    if (attempt.runtime !== 'external') return false
    return this.#ends.endExternal(task, attempt, { status: 'cancelled', outcome: 'interrupted' })
  }
}
