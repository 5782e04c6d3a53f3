import { parseLorebook } from './cards/index.ts'
import type { Finding, LoreBook } from './cards/index.ts'
import { refusingCards } from './refuse-card.ts'

/** A book in the form in which lorebooks are kept: settings that activation needs, entries as normalised JSON texts. */
export function keepableBook(book: LoreBook) {
  return {
    name: book.name ?? null,
    settings: { scan_depth: book.scanDepth, token_budget: book.tokenBudget, recursive: book.recursive },
    entries: book.entries.map((entry) => JSON.stringify(entry)),
  }
}

/** Reads a stand-alone lorebook file. Throws LingtaiError invalid_file, payload_too_large. */
export function readLorebookFile(bytes: Uint8Array): { book: ReturnType<typeof keepableBook>; source: string; report: Finding[] } {
  const { book, source, report } = refusingCards(() => parseLorebook(bytes))
  return { book: keepableBook(book), source, report }
}
