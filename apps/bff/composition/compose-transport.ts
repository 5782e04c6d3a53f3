import { LocalFanout } from '#infra/local/local-fanout'
import { LocalJobQueue } from '#infra/local/local-job-queue'
import { LocalSeat } from '#infra/local/local-seat'
import { BullmqJobQueue } from '#infra/redis/bullmq-job-queue'
import { connectRedis } from '#infra/redis/connect-redis'
import { RedisFanout } from '#infra/redis/redis-fanout'
import { RedisSeat } from '#infra/redis/redis-seat'
import type { Fanout } from '#kernel/ports/fanout'
import type { JobQueue } from '#kernel/ports/job-queue'
import type { Seat } from '#kernel/ports/seat'
import type { Foundation } from './foundation.ts'

export type Transport = { fanout: Fanout; seat: Seat; queue: JobQueue }

/** Wake-ups: in process on the light tier, Redis and BullMQ on the full one. They carry nothing that may not be lost. */
export function composeTransport({ config, lifecycle, logger, redisPrefix }: Foundation): Transport {
  const report = (error: unknown): void => logger.warn({ err: error }, 'a wake-up was lost')
  if (config.redisUrl === null) {
    const seat = new LocalSeat()
    lifecycle.onClose('seat', () => seat.close())
    return { fanout: new LocalFanout(), seat, queue: new LocalJobQueue(report) }
  }
  const publisher = connectRedis(config.redisUrl, 'messages', report)
  const subscriber = connectRedis(config.redisUrl, 'subscriptions', report)
  const queueConnection = connectRedis(config.redisUrl, 'jobs', report)
  const prefix = `${redisPrefix}.`
  const fanout = new RedisFanout({ publisher, subscriber, prefix, report })
  const seat = new RedisSeat({ redis: publisher, fanout, prefix, report })
  const queue = new BullmqJobQueue({ connection: queueConnection, prefix: redisPrefix, report })
  lifecycle.addReadiness({ name: 'redis', check: async () => void (await publisher.ping()) })
  lifecycle.onClose('redis', async () => {
    await seat.close()
    // Nothing that is under way matters by now, and a farewell would wait for a Redis that is away.
    for (const redis of [publisher, subscriber, queueConnection]) redis.disconnect()
  })
  return { fanout, seat, queue }
}
