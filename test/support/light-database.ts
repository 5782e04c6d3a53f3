/** A light-tier database for one test file: migrated, its own, gone when closed. */
import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { type LightDatabase, type LightDatabaseIncident, type LightDatabaseOptions, openLightDatabase } from '#infra/pglite/light-database'
import { databaseSnapshot } from './database-snapshot.ts'

/** The migrations that the project ships. */
export const PROJECT_MIGRATIONS = fileURLToPath(new URL('../../prisma/migrations', import.meta.url))

/** Two small migrations, with some of what Prisma's schema language cannot say, for tests of the database itself. */
export const FIXTURE_MIGRATIONS = fileURLToPath(new URL('../light/fixtures/migrations', import.meta.url))

export interface TestDatabaseOptions extends Pick<LightDatabaseOptions, 'settings' | 'stuckAfterMs' | 'onIncident' | 'log'> {
  /** The folder of migrations; the project's own by default. */
  migrations?: string
  /** Most connections of the pool. */
  connections?: number
}

export interface TestDatabase {
  readonly home: string
  readonly database: LightDatabase
  readonly pool: pg.Pool
  /** What the database reported so far. */
  readonly incidents: readonly LightDatabaseIncident[]
  close(): Promise<void>
}

/** Opens a migrated database in a temporary home. Close it in afterAll. */
export async function openTestDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { migrations = PROJECT_MIGRATIONS, connections = 6, onIncident, ...databaseOptions } = options
  const snapshot = await databaseSnapshot(migrations)
  const home = makeTestHome()
  const incidents: LightDatabaseIncident[] = []
  const database = await openLightDatabase({
    ...databaseOptions,
    home,
    snapshot,
    onIncident: (incident) => {
      incidents.push(incident)
      onIncident?.(incident)
    },
  })
  const pool = new pg.Pool({ ...database.connection, max: connections })
  // A connection that the database cuts says so by an event, idle or not: no failure here, tests that care look at `incidents`.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  return {
    home,
    database,
    pool,
    incidents,
    close: async () => {
      const allReleased = await endsInTime(pool)
      await database.close()
      rmSync(home, { recursive: true, force: true })
      if (!allReleased) throw new Error('a test took a connection from the pool and did not release it')
    },
  }
}

const END_MS = 5_000

/** pool.end() waits for ever for a connection that was not released, as a failed test leaves it. */
async function endsInTime(pool: pg.Pool): Promise<boolean> {
  const late = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => late.resolve(false), END_MS)
  const ended = pool.end().then(() => true)
  try {
    return await Promise.race([ended, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** A folder to be a LINGTAI_HOME, in memory where there is room: a data folder is a thousand files, and tests make many. */
export function makeTestHome(): string {
  return mkdtempSync(join(hasRoomInMemory() ? MEMORY_FOLDER : tmpdir(), 'lingtai-test-'))
}

const MEMORY_FOLDER = '/dev/shm'
const ROOM_BYTES = 1024 ** 3

function hasRoomInMemory(): boolean {
  if (!existsSync(MEMORY_FOLDER)) return false
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
  return bavail * bsize > ROOM_BYTES
}
