import type { TaskStatus } from '#contracts'
import type { AttemptRow, TaskRow } from '#kernel/ports/task-store'
import { isSettledAction } from '#kernel/tasks/action-state'
import { emptyTask, foldTask, TASK_STATE_VERSION } from '#kernel/tasks/fold'
import type { FoldedTask } from '#kernel/tasks/fold'
import { isLiveAttempt } from '#kernel/tasks/task-state'
import type { TaskDeps } from './deps.ts'
import { appendTaskEvents, taskStream } from './task-stream.ts'

const PAGE = 1_000

/** What the rows of a task and its stream say differs: nobody goes on from that. */
export class TaskRebuildError extends Error {
  constructor(taskId: string, what: string) {
    super(`task ${taskId} is not what its stream rebuilds to: ${what}`)
    this.name = 'TaskRebuildError'
  }
}

/** Where attempts stood when they stopped to wait, and where they stand by that and the events after it (`003…` §4). */
export class AttemptCheckpoints {
  readonly #deps: TaskDeps

  constructor(deps: TaskDeps) {
    this.#deps = deps
  }

  /** Says where an attempt stands now; answers the checkpoint's id. Inside a unit of work that holds the task. */
  async write(task: TaskRow, attempt: Pick<AttemptRow, 'id' | 'workspace_ref'>): Promise<string> {
    const { store, log, ids, clock } = this.#deps
    const { state, offset } = await this.rebuild(task.id, null)
    const pending = Object.values(state.actions).flatMap((action) =>
      action.effect_id !== null && !isSettledAction(action.state) ? [action.effect_id] : [],
    )
    const id = ids.next()
    await store.insertCheckpoint({
      id,
      owner_id: task.owner_id,
      attempt_id: attempt.id,
      state_version: TASK_STATE_VERSION,
      event_offset: offset,
      workspace_ref: attempt.workspace_ref,
      pending_effect_ids: pending,
      context_projection_ref: null,
      state,
      at: clock.now(),
    })
    const payload = { attempt_id: attempt.id, checkpoint_id: id, event_offset: offset, pending_effect_ids: pending }
    await appendTaskEvents({ log, clock }, task, [{ type: 'attempt.checkpointed', payload }], { actor: 'kernel', tag: 'checkpoint' })
    return id
  }

  /** A task's state as a checkpoint and the events after it say; from the beginning where there is none to build on. */
  async rebuild(
    taskId: string,
    checkpoint: { state_version: number; state: FoldedTask; event_offset: number } | null,
  ): Promise<{ state: FoldedTask; offset: number }> {
    const isUsable = checkpoint?.state_version === TASK_STATE_VERSION
    let state = isUsable ? checkpoint.state : emptyTask
    let offset = isUsable ? checkpoint.event_offset : 0
    for (;;) {
      const page = await this.#deps.log.read(taskStream(taskId), { after: offset, limit: PAGE })
      for (const { record } of page) state = foldTask(state, record)
      offset = page.at(-1)?.record.seq ?? offset
      if (page.length < PAGE) return { state, offset }
    }
  }

  /**
   * Where a live attempt stands: its newest checkpoint and the events after it, and nothing that the rows do not say too. Null for one that
   * is over. Throws TaskRebuildError.
   */
  async resumedState(attemptId: string): Promise<{ task_id: string; status: TaskStatus; open: string[] } | null> {
    const { unitOfWork, store } = this.#deps
    return unitOfWork.run(async () => {
      const found = await store.attempt(attemptId)
      const task = found && (await store.lock(found.task_id))
      const attempt = await store.attempt(attemptId)
      if (!task || !attempt || !isLiveAttempt(attempt.status)) return null
      const { state } = await this.rebuild(task.id, await store.latestCheckpoint(attemptId))
      const actions = await store.actions(attemptId)
      for (const { id, state: own } of actions) {
        if (state.actions[id]?.state !== own) throw new TaskRebuildError(task.id, `action ${id} is ${own}`)
      }
      const { spent_micros, reserved_micros, used_actions } = state.budget
      const isSame = spent_micros === task.spent_micros && reserved_micros === task.reserved_micros && used_actions === task.used_actions
      if (!isSame || state.status !== task.status) throw new TaskRebuildError(task.id, 'its budget or its status')
      const open = Object.values(state.actions)
        .filter((action) => action.attempt_id === attemptId && !isSettledAction(action.state))
        .toSorted((left, right) => left.ordinal - right.ordinal)
      return { task_id: task.id, status: task.status, open: open.map(({ action_id }) => action_id) }
    })
  }
}
