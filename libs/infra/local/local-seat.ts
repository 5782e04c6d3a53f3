import type { Seat } from '#kernel/ports/seat'

/** The seat's wake-ups inside one process (light tier). */
export class LocalSeat implements Seat {
  readonly #handlers = new Set<(characterId: string) => void>()

  announce(characterId: string): void {
    setImmediate(() => this.#handlers.forEach((handler) => handler(characterId)))
  }

  onAnnounce(handler: (characterId: string) => void): void {
    this.#handlers.add(handler)
  }

  /** Nobody else could read it. */
  note(): void {}

  close(): Promise<void> {
    this.#handlers.clear()
    return Promise.resolve()
  }
}
