/**
 * An initialised and migrated data folder, made once per set of migrations and copied for each test file: making one takes 4 to 14 s,
 * a copy a tenth of a second.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { readMigrations } from '#infra/migrations/migration-files'
import { runMigrations } from '#infra/migrations/run-migrations'
import { openLightDatabase } from '#infra/pglite/light-database'

const root = fileURLToPath(new URL('../../', import.meta.url))
const cacheFolder = join(root, 'node_modules/.cache/lingtai')

/** Raise it when what a snapshot holds depends on something that the key does not cover. */
const FORMAT = '1'

const MAKING_MS = 180_000
const SQLITE_BUSY = 5
const UNUSED_MS = 7 * 24 * 3_600_000

const asked = new Map<string, Promise<string>>()

/** The folder of a snapshot with the migrations in `migrations`, made if no test made it before. */
export function databaseSnapshot(migrations: string): Promise<string> {
  const snapshot = join(cacheFolder, `pg-${keyOf(migrations)}`)
  // Once per process: waiting for the lock below stops the thread, which must not wait for itself.
  const known = asked.get(snapshot) ?? findOrMake(snapshot, migrations)
  asked.set(snapshot, known)
  return known
}

async function findOrMake(snapshot: string, migrations: string): Promise<string> {
  mkdirSync(cacheFolder, { recursive: true })
  // Test files start in several processes at once: one makes the snapshot, the others wait here for the lock, then find it.
  const lock = new DatabaseSync(`${snapshot}.lock`, { timeout: 0 })
  try {
    await takeTurn(lock)
    if (!existsSync(snapshot)) {
      removeUnused()
      await makeSnapshot(snapshot, migrations)
    }
    const now = new Date()
    utimesSync(snapshot, now, now)
  } finally {
    lock.close()
  }
  return snapshot
}

/** Waits without blocking: the holder may be an earlier test of this same process, which must be able to go on. */
async function takeTurn(lock: DatabaseSync): Promise<void> {
  const deadline = Date.now() + MAKING_MS
  for (;;) {
    try {
      return lock.exec('BEGIN EXCLUSIVE')
    } catch (error) {
      if (!(error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) || Date.now() > deadline) throw error
      await wait(100)
    }
  }
}

async function makeSnapshot(snapshot: string, migrations: string): Promise<void> {
  const home = mkdtempSync(join(cacheFolder, 'making-'))
  try {
    const database = await openLightDatabase({ home })
    try {
      const pool = new pg.Pool({ ...database.connection, max: 1 })
      try {
        await runMigrations({ pool, folder: migrations })
      } finally {
        await pool.end()
      }
    } finally {
      await database.close()
    }
    renameSync(join(home, 'pg'), snapshot)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

function keyOf(migrations: string): string {
  const hash = createHash('sha256').update(FORMAT)
  for (const packageName of ['@electric-sql/pglite', '@electric-sql/pglite-pgvector']) {
    hash.update(readFileSync(join(root, 'node_modules', packageName, 'package.json')))
  }
  for (const { name, checksum } of readMigrations(migrations)) hash.update(`\n${name} ${checksum}`)
  return hash.digest('hex').slice(0, 16)
}

/** Snapshots of migrations that were edited since pile up otherwise, at 40 MB each. */
function removeUnused(): void {
  for (const name of readdirSync(cacheFolder)) {
    const path = join(cacheFolder, name)
    const isSnapshot = name.startsWith('pg-') && !name.endsWith('.lock')
    if (isSnapshot && Date.now() - statSync(path).mtimeMs > UNUSED_MS) rmSync(path, { recursive: true, force: true })
  }
}
