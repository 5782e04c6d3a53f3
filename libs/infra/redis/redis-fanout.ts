import type { Redis } from 'ioredis'
import type { Fanout } from '#kernel/ports/fanout'

/** How long somebody who subscribes waits for Redis to say so; after that the log alone has to do until it does. */
const SUBSCRIBE_WAIT_MS = 1_000

type Channel = { handlers: Set<(message: string) => void>; inForce: Promise<void> }

/** Wake-ups across replicas, over Redis pub/sub. A lost connection loses messages and nothing else: readers look at the log after silence. */
export class RedisFanout implements Fanout {
  readonly #publisher: Redis
  readonly #subscriber: Redis
  readonly #prefix: string
  readonly #report: (error: unknown) => void
  readonly #channels = new Map<string, Channel>()

  /** `publisher` must not hold messages back while Redis is away, `subscriber` must make its subscriptions again (connectRedis). */
  constructor({
    publisher,
    subscriber,
    prefix,
    report,
  }: {
    publisher: Redis
    subscriber: Redis
    prefix: string
    report: (error: unknown) => void
  }) {
    this.#publisher = publisher
    this.#subscriber = subscriber
    this.#prefix = prefix
    this.#report = report
    subscriber.on('message', (channel: string, message: string) => {
      this.#channels.get(channel.slice(prefix.length))?.handlers.forEach((handler) => handler(message))
    })
  }

  publish(channel: string, message: string): void {
    // Without a connection the message is lost, and the connection itself says why.
    if (this.#publisher.status !== 'ready') return
    this.#publisher.publish(`${this.#prefix}${channel}`, message).catch(this.#report)
  }

  async subscribe(channel: string, handler: (message: string) => void): Promise<() => void> {
    const entry = this.#channels.get(channel) ?? { handlers: new Set(), inForce: this.#begin(channel) }
    entry.handlers.add(handler)
    this.#channels.set(channel, entry)
    await withinTime(entry.inForce, SUBSCRIBE_WAIT_MS)
    return () => {
      entry.handlers.delete(handler)
      if (entry.handlers.size > 0 || this.#channels.get(channel) !== entry) return
      this.#channels.delete(channel)
      this.#subscriber.unsubscribe(`${this.#prefix}${channel}`).catch(this.#report)
    }
  }

  /** A reader falls back on the log, so a failed subscription is reported and not thrown. */
  #begin(channel: string): Promise<void> {
    return this.#subscriber.subscribe(`${this.#prefix}${channel}`).then(() => undefined, this.#report)
  }
}

function withinTime(work: Promise<void>, milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds)
    void work.finally(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}
