import type { Fanout } from '#kernel/ports/fanout'

/** Wake-ups inside one process (light tier). Handlers run after the publisher's turn, as they would over a network. */
export class LocalFanout implements Fanout {
  readonly #channels = new Map<string, Set<(message: string) => void>>()

  publish(channel: string, message: string): void {
    const handlers = this.#channels.get(channel)
    if (handlers) setImmediate(() => handlers.forEach((handler) => handler(message)))
  }

  subscribe(channel: string, handler: (message: string) => void): Promise<() => void> {
    const handlers = this.#channels.get(channel) ?? new Set()
    handlers.add(handler)
    this.#channels.set(channel, handlers)
    return Promise.resolve(() => {
      handlers.delete(handler)
      if (handlers.size === 0 && this.#channels.get(channel) === handlers) this.#channels.delete(channel)
    })
  }
}
