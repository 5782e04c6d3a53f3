/**
 * The adapters of one tier on a database of their own, for the suites that every adapter of a port must pass: the light tier, or the
 * full one where `npm run test:full` gave its services.
 */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { LocalFanout } from '#infra/local/local-fanout'
import { LocalJobQueue } from '#infra/local/local-job-queue'
import { LocalSeat } from '#infra/local/local-seat'
import { runMigrations } from '#infra/migrations/run-migrations'
import { ApprovalRepository } from '#infra/prisma/approval.repository'
import { CheckpointRepository } from '#infra/prisma/checkpoint.repository'
import { ContentRepository } from '#infra/prisma/content.repository'
import { Database } from '#infra/prisma/database'
import { EffectRepository } from '#infra/prisma/effect.repository'
import { EventLogRepository } from '#infra/prisma/event-log.repository'
import { GrantRepository } from '#infra/prisma/grant.repository'
import { OutboxRepository } from '#infra/prisma/outbox.repository'
import { RunRepository } from '#infra/prisma/run.repository'
import { BullmqJobQueue } from '#infra/redis/bullmq-job-queue'
import { connectRedis, whenReady } from '#infra/redis/connect-redis'
import { RedisFanout } from '#infra/redis/redis-fanout'
import { RedisSeat } from '#infra/redis/redis-seat'
import { SystemIds, systemClock } from '#infra/system/clock'
import type { Fanout } from '#kernel/ports/fanout'
import type { JobQueue } from '#kernel/ports/job-queue'
import type { Seat } from '#kernel/ports/seat'
import { fullTierServicesIfAny } from './environment.ts'
import { createFullDatabase } from './full-database.ts'
import { openTestDatabase, PROJECT_MIGRATIONS } from './light-database.ts'

export type TierName = 'light' | 'full'

/** The tier that is tried: `npm test` has no services, `npm run test:full` is about them alone. */
export const portTiers: readonly TierName[] = fullTierServicesIfAny() ? ['full'] : ['light']

/** What the port suites try of the database side, as one process sees it. */
export type Stores = {
  database: Database
  log: EventLogRepository
  contents: ContentRepository
  runs: RunRepository
  outbox: OutboxRepository
  effects: EffectRepository
  approvals: ApprovalRepository
  checkpoints: CheckpointRepository
  grants: GrantRepository
}

/** Wake-ups as one process sees them; `reports` is what an adapter told instead of throwing. */
export type Wakeups = { fanout: Fanout; seat: Seat; queue: JobQueue; reports: unknown[]; close(): Promise<void> }

export type PortTier = Stores & {
  name: TierName
  ids: SystemIds
  /** The same database through a pool of its own, as another process would see it. */
  replica(): Stores
  /** An owner with a realm and a character, by plain rows. */
  character(): Promise<{ ownerId: string; characterId: string }>
  close(): Promise<void>
}

/** One instance's wake-ups, apart from all others. */
export type Instance = {
  /** As another process of the instance sees them; on the light tier there is only one, so each call answers the same. */
  process(): Promise<Wakeups>
  close(): Promise<void>
}

export function openInstance(name: TierName): Instance {
  const prefix = `lingtai-ports-${randomUUID()}`
  const opened: Wakeups[] = []
  return {
    process: async () => {
      const known = name === 'light' ? opened[0] : undefined
      const wakeups = known ?? (name === 'light' ? localWakeups() : await redisWakeups(prefix))
      if (!known) opened.push(wakeups)
      return wakeups
    },
    close: async () => void (await Promise.all(opened.map((wakeups) => wakeups.close()))),
  }
}

export async function openPortTier(name: TierName): Promise<PortTier> {
  const ids = new SystemIds()
  const closers: (() => Promise<void>)[] = []
  const connection = name === 'light' ? await openLight(closers) : await openFull(closers)

  const replica = (): Stores => {
    const database = new Database(connection, { prepares: name === 'full' })
    closers.push(() => database.close())
    const log = new EventLogRepository(database)
    const contents = new ContentRepository({ database, log, ids, clock: systemClock })
    return {
      database,
      log,
      contents,
      runs: new RunRepository(database),
      outbox: new OutboxRepository(database),
      effects: new EffectRepository(database),
      approvals: new ApprovalRepository(database),
      checkpoints: new CheckpointRepository(database),
      grants: new GrantRepository(database),
    }
  }
  const stores = replica()
  await stores.database.execute('INSERT INTO instance (id, instance_id) VALUES (1, $1::uuid)', [ids.next()])

  return {
    ...stores,
    name,
    ids,
    replica,
    character: () => insertCharacter(stores.database, ids),
    close: async () => {
      for (const close of closers.toReversed()) await close()
    },
  }
}

