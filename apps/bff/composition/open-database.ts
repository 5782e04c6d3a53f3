import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Logger } from 'pino'
import type { Config } from '#infra/config/config'
import { runMigrations } from '#infra/migrations/run-migrations'
import { vectorSettings } from '#infra/prisma/memory-index.repository'
import { openLightDatabase } from '#infra/pglite/light-database'
import type { LightDatabase } from '#infra/pglite/light-database'
import type { Lifecycle } from './lifecycle.ts'

/** Connections of one process; the light tier's database serves one at a time anyway. */
const LIGHT_CONNECTIONS = 6
const FULL_CONNECTIONS = 20

/**
 * Settings of every connection of the full tier, so that no database has to be altered (decision 31). A process that stops in the middle of
 * a transaction, or whose machine is gone, must not hold its locks for longer than others wait for a lease.
 */
const fullOptions = Object.entries({
  ...vectorSettings,
  idle_in_transaction_session_timeout: '10s',
  tcp_keepalives_idle: '10',
  tcp_keepalives_interval: '3',
  tcp_keepalives_count: '3',
})
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(' ')

/** Opens the tier's database and brings its schema up to date. */
export async function openDatabase({ config, logger, lifecycle }: { config: Config; logger: Logger; lifecycle: Lifecycle }): Promise<{
  connection: pg.PoolConfig
  lightDatabase: LightDatabase | null
  appliedMigrations: string[]
}> {
  if (config.databaseUrl !== null) {
    const connection = {
      connectionString: config.databaseUrl,
      max: FULL_CONNECTIONS,
      connectionTimeoutMillis: 10_000,
      options: fullOptions,
      keepAlive: true,
    }
    return { connection, lightDatabase: null, appliedMigrations: await migrate(connection, logger) }
  }
  const lightDatabase = await openLightDatabase({
    home: config.home,
    settings: vectorSettings,
    log: (message, fields) => logger.info(fields, message),
    onIncident: (incident) => {
      if (incident.kind === 'down') lifecycle.fail(new Error(`the database is down: ${incident.reason}`))
    },
  })
  lifecycle.onClose('light database', () => lightDatabase.close())
  const connection = { ...lightDatabase.connection, max: LIGHT_CONNECTIONS }
  try {
    const appliedMigrations = await lightDatabase.allowLongStatements(() => migrate(connection, logger))
    // What making the tables took is not needed again.
    if (appliedMigrations.length > 0) await lightDatabase.renew()
    return { connection, lightDatabase, appliedMigrations }
  } catch (error) {
    await lightDatabase.close()
    throw error
  }
}

/** Applies the migrations that are missing and answers their names. */
async function migrate(connection: pg.PoolConfig, logger: Logger): Promise<string[]> {
  const pool = new pg.Pool({ ...connection, max: 1 })
  // A connection that breaks while idle is an event here; while migrating it is an error of the query.
  pool.on('error', (error) => logger.warn({ err: error }, 'the migrating connection broke'))
  try {
    return await runMigrations({
      pool,
      folder: migrationsFolder(),
      onApplied: (migration) => logger.info({ migration }, 'migration applied'),
    })
  } finally {
    await pool.end()
  }
}

/** `prisma/migrations`, seen from the built file in `dist` or from the source. */
function migrationsFolder(): string {
  const candidates = ['../prisma/migrations', '../../../prisma/migrations'].map((path) => fileURLToPath(new URL(path, import.meta.url)))
  const found = candidates.find((path) => existsSync(path))
  if (found === undefined) throw new Error(`the migrations are missing; looked in ${candidates.join(' and ')}`)
  return found
}
