/** How deep work may be handed on: what the owner asks for is 0, what a character hands on from there 1. */
export const DELEGATION_DEPTH_MAX = 3
/** How much one run may hand on. */
export const CHILDREN_MAX = 8
/** Actions of handed-on work where nobody says how many, and at most. */
export const CHILD_ACTIONS = 8
export const CHILD_ACTIONS_MAX = 50

/** Why work is not handed on; nothing happened. */
export type DelegationRefusal =
  'parent_ended' | 'parent_cancelled' | 'killed' | 'too_deep' | 'too_many_children' | 'no_actions_left' | 'not_reserved'

/** Where a run stands that wants to hand work on. */
export type Delegating = {
  /** Of the work that the run itself is about. */
  depth: number
  /** Already handed on by it. */
  children: number
  isOver: boolean
  isCancelled: boolean
  isKilled: boolean
  /** Actions that its own task has left; null where nothing bounds them. */
  actionsLeft: number | null
  /** What was taken from its budget for this, micro-units, and what is to be given away; null: no bound is promised. */
  reserved_micros: number
  given_micros: number | null
}

/** Whether a run may hand work on, by facts of one moment (bounded, K6). Null: it may. Pure. */
export function delegationRefusal(facts: Delegating): DelegationRefusal | null {
  if (facts.isOver) return 'parent_ended'
  if (facts.isCancelled) return 'parent_cancelled'
  if (facts.isKilled) return 'killed'
  if (facts.depth >= DELEGATION_DEPTH_MAX) return 'too_deep'
  if (facts.children >= CHILDREN_MAX) return 'too_many_children'
  if (facts.actionsLeft !== null && facts.actionsLeft < 1) return 'no_actions_left'
  if (facts.given_micros !== null && facts.given_micros > facts.reserved_micros) return 'not_reserved'
  return null
}

/** How many actions handed-on work may take: what was asked for, within the limit and what the parent has left. Pure. */
export function childActions(asked: number | null, left: number | null): number {
  return Math.max(0, Math.min(asked ?? CHILD_ACTIONS, CHILD_ACTIONS_MAX, left ?? CHILD_ACTIONS_MAX))
}
