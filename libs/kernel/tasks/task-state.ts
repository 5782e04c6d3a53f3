import type { ActionState, AttemptStatus, TaskStatus } from '#contracts'
import { isSettledAction } from './action-state.ts'

export type TaskEvent =
  | 'verified'
  /** Checks failed, and nothing is left to be tried. */
  | 'escalated'
  /** A person lets it be tried once more. */
  | 'reopened'
  /** The owner's commit of a verified candidate. */
  | 'committed'
  | 'cancel_requested'
  /** Nothing of it is under way any more. */
  | 'quiet'

const transitions: Readonly<Record<TaskStatus, Partial<Record<TaskEvent, TaskStatus>>>> = Object.freeze({
  open: { verified: 'verified', escalated: 'needs_escalation', cancel_requested: 'cancelling' },
  verified: { committed: 'done', cancel_requested: 'cancelling' },
  needs_escalation: { reopened: 'open', cancel_requested: 'cancelling' },
  cancelling: { quiet: 'cancelled' },
  done: {},
  cancelled: {},
})

/** The status after an event, or null where it changes nothing. Verified is no permission: only a commit makes it done. Pure. */
export function nextTaskStatus(status: TaskStatus, event: TaskEvent): TaskStatus | null {
  return transitions[status][event] ?? null
}

/** Over, for good. */
export function isOverTask(status: TaskStatus): boolean {
  return Object.keys(transitions[status]).length === 0
}

/** Being cancelled, or cancelled: whatever comes now is answered so (case E11). */
export function isCancelledTask(status: TaskStatus): boolean {
  return status === 'cancelling' || status === 'cancelled'
}

const live: ReadonlySet<AttemptStatus> = new Set(['active', 'waiting_for_approval', 'waiting_for_effect', 'reconcile_required'])

export function isLiveAttempt(status: AttemptStatus): boolean {
  return live.has(status)
}

/**
 * Where a live attempt stands, from its actions alone: what nobody knows comes first, then what is under way and looked after by itself,
 * then what somebody is asked; a proposal that nothing blocks is looked after too. Pure.
 */
export function attemptStatusOf(states: Iterable<ActionState>): AttemptStatus {
  const open = new Set(states)
  if (open.has('unknown')) return 'reconcile_required'
  if (open.has('dispatched')) return 'waiting_for_effect'
  if (open.has('waiting')) return 'waiting_for_approval'
  return open.has('proposed') ? 'waiting_for_effect' : 'active'
}

/** `cancelled` is only said when nothing is out and nothing is unknown (case E12). Pure. */
export function isQuiet(states: Iterable<ActionState>): boolean {
  for (const state of states) if (!isSettledAction(state)) return false
  return true
}
