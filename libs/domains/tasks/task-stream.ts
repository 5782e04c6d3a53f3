import type { AttemptStatus, EventPayload, NewEvent } from '#contracts'
import type { ChainedEvent } from '#kernel/record/chain'
import type { ActionRow, AttemptRow, TaskRow } from '#kernel/ports/task-store'
import type { TaskDeps } from './deps.ts'

type TaskEventName = Extract<
  NewEvent['type'],
  `task.${string}` | `attempt.${string}` | `action.${string}` | `candidate.sealed` | `candidate.verified` | `candidate.committed`
>
/** An event of a task's stream as it is decided; the envelope is put on here. */
export type TaskEvent = {
  [Name in TaskEventName]: Pick<NewEvent<Name>, 'type' | 'payload' | 'content_digests'>
}[TaskEventName]

/** Where a task's events stand. */
export function taskStream(taskId: string): string {
  return `task:${taskId}`
}

/** Writes to a task's own stream, inside the unit of work that changes its rows (M9). */
export async function appendTaskEvents(
  deps: Pick<TaskDeps, 'log' | 'clock'>,
  task: Pick<TaskRow, 'id' | 'owner_id' | 'character_id'>,
  events: readonly TaskEvent[],
  { actor, tag }: { actor: 'owner' | 'kernel' | 'agent'; tag: string },
): Promise<ChainedEvent[]> {
  if (events.length === 0) return []
  const at = deps.clock.now().toISOString()
  const enveloped = events.map((event) => ({ ...event, character_id: task.character_id, actor, at, cause: { tag } }))
  return deps.log.append({ stream: taskStream(task.id), ownerId: task.owner_id, events: enveloped })
}

/** The event that tells how an action went on. */
export function settledEvent(
  action: ActionRow,
  settled: Omit<Extract<TaskEvent, { type: 'action.settled' }>['payload'], 'action_id' | 'effect_id' | 'from'>,
  digest: string | null = null,
): TaskEvent {
  return {
    type: 'action.settled',
    payload: { action_id: action.id, effect_id: action.effect_id, from: action.state, ...settled },
    ...(settled.content_id !== null && digest !== null ? { content_digests: [{ content_id: settled.content_id, digest }] } : {}),
  }
}

/** Tells how an attempt went on. Inside a unit of work that holds the task. */
export async function tellChange(
  deps: Pick<TaskDeps, 'log' | 'clock'>,
  task: TaskRow,
  attempt: AttemptRow,
  to: AttemptStatus,
  reason: string | null,
  used: Partial<EventPayload<'attempt.changed'>> = {},
): Promise<void> {
  const payload = { attempt_id: attempt.id, from: attempt.status, to, reason, ...used }
  await appendTaskEvents(deps, task, [{ type: 'attempt.changed', payload }], { actor: 'kernel', tag: 'sync' })
}
