import { CardError, Report } from './card-error.ts'
import type { Finding } from './card-error.ts'
import { decodeText } from './decode-text.ts'
import { emptyObject, fromString, memberObject, stringify, withMember } from './json-node.ts'
import type { JsonObjectNode } from './json-node.ts'
import { limits } from './limits.ts'
import { completeCardBook, hasEntries, readBook, writeBook } from './lore-book.ts'
import { originNode } from './lore-entry.ts'
import type { LoreBook } from './lore-types.ts'
import { parseJson } from './parse-json.ts'

/** Spellings of a stand-alone lorebook: SillyTavern's file, the bare book of a card, or that book in its V3 wrapper. */
export type LorebookFormat = 'world_info' | 'character_book' | 'lorebook_v3'

export interface ParsedLorebook {
  format: LorebookFormat
  book: LoreBook
  /** The exact JSON text. */
  source: string
  report: Finding[]
}

/**
 * Reads a stand-alone lorebook file (spec/6, formats). Throws CardError: too_large, invalid_utf8, not_json, not_object, not_lorebook,
 * nul_character, too_deep, too_many_values, too_many_items, number_too_long.
 */
export function parseLorebook(bytes: Uint8Array): ParsedLorebook {
  if (bytes.length > limits.fileBytes) throw new CardError('too_large', '', `The file is larger than ${limits.fileBytes} bytes`)
  const report = new Report()
  const source = decodeText(bytes, report)
  const root = parseJson(source, { report, maxDepth: limits.lorebookDepth })
  if (root.kind !== 'object') throw new CardError('not_object', '', 'A lorebook is a JSON object')
  const wrapped = memberObject(root, 'data')
  if (wrapped !== undefined && hasEntries(wrapped)) {
    const book = readBook(wrapped, { path: 'data', report })
    const wrapper = stringify(withMember(root, 'data', undefined))
    const origin = book.origin === undefined ? undefined : { ...book.origin, wrapper }
    return { format: 'lorebook_v3', book: { ...book, origin }, source, report: report.list() }
  }
  if (!hasEntries(root)) throw new CardError('not_lorebook', 'entries', 'A lorebook has a list, or an object, of entries')
  const book = readBook(root, { path: '', report })
  return { format: book.origin?.dialect ?? 'character_book', book, source, report: report.list() }
}

/**
 * Writes a lorebook as UTF-8 JSON. Unchanged entries keep their own text where the dialect stays, and unknown members survive a change
 * of dialect too. In `world_info` an entry whose id does not rise with the list gets another one. Throws CardError nul_character,
 * wrong_number for values that JSON cannot hold.
 */
export function exportLorebook(book: LoreBook, format: LorebookFormat): Uint8Array {
  if (format === 'world_info') return Buffer.from(stringify(writeBook(book, 'world_info', '')))
  const node = completeCardBook(writeBook(book, 'character_book', ''), format === 'lorebook_v3' ? 'v3' : 'v2')
  return Buffer.from(stringify(format === 'lorebook_v3' ? wrap(node, book) : node))
}

function wrap(node: JsonObjectNode, { origin }: LoreBook): JsonObjectNode {
  const wrapper = origin?.wrapper === undefined ? undefined : originNode(origin.wrapper)
  return withMember(withMember(wrapper ?? emptyObject, 'spec', fromString('lorebook_v3')), 'data', node)
}
