import type { EventRecord, EventType, KillFlag } from '#contracts'

export type KillScopeName = KillFlag['scope']
export type KillFlagRow = { scope: KillScopeName; scope_id: string; set_by: string; set_at: Date }

/** The kill switch's rows; appends of runs read them in their own statement (decision 17). */
export interface KillFlagStore {
  list(): Promise<KillFlagRow[]>
  /** False where it is set already. */
  set(flag: KillFlagRow): Promise<boolean>
  /** False where it is not set. */
  lift(scope: KillScopeName, scopeId: string): Promise<boolean>
  exists(scope: 'owner' | 'character', scopeId: string): Promise<boolean>
}

export type OutboxListRow = {
  id: string
  topic: string
  attempts: number
  last_error: string | null
  created_at: Date
  due_at: Date
  closed_at: Date | null
  outcome: string | null
}

/** An event with its columns: some rows of a run leave out of their record what the run's first one holds (decision 12). */
export type AuditEventRow = {
  position: number
  visibility: EventRecord['visibility'] & string
  owner_id: string | null
  run_id: string | null
  record: EventRecord
}

/** Reading across owners, for admins. */
export interface AuditStore {
  /** Newest first. */
  outbox(page: { before: string | null; limit: number }): Promise<OutboxListRow[]>
  /** Newest first, by global position. */
  events(query: { stream?: string; type?: EventType; runId?: string; before?: number; limit: number }): Promise<AuditEventRow[]>
}
