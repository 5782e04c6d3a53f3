/**
 * Remembers which stored content holds a rendered text (a card's field, a heading), so that an unchanged one is stored once and not with
 * every turn. In memory only: a digest of an erasable text is never kept without its salt (decision 10).
 */
export class DerivedCache {
  readonly #entries = new Map<string, { contentId: string; digest: string }>()
  readonly #capacity: number

  constructor(capacity = 2_000) {
    this.#capacity = capacity
  }

  find(ownerId: string, text: string, derivedFrom: readonly string[]): { contentId: string; digest: string } | null {
    return this.#entries.get(key(ownerId, text, derivedFrom)) ?? null
  }

  remember(ownerId: string, text: string, derivedFrom: readonly string[], stored: { contentId: string; digest: string }): void {
    const oldest = this.#entries.keys().next()
    if (this.#entries.size >= this.#capacity && oldest.done !== true) this.#entries.delete(oldest.value)
    this.#entries.set(key(ownerId, text, derivedFrom), stored)
  }

  forget(ownerId: string, text: string, derivedFrom: readonly string[]): void {
    this.#entries.delete(key(ownerId, text, derivedFrom))
  }
}

function key(ownerId: string, text: string, derivedFrom: readonly string[]): string {
  return JSON.stringify([ownerId, derivedFrom, text])
}
