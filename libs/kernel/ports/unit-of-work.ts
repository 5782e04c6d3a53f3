/**
 * State, events and outbox rows in one transaction (M9). Everything that repositories do inside `run` belongs to it; a throw rolls
 * all of it back. Nested calls join the outer one. Nothing external is awaited inside (decision 4).
 */
export interface UnitOfWork {
  run<Result>(work: () => Promise<Result>): Promise<Result>
  /**
   * Called after the outermost transaction has rolled back, before its error reaches the caller; at once when there is no transaction.
   * For what must be on record although the work was refused.
   */
  afterRollback(callback: () => Promise<void>): Promise<void>
  /** Called after the outermost transaction has committed; never when it rolled back. */
  afterCommit(callback: () => void): void
}
