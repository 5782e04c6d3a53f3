import type { ExtractionRequest } from '#contracts'
import type { CanonicalMessage, ExtractionMark } from './ports.ts'
import { localIso } from './zone-time.ts'

/** A message with the text that a reader sees; null where it is deleted, erased or empty. */
export type ReadableMessage = Omit<CanonicalMessage, 'body' | 'layout'> & { text: string | null }

/** What one model call is shown, and where the next one goes on. */
export type ExtractionBatch = {
  messages: ExtractionRequest['messages']
  sources: ReadableMessage[]
  zone: string
  end: ExtractionMark
  /** Nothing is left after it. */
  last: boolean
}

/** Most UTF-16 units of message text in one call: it must fit beside the prompt and the answer into the smallest window we offer. */
export const BATCH_UNITS = 6_000
/** Most messages in one call. */
export const BATCH_MESSAGES = 60

/**
 * The next messages after a mark, whole where they fit; one that alone is too large is cut, and goes on in the next batch. Null where no
 * text is left. The same range and mark give the same batch.
 */
export function nextBatch(input: {
  messages: readonly ReadableMessage[]
  mark: ExtractionMark | null
  zone: string
  names: { user: string; character: string }
  limits?: { units: number; messages: number }
}): ExtractionBatch | null {
  const { units, messages: most } = input.limits ?? { units: BATCH_UNITS, messages: BATCH_MESSAGES }
  const start = input.mark === null ? 0 : input.messages.findIndex((message) => message.node_id === input.mark?.node_id)
  const batch: Omit<ExtractionBatch, 'end' | 'last'> = { messages: [], sources: [], zone: input.zone }
  let end: ExtractionMark | null = null
  let left = units
  for (const [index, message] of input.messages.entries()) {
    // A mark in a message that is no longer in the range cannot be: ranges are fixed and nodes stay (decision 24).
    if (index < start || message.text === null) continue
    const from = message.node_id === input.mark?.node_id ? input.mark.offset : 0
    const rest = message.text.slice(from)
    if (rest.trim() === '') continue
    const isFirst = batch.messages.length === 0
    if (batch.messages.length >= most || (!isFirst && rest.length > left)) return end && { ...batch, end, last: false }
    const piece = cutAt(rest, left)
    batch.messages.push({
      id: message.node_id,
      role: message.role,
      speaker: message.speaker_name ?? input.names[message.role],
      at: localIso(message.at, message.zone ?? input.zone),
      text: piece,
    })
    batch.sources.push(message)
    end = { node_id: message.node_id, offset: from + piece.length }
    left -= piece.length
    if (piece.length < rest.length) return { ...batch, end, last: false }
  }
  return end && { ...batch, end, last: true }
}

/** The longest beginning within a length that breaks no sign, at a white space where one is near. */
function cutAt(text: string, length: number): string {
  if (text.length <= length) return text
  const head = text
    .slice(0, Math.max(length, 2))
    .toWellFormed()
    .replace(/\ufffd$/u, '')
  const space = head.search(/\s\S*$/u)
  return space > head.length / 2 ? head.slice(0, space + 1) : head
}
