import type { ContentStore } from '#kernel/ports/content-store'
import { parseCard } from './cards/index.ts'
import type { NormalisedCard } from './cards/index.ts'

/** Cards that are kept read, and the longest source (UTF-16 units) that is worth keeping. */
const KEPT_CARDS = 256
const KEPT_LENGTH = 256 * 1024

/** Reads cards from their stored JSON text and keeps the last ones read: a persona version never changes. */
export class CardShelf {
  readonly #contents: ContentStore
  readonly #kept = new Map<string, NormalisedCard>()

  constructor(contents: ContentStore) {
    this.#contents = contents
  }

  /** The cards of these contents; one that is erased or unknown is missing. */
  async read(contentIds: readonly string[]): Promise<Map<string, NormalisedCard>> {
    const cards = new Map<string, NormalisedCard>()
    const missing: string[] = []
    for (const id of new Set(contentIds)) {
      const card = this.#kept.get(id)
      if (card) {
        cards.set(id, card)
        this.#keep(id, card)
      } else missing.push(id)
    }
    for (const [id, { body }] of await this.#contents.get(missing)) {
      if (body === null) continue
      const { card } = parseCard(Buffer.from(body))
      cards.set(id, card)
      if (body.length <= KEPT_LENGTH) this.#keep(id, card)
    }
    return cards
  }

  forget(contentIds: readonly string[]): void {
    for (const id of contentIds) this.#kept.delete(id)
  }

  #keep(id: string, card: NormalisedCard): void {
    this.#kept.delete(id)
    this.#kept.set(id, card)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > KEPT_CARDS && oldest !== undefined) this.#kept.delete(oldest)
  }
}
