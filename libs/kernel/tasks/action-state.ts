import type { ActionOutcome, ActionState } from '#contracts'

/** What can become of an action (`003…` §2, §3). */
export type ActionEvent =
  /** The owner is asked. */
  | 'asked'
  /** Reserved and bound; from here on it may have been sent. */
  | 'dispatched'
  | 'committed'
  | 'failed'
  | 'denied'
  /** Sent, and nobody knows what came of it. */
  | 'lost'
  /** Lost, and nothing is left behind that somebody would have to find. */
  | 'abandoned'
  | 'unaffordable'
  | 'cancelled'

const transitions: Readonly<Record<ActionState, Partial<Record<ActionEvent, ActionState>>>> = Object.freeze({
  proposed: { asked: 'waiting', dispatched: 'dispatched', denied: 'denied', unaffordable: 'budget_exhausted', cancelled: 'cancelled' },
  waiting: { dispatched: 'dispatched', denied: 'denied', unaffordable: 'budget_exhausted', cancelled: 'cancelled' },
  dispatched: {
    committed: 'committed',
    failed: 'failed',
    // Taken back at the last moment, before it was sent.
    denied: 'denied',
    cancelled: 'cancelled',
    lost: 'unknown',
    abandoned: 'abandoned',
  },
  // Only proof or a person leads on from here; it is never sent again.
  unknown: { committed: 'committed', failed: 'failed' },
  committed: {},
  failed: {},
  denied: {},
  abandoned: {},
  budget_exhausted: {},
  cancelled: {},
})

/** The state after an event, or null where it is late or wrong and changes nothing (case E16). Pure. */
export function nextActionState(state: ActionState, event: ActionEvent): ActionState | null {
  return transitions[state][event] ?? null
}

/** Nothing more can become of it. */
export function isSettledAction(state: ActionState): boolean {
  return Object.keys(transitions[state]).length === 0
}

/** What whoever submitted it is told. `blockedBy`: the earlier action that it waits for. */
export function outcomeOf(state: ActionState, blockedBy: ActionState | null = null): ActionOutcome {
  switch (state) {
    case 'proposed':
      return blockedBy === 'waiting' ? 'waiting_for_approval' : 'pending'
    case 'waiting':
      return 'waiting_for_approval'
    case 'dispatched':
      return 'pending'
    case 'abandoned':
      return 'unknown'
    default:
      return state
  }
}

/** One action among those of its attempt, in the order in which they were submitted. */
export type PlacedAction = { action_id: string; ordinal: number; independent: boolean; state: ActionState }

/**
 * The earlier action that this one has to wait for, or null: nothing passes what is not over, unless it was declared independent (spec/2
 * "Run loop"). Pure.
 */
export function blockerOf<Action extends PlacedAction>(action: PlacedAction, all: readonly Action[]): Action | null {
  if (action.independent) return null
  let found: Action | null = null
  for (const other of all) {
    const isBefore = other.ordinal < action.ordinal && !other.independent && !isSettledAction(other.state)
    if (isBefore && (found === null || other.ordinal < found.ordinal)) found = other
  }
  return found
}
