import { CardError, Report } from './card-error.ts'
import type { Finding } from './card-error.ts'
import { readDocument } from './card-document.ts'
import type { CardSpec, NormalisedCard } from './card-types.ts'
import { decodeText } from './decode-text.ts'
import { limits } from './limits.ts'
import { looksLikePng, readPng, readTextChunk } from './png.ts'

export interface ParsedCard {
  format: 'json' | 'png'
  specVersion: CardSpec
  card: NormalisedCard
  /** The exact JSON text; of a PNG, that of the chunk that was read. */
  source: string
  /** The picture's own bytes (decision 40). */
  avatar?: Uint8Array
  report: Finding[]
}

/**
 * Reads a character card, V1 to V3, from JSON or PNG (spec/6, formats). What can be read is read and what is odd is reported; a file
 * that cannot be trusted throws CardError: too_large, empty_file, unsupported_format, invalid_utf8, not_json, not_object, too_deep,
 * too_many_values, too_many_items, number_too_long, nul_character, missing_name, not_png, png_truncated, png_bad_chunk, png_bad_crc,
 * no_card_in_png, bad_base64.
 */
export function parseCard(bytes: Uint8Array): ParsedCard {
  if (bytes.length > limits.fileBytes) throw new CardError('too_large', '', `The file is larger than ${limits.fileBytes} bytes`)
  if (bytes.length === 0) throw new CardError('empty_file', '', 'The file is empty')
  if (looksLikePng(bytes)) return parsePngCard(bytes)
  const other = otherFormat(bytes)
  if (other !== undefined)
    throw new CardError('unsupported_format', '', `A ${other} file holds no card that can be read here; use PNG or JSON`)
  return { format: 'json', ...parseText(bytes, []) }
}

type TextCard = Pick<ParsedCard, 'specVersion' | 'card' | 'source' | 'report'>

function parseText(bytes: Uint8Array, findings: readonly Finding[]): TextCard {
  const report = new Report()
  for (const { path, code, message } of findings) report.add(path, code, message)
  const source = decodeText(bytes, report)
  const { specVersion, card } = readDocument(source, report)
  return { specVersion, card, source, report: report.list() }
}

/** `ccv3` wins over `chara` (case C6); a broken `ccv3` beside a sound `chara` does not cost the card, but is reported. */
function parsePngCard(bytes: Uint8Array): ParsedCard {
  const report = new Report()
  const texts = readPng(bytes, report).flatMap((chunk) => readTextChunk(chunk) ?? [])
  const newer = firstOf(texts, 'ccv3', report)
  const older = firstOf(texts, 'chara', report)
  const rest = { format: 'png', avatar: bytes } as const
  const preferred = newer ?? older
  if (preferred === undefined) throw new CardError('no_card_in_png', '', 'The picture holds no card: neither a ccv3 nor a chara text')
  if (newer === undefined || older === undefined) return { ...rest, ...parseText(decodeBase64(preferred), report.list()) }
  try {
    return { ...rest, ...parseText(decodeBase64(newer), report.list()) }
  } catch (error) {
    if (!(error instanceof CardError)) throw error
    report.add('', 'fallback_to_chara', `The ccv3 text cannot be read (${error.code}: ${error.message}); chara was read instead`)
    return { ...rest, ...parseText(decodeBase64(older), report.list()) }
  }
}

function firstOf(texts: readonly { keyword: string; value: Uint8Array }[], keyword: string, report: Report): Uint8Array | undefined {
  const [first, ...more] = texts.filter((text) => text.keyword === keyword)
  if (more.length > 0) report.add('', 'duplicate_chunk', `The picture holds ${more.length + 1} ${keyword} texts; the first was read`)
  return first?.value
}

function decodeBase64(value: Uint8Array): Uint8Array {
  const encoded = Buffer.from(value)
    .toString('latin1')
    .replace(/[ \t\r\n]+/g, '')
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(encoded)) throw new CardError('bad_base64', '', 'The card inside the picture is not base64')
  return Buffer.from(encoded, 'base64')
}

function otherFormat(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.subarray(0, 12)).toString('latin1')
  if (head.startsWith('PK\x03\x04')) return 'ZIP (CHARX)'
  if (head.startsWith('\xff\xd8\xff')) return 'JPEG'
  if (head.startsWith('GIF8')) return 'GIF'
  if (head.startsWith('RIFF') && head.endsWith('WEBP')) return 'WEBP'
  return undefined
}
