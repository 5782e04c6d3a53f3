import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fullTierServices } from '#test/support/environment'

const numberOf = (version: string | undefined) => Number.parseFloat(version ?? '')

describe('the services that the full tier needs', () => {
  const { databaseUrl, redisUrl } = fullTierServices()
  const database = new pg.Client({ connectionString: databaseUrl })
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: 1 })

  beforeAll(() => database.connect())
  afterAll(async () => {
    await database.end()
    redis.disconnect()
  })

  it('PostgreSQL is 15 or newer and speaks UTF-8', async () => {
    const version = await database.query<{ server_version: string }>('show server_version')
    const encoding = await database.query<{ server_encoding: string }>('show server_encoding')
    expect(numberOf(version.rows[0]?.server_version)).toBeGreaterThanOrEqual(15)
    expect(encoding.rows[0]?.server_encoding).toBe('UTF8')
  })

  it('pgvector is 0.8 or newer: half vectors and iterative scans', async () => {
    const { rows } = await database.query<{ default_version: string }>(
      "select default_version from pg_available_extensions where name = 'vector'",
    )
    expect(numberOf(rows[0]?.default_version)).toBeGreaterThanOrEqual(0.8)
  })

  it('Redis answers and delivers what is published', async () => {
    const subscriber = redis.duplicate()
    try {
      const heard = new Promise<string>((resolve) => subscriber.once('message', (_channel, message) => resolve(message)))
      await subscriber.subscribe('lingtai-test-services')
      await redis.publish('lingtai-test-services', '灵台')
      expect(await heard).toBe('灵台')
    } finally {
      subscriber.disconnect()
    }
  })
})
