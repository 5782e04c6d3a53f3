/** What a task may spend, and what it has. Micro-units and counts; null is honestly not promised (K6). */
export type TaskBudget = {
  max_cost_micros: number | null
  max_actions: number
  spent_micros: number
  reserved_micros: number
  used_actions: number
}

/**
 * The most that one action can be charged: what the tool's contract says, or its submitter where that is more. A submitter's number never
 * stands in for a price that the contract does not know: null, which a bound on cost cannot live with.
 */
export function priceOf(submitted: number | null, contract: number | null): number | null {
  return contract === null ? null : Math.max(submitted ?? 0, contract)
}

/** What is left to be reserved; null where it is not bounded. */
export function remainingMicros({ max_cost_micros: max, spent_micros, reserved_micros }: TaskBudget): number | null {
  return max === null ? null : Math.max(0, max - spent_micros - reserved_micros)
}

/** With room for one more action at this price, or null: it fails closed where a bound cannot be held (case E14). Pure. */
export function reserveAction(budget: TaskBudget, price: number | null): { budget: TaskBudget; reserved: number } | null {
  const remaining = remainingMicros(budget)
  if (budget.used_actions >= budget.max_actions) return null
  if (remaining !== null && (price === null || price > remaining)) return null
  const reserved = price ?? 0
  return {
    reserved,
    budget: { ...budget, reserved_micros: budget.reserved_micros + reserved, used_actions: budget.used_actions + 1 },
  }
}

/** What is charged of a reservation: never more than was reserved where a bound is promised. Pure. */
export function chargeOf(budget: TaskBudget, { reserved, cost }: { reserved: number; cost: number }): number {
  return budget.max_cost_micros === null ? cost : Math.min(cost, reserved)
}

/** What was reserved becomes what was charged. Pure. */
export function settleAction(budget: TaskBudget, { reserved, charged }: { reserved: number; charged: number }): TaskBudget {
  return { ...budget, reserved_micros: budget.reserved_micros - reserved, spent_micros: budget.spent_micros + charged }
}

/** What nobody knew was charged as if it had happened; proof that it had not gives it back. Pure. */
export function refundAction(budget: TaskBudget, charged: number): TaskBudget {
  return { ...budget, spent_micros: budget.spent_micros - charged }
}
