import type { Redis } from 'ioredis'
import type { Fanout } from '#kernel/ports/fanout'

/** Wake-ups across replicas, over Redis pub/sub. A lost connection loses messages and nothing else: readers look at the log after silence. */
export class RedisFanout implements Fanout {
  readonly #publisher: Redis
  readonly #subscriber: Redis
  readonly #prefix: string
  readonly #report: (error: unknown) => void
  readonly #channels = new Map<string, Set<(message: string) => void>>()

  constructor({ publisher, subscriber, prefix, report }: { publisher: Redis; subscriber: Redis; prefix: string; report: (error: unknown) => void }) {
    this.#publisher = publisher
    this.#subscriber = subscriber
    this.#prefix = prefix
    this.#report = report
    subscriber.on('message', (channel: string, message: string) => {
      this.#channels.get(channel.slice(prefix.length))?.forEach((handler) => handler(message))
    })
  }

  publish(channel: string, message: string): void {
    this.#publisher.publish(`${this.#prefix}${channel}`, message).catch(this.#report)
  }

  async subscribe(channel: string, handler: (message: string) => void): Promise<() => void> {
    const handlers = this.#channels.get(channel) ?? new Set()
    const isFirst = handlers.size === 0
    handlers.add(handler)
    this.#channels.set(channel, handlers)
    // Without Redis a reader falls back on the log, so a failed subscription is reported and not thrown.
    if (isFirst) await this.#subscriber.subscribe(`${this.#prefix}${channel}`).catch(this.#report)
    return () => {
      handlers.delete(handler)
      if (handlers.size > 0 || this.#channels.get(channel) !== handlers) return
      this.#channels.delete(channel)
      this.#subscriber.unsubscribe(`${this.#prefix}${channel}`).catch(this.#report)
    }
  }
}
