/** How many are remembered; the oldest is forgotten first, which only lets it be tried sooner. */
const REMEMBERED = 1_000

/**
 * Rows of a sweep that could not be done here lately: whoever looks for rows puts them behind all others, so that no number of them keeps
 * anybody waiting (Bounded).
 */
export class Stragglers {
  readonly #ids = new Set<string>()

  /** Longest ago first. */
  get ids(): readonly string[] {
    return [...this.#ids]
  }

  /** It could not be done. */
  note(id: string): void {
    this.#ids.delete(id)
    this.#ids.add(id)
    for (const oldest of this.#ids) {
      if (this.#ids.size <= REMEMBERED) return
      this.#ids.delete(oldest)
    }
  }

  /** It is done, or nothing is to be done any more. */
  forget(id: string): void {
    this.#ids.delete(id)
  }
}
