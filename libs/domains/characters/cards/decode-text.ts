import { CardError } from './card-error.ts'
import type { Report } from './card-error.ts'

/** Strict UTF-8; a byte order mark is dropped and reported. Throws CardError invalid_utf8. */
export function decodeText(bytes: Uint8Array, report: Report): string {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new CardError('invalid_utf8', '', 'The text is not valid UTF-8', { cause })
  }
  if (!text.startsWith('\u{FEFF}')) return text
  report.add('', 'byte_order_mark', 'A byte order mark at the start was dropped')
  return text.slice(1)
}
