import { LingtaiError } from '#contracts'
import type { RunRow } from '#kernel/ports/run-store'
import type { ActionRow, AttemptRow, TaskRow } from '#kernel/ports/task-store'
import type { ToolCall } from '#kernel/reducer/state'
import { RunActions } from '#runtime/turn/run-actions'
import type { TaskDeps } from './deps.ts'
import { NarrowedGrants } from './narrowed-grants.ts'

/** An action among its surroundings. */
export type Placed = { task: TaskRow; attempt: AttemptRow; run: RunRow; action: ActionRow }

/** Null for one that there is not. */
export async function placeAction({ store, runs }: Pick<TaskDeps, 'store' | 'runs'>, actionId: string): Promise<Placed | null> {
  const action = await store.action(actionId)
  if (!action) return null
  const [task, attempt, run] = await Promise.all([
    store.find(action.owner_id, action.task_id),
    store.attempt(action.attempt_id),
    runs.get(action.attempt_id),
  ])
  return task && attempt && run ? { task, attempt, run, action } : null
}

/** With the task's row locked: what is read now stands until the transaction ends. */
export async function lockPlaced(
  { store }: Pick<TaskDeps, 'store'>,
  { task, action }: Pick<Placed, 'task' | 'action'>,
): Promise<{ task: TaskRow; action: ActionRow } | null> {
  const locked = await store.lock(task.id)
  const now = await store.action(action.id)
  return locked && now ? { task: locked, action: now } : null
}

/** What the attempt's run may do, within what its task leaves. */
export function actsOf(deps: TaskDeps, { task, attempt, run }: Pick<Placed, 'task' | 'attempt' | 'run'>): RunActions {
  const { actions, contents, runs, ids, clock } = deps
  const grants = new NarrowedGrants(actions.grants, task)
  return new RunActions({ run, deps: { ...actions, grants, contents, runs, ids, clock }, profileHash: () => attempt.harness_profile })
}

/** The action as the loop's own code knows calls. `toolVersion`: what it is judged as, or was bound to. */
export function callOf(action: ActionRow, toolVersion: string | null): ToolCall {
  return {
    action_id: action.id,
    tool: action.tool,
    tool_version: toolVersion,
    content_id: action.arguments_content_id,
    digest: action.arguments_hash,
    phase: 'proposed',
    effect_id: action.effect_id,
    approval_id: action.approval_id,
    capability: action.side_effect_class,
    consequence: null,
    constraints: [],
    reserved_micros: action.reserved_micros,
  }
}

/** The action as the order among its siblings knows it. */
export function placedOf({ id, ordinal, independent, state }: ActionRow) {
  return { action_id: id, ordinal, independent, state }
}

/** The same name for something else (cases E4, E5). */
export function conflict(actionId: string): LingtaiError {
  return new LingtaiError('conflict', 'This name is bound to another action.', {
    errors: [{ path: 'key', message: 'is bound to other arguments, another target, cost, key or action' }],
    data: { action_id: actionId },
  })
}
