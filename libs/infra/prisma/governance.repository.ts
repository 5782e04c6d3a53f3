import type { AuditEventRow, AuditStore, KillFlagRow, KillFlagStore, KillScopeName, OutboxListRow } from '#domains/governance/ports'
import type { Database } from './database.ts'
import { storedEvent } from './event-log.repository.ts'

/** The kill switch in Postgres. */
export class KillFlagRepository implements KillFlagStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async list(): Promise<KillFlagRow[]> {
    const rows = await this.#database.client.kill_flags.findMany({ orderBy: [{ set_at: 'desc' }, { scope_id: 'asc' }] })
    return rows.map((row) => ({ ...row, scope: row.scope as KillScopeName }))
  }

  async set(flag: KillFlagRow): Promise<boolean> {
    const { count } = await this.#database.client.kill_flags.createMany({ data: [flag], skipDuplicates: true })
    return count === 1
  }

  async lift(scope: KillScopeName, scopeId: string): Promise<boolean> {
    const { count } = await this.#database.client.kill_flags.deleteMany({ where: { scope, scope_id: scopeId } })
    return count === 1
  }

  async exists(scope: 'owner' | 'character', scopeId: string): Promise<boolean> {
    const { client } = this.#database
    const where = { where: { id: scopeId }, select: { id: true } } as const
    return (scope === 'owner' ? await client.owners.findUnique(where) : await client.characters.findUnique(where)) !== null
  }
}

/** Reading the log and the outbox across owners. */
export class AuditRepository implements AuditStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  outbox({ before, limit }: { before: string | null; limit: number }): Promise<OutboxListRow[]> {
    return this.#database.client.outbox.findMany({
      where: before === null ? {} : { id: { lt: before } },
      orderBy: { id: 'desc' },
      take: limit,
      select: { id: true, topic: true, attempts: true, last_error: true, created_at: true, due_at: true, closed_at: true, outcome: true },
    })
  }

  async events({ stream, type, runId, before, limit }: Parameters<AuditStore['events']>[0]): Promise<AuditEventRow[]> {
    const rows = await this.#database.query<Omit<AuditEventRow, 'record'> & Parameters<typeof storedEvent>[0]>(
      `SELECT position, visibility, owner_id, run_id, canonical, prev_hash, hash FROM events
       WHERE ($1::text IS NULL OR stream = $1) AND ($2::text IS NULL OR type = $2) AND ($3::uuid IS NULL OR run_id = $3::uuid)
         AND ($4::bigint IS NULL OR position < $4) ORDER BY position DESC LIMIT $5`,
      [stream ?? null, type ?? null, runId ?? null, before ?? null, limit],
    )
    return rows.map((row) => ({
      position: row.position,
      visibility: row.visibility,
      owner_id: row.owner_id,
      run_id: row.run_id,
      record: storedEvent(row).record,
    }))
  }
}
