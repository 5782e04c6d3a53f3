/**
 * What Postgres' background processes would do and PGlite, a single process, does not: without checkpoints the write-ahead log grows
 * for ever and recovery with it; without vacuum and analyze, tables swell and plans go stale. It runs when no client uses the database.
 */
import type { Backend } from './backend.ts'
import type { DatabaseFront } from './database-front.ts'

/** Bytes of write-ahead log after which a checkpoint is due, and after which it no longer waits for a quiet moment. */
const CHECKPOINT_DUE_BYTES = 32 * 1024 * 1024
const CHECKPOINT_PRESSING_BYTES = 256 * 1024 * 1024

/** How long the database must have been unused before upkeep, in ms. */
const QUIET_MS = 2_000

/** Between two looks for tables to vacuum, in ms; and when one is taken even without a quiet moment. */
const VACUUM_EVERY_MS = 60_000
const VACUUM_PRESSING_MS = 600_000

const WAL_BYTES_SQL = 'SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::float8 AS bytes FROM pg_control_checkpoint()'

/** Autovacuum's own thresholds; the worst table first, one at a time, so that a waiting client waits for one table at most. */
const WORN_TABLE_SQL = `
  SELECT format('%I.%I', schemaname, relname) AS name
  FROM pg_stat_user_tables
  WHERE n_dead_tup > 50 + 0.2 * n_live_tup
     OR n_mod_since_analyze > 50 + 0.1 * n_live_tup
     OR n_ins_since_vacuum > 1000 + 0.2 * n_live_tup
  ORDER BY n_dead_tup + n_mod_since_analyze DESC
  LIMIT 1`

export interface MaintenanceOptions {
  backend: Pick<Backend, 'query'>
  front: Pick<DatabaseFront, 'idleMs' | 'runWhileFree'>
  /** Milliseconds on a clock that only rises. */
  now: () => number
}

export class Maintenance {
  readonly #backend: MaintenanceOptions['backend']
  readonly #front: MaintenanceOptions['front']
  readonly #now: () => number
  #vacuumLookedAt: number
  #restingSince: number | undefined

  constructor({ backend, front, now }: MaintenanceOptions) {
    this.#backend = backend
    this.#front = front
    this.#now = now
    this.#vacuumLookedAt = now()
  }

  /** Does what is due, if the moment allows. Call it every second or so; it costs nothing while nobody uses the database. */
  async tick(): Promise<void> {
    const idleMs = this.#front.idleMs()
    const quiet = idleMs >= QUIET_MS
    const lastUsedAt = this.#now() - idleMs
    if (quiet && this.#restingSince !== undefined && lastUsedAt <= this.#restingSince) return
    await this.#front.runWhileFree(async () => {
      const checkpointed = await this.#checkpointIfDue(quiet)
      const vacuumed = await this.#vacuumIfDue(quiet)
      // Nothing left to do: rest until a client has used the database again.
      const rested = quiet && !checkpointed && vacuumed === 'nothing_worn'
      this.#restingSince = rested ? this.#now() : undefined
    })
  }

  async #checkpointIfDue(quiet: boolean): Promise<boolean> {
    const [row] = await this.#backend.query(WAL_BYTES_SQL)
    const bytes = Number(row?.['bytes'])
    if (bytes < (quiet ? CHECKPOINT_DUE_BYTES : CHECKPOINT_PRESSING_BYTES)) return false
    await this.#backend.query('CHECKPOINT')
    return true
  }

  async #vacuumIfDue(quiet: boolean): Promise<'not_due' | 'nothing_worn' | 'vacuumed'> {
    if (this.#now() - this.#vacuumLookedAt < (quiet ? VACUUM_EVERY_MS : VACUUM_PRESSING_MS)) return 'not_due'
    const [table] = await this.#backend.query(WORN_TABLE_SQL)
    const lookedBefore = this.#vacuumLookedAt
    this.#vacuumLookedAt = this.#now()
    if (table === undefined) return 'nothing_worn'
    await this.#backend.query(`VACUUM (ANALYZE) ${String(table['name'])}`)
    // It went well: look for the next worn table at the next tick, not only after the usual pause.
    this.#vacuumLookedAt = lookedBefore
    return 'vacuumed'
  }
}
