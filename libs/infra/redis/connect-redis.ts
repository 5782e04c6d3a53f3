import { Redis } from 'ioredis'
import type { RedisOptions } from 'ioredis'

/** A connection that takes commands and says nothing for so long is broken, whatever TCP believes. */
const SILENCE_MS = 5_000
const RECONNECT_MAX_MS = 2_000

/**
 * What each use of Redis does while Redis is away. `messages`: nothing waits, what cannot be sent now is lost, as every message may be.
 * `subscriptions`: they wait, and are made again with each new connection. `jobs`: BullMQ's own way, commands wait.
 */
const uses = {
  messages: { enableOfflineQueue: false, maxRetriesPerRequest: 0, socketTimeout: SILENCE_MS, enableAutoPipelining: true },
  subscriptions: { enableOfflineQueue: true, maxRetriesPerRequest: null, autoResubscribe: true, socketTimeout: SILENCE_MS },
  jobs: { enableOfflineQueue: true, maxRetriesPerRequest: null },
} satisfies Record<string, RedisOptions>

/** Opens a connection that comes back by itself as long as it is not closed. Never throws for an absent Redis: `report` hears of each failure. */
export function connectRedis(url: string, use: keyof typeof uses, report: (error: unknown) => void): Redis {
  const redis = new Redis(url, { ...uses[use], retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 6), RECONNECT_MAX_MS) })
  redis.on('error', report)
  return redis
}

/** Resolves when the connection stands. */
export function whenReady(redis: Redis): Promise<void> {
  return redis.status === 'ready' ? Promise.resolve() : new Promise((resolve) => redis.once('ready', resolve))
}
