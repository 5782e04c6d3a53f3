import { Registry } from 'prom-client'
import type pg from 'pg'
import type { Logger } from 'pino'
import type { Config } from '#infra/config/config'
import { Database } from '#infra/prisma/database'
import { ContentRepository } from '#infra/prisma/content.repository'
import { EventLogRepository } from '#infra/prisma/event-log.repository'
import { SystemIds, systemClock, systemScheduler } from '#infra/system/clock'
import type { Clock, Ids, Scheduler } from '#kernel/ports/clock'
import type { ToolCatalogue } from '#kernel/ports/effect-target'
import type { TaskPolicy } from '#domains/tasks/deps'
import { Lifecycle } from './lifecycle.ts'
import { openDatabase } from './open-database.ts'
import type { LightDatabase } from '#infra/pglite/light-database'
import { version } from './version.ts'

/** What tests and tools put in place of the real thing. */
export type Overrides = {
  clock?: Clock
  ids?: Ids
  scheduler?: Scheduler
  /** A database that is open and migrated already; its owner closes it. */
  connection?: pg.PoolConfig
  /** Keeps systems on one Redis apart. */
  redisPrefix?: string
  /** Tools beside the instance's own. */
  tools?: ToolCatalogue
  /** Judges actions of tasks beside admission. */
  policy?: TaskPolicy
}

/** What every part stands on. */
export type Foundation = {
  config: Config
  version: string
  logger: Logger
  clock: Clock
  ids: Ids
  scheduler: Scheduler
  lifecycle: Lifecycle
  metrics: Registry
  database: Database
  /** The light tier's own database, where this process opened it. */
  lightDatabase: LightDatabase | null
  /** Migrations that this start applied. */
  appliedMigrations: readonly string[]
  log: EventLogRepository
  contents: ContentRepository
  redisPrefix: string
  /** Ports that this process listens on; tools never reach them. */
  listening: Set<number>
}

/** Opens and migrates the database of the configured tier and puts the record on it. */
export async function layFoundation({
  config,
  logger,
  overrides,
}: {
  config: Config
  logger: Logger
  overrides: Overrides
}): Promise<Foundation> {
  const clock = overrides.clock ?? systemClock
  const ids = overrides.ids ?? new SystemIds()
  const lifecycle = new Lifecycle(logger)
  const { connection, lightDatabase, appliedMigrations } = overrides.connection
    ? { connection: overrides.connection, lightDatabase: null, appliedMigrations: [] }
    : await openDatabase({ config, logger, lifecycle })
  const database = new Database(connection, { prepares: config.tier === 'full' })
  database.onPoolError = (error) => logger.warn({ err: error }, 'an idle database connection broke')
  lifecycle.onClose('database connections', () => database.close())
  lifecycle.addReadiness({ name: 'database', check: async () => void (await database.query('SELECT 1')) })
  const log = new EventLogRepository(database, {
    onHeld: ({ position, heldMs }) =>
      logger.warn({ position, heldMs }, 'a transaction that does not end holds back who reads the log in order'),
  })
  return {
    config,
    version,
    logger,
    clock,
    ids,
    scheduler: overrides.scheduler ?? systemScheduler,
    lifecycle,
    metrics: new Registry(),
    database,
    lightDatabase,
    appliedMigrations,
    log,
    contents: new ContentRepository({ database, log, ids, clock }),
    redisPrefix: overrides.redisPrefix ?? redisPrefixOf(config.databaseUrl),
    listening: new Set(),
  }
}

/** Instances on one Redis are kept apart by their database's name. */
function redisPrefixOf(databaseUrl: string | null): string {
  const name = databaseUrl === null ? '' : new URL(databaseUrl).pathname.slice(1)
  return `lingtai-${name.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`
}