async function openLight(closers: (() => Promise<void>)[]): Promise<pg.PoolConfig> {
  const light = await openTestDatabase({ connections: 1 })
  closers.push(() => light.close())
  return { ...light.database.connection, max: 6 }
}

async function openFull(closers: (() => Promise<void>)[]): Promise<pg.PoolConfig> {
  const own = await createFullDatabase(services().databaseUrl)
  closers.push(() => own.close())
  const connection = { connectionString: own.url, max: 20 }
  const pool = new pg.Pool({ ...connection, max: 1 })
  try {
    await runMigrations({ pool, folder: PROJECT_MIGRATIONS })
  } finally {
    await pool.end()
  }
  return connection
}

function services() {
  const found = fullTierServicesIfAny()
  if (!found) throw new Error('the full tier was not given')
  return found
}

function localWakeups(): Wakeups {
  const reports: unknown[] = []
  const seat = new LocalSeat()
  const queue = new LocalJobQueue((error) => reports.push(error))
  return {
    fanout: new LocalFanout(),
    seat,
    queue,
    reports,
    close: once(async () => void (await Promise.all([seat.close(), queue.close()]))),
  }
}

async function redisWakeups(prefix: string): Promise<Wakeups> {
  const reports: unknown[] = []
  const report = (error: unknown): void => void reports.push(error)
  const { redisUrl } = services()
  const publisher = connectRedis(redisUrl, 'messages', report)
  const subscriber = connectRedis(redisUrl, 'subscriptions', report)
  const queueConnection = connectRedis(redisUrl, 'jobs', report)
  await Promise.all([whenReady(publisher), whenReady(subscriber)])
  const fanout = new RedisFanout({ publisher, subscriber, prefix: `${prefix}.`, report })
  const seat = new RedisSeat({ redis: publisher, fanout, prefix: `${prefix}.`, report })
  const queue = new BullmqJobQueue({ connection: queueConnection, prefix, report })
  const close = once(async () => {
    await queue.close()
    await seat.close()
    await Promise.all([publisher, subscriber, queueConnection].map((redis) => redis.quit()))
  })
  return { fanout, seat, queue, reports, close }
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= work())
}

async function insertCharacter(database: Database, ids: SystemIds): Promise<{ ownerId: string; characterId: string }> {
  const [ownerId, realmId, characterId, versionId, contentId] = [ids.next(), ids.next(), ids.next(), ids.next(), ids.next()]
  await database.run(async () => {
    await database.execute(`INSERT INTO owners (id, name, role) VALUES ($1::uuid, $2, 'user')`, [ownerId, ownerId])
    await database.execute(`INSERT INTO realms (id, owner_id, kind, name) VALUES ($1::uuid, $2::uuid, 'real', 'Earth')`, [realmId, ownerId])
    await database.execute(
      `INSERT INTO contents (id, owner_id, media_type, body, salt, digest, size)
       VALUES ($1::uuid, $2::uuid, 'application/json', '{}', sha256('a'), sha256('b'), 2)`,
      [contentId, ownerId],
    )
    await database.execute(
      `INSERT INTO characters (id, owner_id, name, realm_id, current_version_id) VALUES ($1::uuid, $2::uuid, 'Someone', $3::uuid, $4::uuid)`,
      [characterId, ownerId, realmId, versionId],
    )
    await database.execute(
      `INSERT INTO persona_versions (id, owner_id, character_id, version, card_content_id, origin)
       VALUES ($1::uuid, $2::uuid, $3::uuid, 1, $4::uuid, 'authored')`,
      [versionId, ownerId, characterId, contentId],
    )
  })
  return { ownerId, characterId }
}
