import { CardError } from './card-error.ts'
import { exportCard } from './export-card.ts'
import type { CardExport, CardFormat } from './export-card.ts'
import type { NormalisedCard } from './card-types.ts'
import type { LoreBook } from './lore-types.ts'

/** Helpers for this folder's tests. */
export const bytesOf = (value: unknown): Uint8Array => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))

export const exportText = (input: CardExport, format: CardFormat): string => Buffer.from(exportCard(input, format)).toString()

/** Code and path of the CardError that the action throws; fails where it throws none. */
export function refusal(action: () => unknown): { code: string; path: string } {
  try {
    action()
  } catch (error) {
    if (error instanceof CardError) return { code: error.code, path: error.path }
    throw error
  }
  throw new Error('nothing was refused')
}

/** A book or card as it reads, without the texts it came from. */
export const bookMeaning = (book: LoreBook): LoreBook => ({
  ...book,
  origin: undefined,
  entries: book.entries.map((entry) => ({ ...entry, origin: undefined })),
})

export const cardMeaning = (card: NormalisedCard): NormalisedCard => ({ ...card, ...(card.book && { book: bookMeaning(card.book) }) })
