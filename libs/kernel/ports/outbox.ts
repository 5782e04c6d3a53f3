/** A piece of work that was decided in a transaction; its payload holds ids only (decision 13). */
export type OutboxRow = { id: string; owner_id: string | null; topic: string; payload: Record<string, string>; attempts: number }

/** The outbox drives jobs on both tiers; attempts and errors live in Postgres (decision 28). */
export interface OutboxStore {
  /** Inside the transaction that decides the work. */
  add(row: { id: string; ownerId: string | null; topic: string; payload: Record<string, string>; dueAt?: Date }): Promise<void>
  /** Takes a row for so many seconds; null when it is closed, not due, or somebody else's. Counts an attempt. */
  claim(id: string, seconds: number): Promise<OutboxRow | null>
  /** Inside the handler's own transaction; false when it was closed already. */
  close(id: string, outcome: 'done' | 'given_up' | 'obsolete'): Promise<boolean>
  /** `uncounted`: takes back the attempt that its claim counted. */
  fail(id: string, error: string, retryInSeconds: number, options?: { uncounted: boolean }): Promise<void>
  /** Rows that are due and nobody's. */
  open(limit: number): Promise<string[]>
}
