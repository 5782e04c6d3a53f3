import type { ActionState, EventPayload, EventRecord, TaskStatus } from '#contracts'
import { refundAction, settleAction } from './task-budget.ts'
import type { TaskBudget } from './task-budget.ts'

/** Version of the fold: a checkpoint of another one is not built upon. */
export const TASK_STATE_VERSION = 1

/** One action as the task's stream tells of it. */
export type FoldedAction = {
  action_id: string
  attempt_id: string
  ordinal: number
  independent: boolean
  state: ActionState
  effect_id: string | null
  reserved_micros: number
  charged_micros: number | null
}

/** A task as its own stream shows it: ids, enums and numbers. Plain data, so that a checkpoint may hold it. */
export type FoldedTask = {
  status: TaskStatus
  budget: TaskBudget
  attempt_id: string | null
  repairs: number
  actions: Readonly<Record<string, FoldedAction>>
}

export const emptyTask: FoldedTask = {
  status: 'open',
  budget: { max_cost_micros: null, max_actions: 0, spent_micros: 0, reserved_micros: 0, used_actions: 0 },
  attempt_id: null,
  repairs: 0,
  actions: {},
}

/**
 * The state after one more event of the task's stream: what a checkpoint and the events after it rebuild (`003…` §4). Events of other
 * kinds change nothing. Pure.
 */
export function foldTask(task: FoldedTask, record: Pick<EventRecord, 'type' | 'payload'>): FoldedTask {
  switch (record.type) {
    case 'task.created': {
      const { max_cost_micros, max_actions } = record.payload as EventPayload<'task.created'>
      return { ...task, budget: { ...task.budget, max_cost_micros, max_actions } }
    }
    case 'task.changed': {
      const { to, reason } = record.payload as EventPayload<'task.changed'>
      return { ...task, status: to, repairs: reason === 'reopened' ? 0 : task.repairs }
    }
    case 'attempt.started': {
      const { attempt_id, reserved_micros: reserved } = record.payload as EventPayload<'attempt.started'>
      return { ...task, attempt_id, budget: { ...task.budget, reserved_micros: task.budget.reserved_micros + reserved } }
    }
    case 'attempt.changed':
      return useBudget(task, record.payload as EventPayload<'attempt.changed'>)
    case 'candidate.verified': {
      const { repairs } = record.payload as EventPayload<'candidate.verified'>
      return { ...task, repairs }
    }
    case 'action.submitted': {
      const { action_id, attempt_id, ordinal, independent } = record.payload as EventPayload<'action.submitted'>
      return withAction(task, {
        action_id,
        attempt_id,
        ordinal,
        independent,
        state: 'proposed',
        effect_id: null,
        reserved_micros: 0,
        charged_micros: null,
      })
    }
    case 'action.decided': {
      const { action_id, decision } = record.payload as EventPayload<'action.decided'>
      return decision === 'REQUIRE_APPROVAL' ? changeAction(task, action_id, { state: 'waiting' }) : task
    }
    case 'action.dispatched': {
      const { action_id, effect_id, reserved_micros: reserved } = record.payload as EventPayload<'action.dispatched'>
      const { budget } = task
      return {
        ...changeAction(task, action_id, { state: 'dispatched', effect_id, reserved_micros: reserved }),
        budget: { ...budget, reserved_micros: budget.reserved_micros + reserved, used_actions: budget.used_actions + 1 },
      }
    }
    case 'action.settled':
      return settled(task, record.payload as EventPayload<'action.settled'>)
    default:
      return task
  }
}

/** A loop's run is over, or a question to a model about its candidate: what was held is given back, what it used is charged. */
function useBudget(task: FoldedTask, payload: EventPayload<'attempt.changed'>): FoldedTask {
  const { budget } = task
  return {
    ...task,
    budget: {
      ...budget,
      spent_micros: budget.spent_micros + (payload.charged_micros ?? 0),
      reserved_micros: budget.reserved_micros + (payload.reserved_micros ?? 0) - (payload.released_micros ?? 0),
      used_actions: budget.used_actions + (payload.used_actions ?? 0),
    },
  }
}

function settled(task: FoldedTask, payload: EventPayload<'action.settled'>): FoldedTask {
  const action = task.actions[payload.action_id]
  if (!action) return task
  const next = changeAction(task, payload.action_id, { state: payload.to, reserved_micros: 0, charged_micros: payload.charged_micros })
  if (payload.from === 'dispatched') {
    return { ...next, budget: settleAction(task.budget, { reserved: action.reserved_micros, charged: payload.charged_micros }) }
  }
  // It was charged when it was lost; proof that it had not happened gives that back.
  const refund = payload.from === 'unknown' && payload.to === 'failed' ? (action.charged_micros ?? 0) : 0
  return refund === 0 ? next : { ...next, budget: refundAction(task.budget, refund) }
}

function withAction(task: FoldedTask, action: FoldedAction): FoldedTask {
  return { ...task, actions: { ...task.actions, [action.action_id]: action } }
}

function changeAction(task: FoldedTask, actionId: string, change: Partial<FoldedAction>): FoldedTask {
  const action = task.actions[actionId]
  return action ? withAction(task, { ...action, ...change }) : task
}
