import type { Redis } from 'ioredis'
import type { Fanout } from '#kernel/ports/fanout'
import type { Seat } from '#kernel/ports/seat'

const CHANNEL = 'seat'

/** The seat's wake-ups and hints across replicas. Postgres decides; a flushed Redis costs latency alone (decision 22, case Q5). */
export class RedisSeat implements Seat {
  readonly #redis: Redis
  readonly #fanout: Fanout
  readonly #prefix: string
  readonly #report: (error: unknown) => void
  readonly #unsubscribe: Promise<() => void>[] = []

  constructor({ redis, fanout, prefix, report }: { redis: Redis; fanout: Fanout; prefix: string; report: (error: unknown) => void }) {
    this.#redis = redis
    this.#fanout = fanout
    this.#prefix = prefix
    this.#report = report
  }

  announce(characterId: string): void {
    this.#fanout.publish(CHANNEL, characterId)
  }

  onAnnounce(handler: (characterId: string) => void): void {
    this.#unsubscribe.push(this.#fanout.subscribe(CHANNEL, handler))
  }

  note(characterId: string, runId: string, ttlMs: number): void {
    if (this.#redis.status !== 'ready') return
    this.#redis.set(`${this.#prefix}seat.${characterId}`, runId, 'PX', ttlMs).catch(this.#report)
  }

  async close(): Promise<void> {
    for (const unsubscribe of await Promise.all(this.#unsubscribe)) unsubscribe()
  }
}
