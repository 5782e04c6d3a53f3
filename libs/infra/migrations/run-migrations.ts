/**
 * Applies plain SQL migrations in Prisma's folder format and records them as Prisma does, so that `prisma migrate deploy` agrees
 * wherever its engine can run. The same on both tiers.
 */
import { randomUUID } from 'node:crypto'
import { statementsOf } from '../pglite/sql-statements.ts'
import {
  ChangedMigrationError,
  MigrationFailedError,
  MigrationTransactionError,
  UnfinishedMigrationError,
  UnknownMigrationsError,
} from './migration-errors.ts'
import { type MigrationFile, readMigrations } from './migration-files.ts'

/** The part of a `pg` client that is used. */
export interface MigrationClient {
  query(sql: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
}

/** The part of a `pg` pool that is used. */
export interface MigrationPool {
  connect(): Promise<MigrationClient & { release(error?: boolean): void }>
}

export interface RunMigrationsOptions {
  pool: MigrationPool
  /** The folder that holds one folder per migration. */
  folder: string
  /** Told of each migration once it is committed. */
  onApplied?: (migration: string) => void
}

/** The key Prisma's own engine locks while it migrates, so that it and this runner exclude each other too. */
const ADVISORY_LOCK_KEY = 72707369

/** Exactly the table that Prisma makes. */
const CREATE_TABLE_SQL = `
CREATE TABLE IF NOT EXISTS _prisma_migrations (
    id                      VARCHAR(36) PRIMARY KEY NOT NULL,
    checksum                VARCHAR(64) NOT NULL,
    finished_at             TIMESTAMPTZ,
    migration_name          VARCHAR(255) NOT NULL,
    logs                    TEXT,
    rolled_back_at          TIMESTAMPTZ,
    started_at              TIMESTAMPTZ NOT NULL DEFAULT now(),
    applied_steps_count     INTEGER NOT NULL DEFAULT 0
)`

const APPLIED_SQL = `
SELECT migration_name, checksum, finished_at IS NOT NULL AS finished
FROM _prisma_migrations WHERE rolled_back_at IS NULL ORDER BY started_at, migration_name`

const RECORD_SQL = `
INSERT INTO _prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
VALUES ($1, $2, $3, $4, clock_timestamp(), 1)`

const TRANSACTION_WORDS = new Set(['begin', 'start', 'commit', 'end', 'rollback', 'abort', 'prepare'])

/**
 * Applies what is missing, each migration with its record in one transaction, and returns the names of those it applied. Processes
 * that start together take turns and apply each migration once.
 * Throws MigrationFolderError, ChangedMigrationError, UnknownMigrationsError, UnfinishedMigrationError, MigrationTransactionError,
 * MigrationFailedError, or the connection's error.
 */
export async function runMigrations({ pool, folder, onApplied }: RunMigrationsOptions): Promise<string[]> {
  const files = readMigrations(folder)
  files.forEach(refuseOwnTransactions)
  const client = await pool.connect()
  let broken = true
  try {
    const applied: string[] = []
    for (let name = await applyNext(client, files); name !== undefined; name = await applyNext(client, files)) {
      applied.push(name)
      onApplied?.(name)
    }
    broken = false
    return applied
  } finally {
    // A connection whose transaction may still be open is not given back to the pool.
    client.release(broken)
  }
}

function refuseOwnTransactions({ name, sql }: MigrationFile): void {
  for (const [word] of statementsOf(sql)) {
    if (word !== undefined && TRANSACTION_WORDS.has(word)) throw new MigrationTransactionError(name, word)
  }
}

/** One turn under the lock: looks at what is applied now, checks it, and applies the first migration that is missing. */
async function applyNext(client: MigrationClient, files: readonly MigrationFile[]): Promise<string | undefined> {
  await client.query('BEGIN')
  try {
    // Held until the transaction ends: a session lock would exclude nobody in the light tier, where all share one session.
    await client.query('SELECT pg_advisory_xact_lock($1)', [ADVISORY_LOCK_KEY])
    await client.query(CREATE_TABLE_SQL)
    const applied = await readApplied(client)
    checkHistory(applied, files)
    const next = files.find((file) => !applied.has(file.name))
    if (next !== undefined) await apply(client, next)
    await client.query('COMMIT')
    return next?.name
  } catch (error) {
    // Where the connection itself is gone this fails too, and the first error is the one to tell.
    await client.query('ROLLBACK').catch(() => undefined)
    throw error
  }
}

interface AppliedMigration {
  readonly checksum: string
  readonly finished: boolean
}

async function readApplied(client: MigrationClient): Promise<Map<string, AppliedMigration>> {
  const { rows } = await client.query(APPLIED_SQL)
  return new Map(
    rows.map((row) => [String(row['migration_name']), { checksum: String(row['checksum']), finished: row['finished'] === true }]),
  )
}

function checkHistory(applied: ReadonlyMap<string, AppliedMigration>, files: readonly MigrationFile[]): void {
  const byName = new Map(files.map((file) => [file.name, file]))
  const unknown = [...applied.keys()].filter((name) => !byName.has(name))
  if (unknown.length > 0) throw new UnknownMigrationsError(unknown)
  for (const [migration, { checksum, finished }] of applied) {
    if (!finished) throw new UnfinishedMigrationError(migration)
    const found = byName.get(migration)?.checksum ?? ''
    if (found !== checksum) throw new ChangedMigrationError({ migration, applied: checksum, found })
  }
}

async function apply(client: MigrationClient, { name, sql, checksum }: MigrationFile): Promise<void> {
  const { rows } = await client.query('SELECT clock_timestamp() AS started_at')
  try {
    await client.query(sql)
  } catch (error) {
    throw new MigrationFailedError(name, error)
  }
  await client.query(RECORD_SQL, [randomUUID(), checksum, name, rows[0]?.['started_at']])
}
