import { createHash } from 'node:crypto'
import { eventDictionary, PROTOCOL_VERSION } from '#contracts'
import type { ContentDigest, EventRecord, EventType, NewEvent, Visibility } from '#contracts'
import { canonicalJson } from './canonical-json.ts'

/** The hash before the first event of a stream: 32 zero bytes. */
export const GENESIS_HASH: Uint8Array = new Uint8Array(32)

/** Where a stream stands: its last sequence number (0 = empty) and that event's hash. */
export type StreamHead = { seq: number; hash: Uint8Array }

export const EMPTY_HEAD: StreamHead = { seq: 0, hash: GENESIS_HASH }

/** SHA-256 of the previous hash followed by the canonical bytes (decision 8). */
export function chainHash(previous: Uint8Array, canonical: string): Uint8Array {
  return createHash('sha256').update(previous).update(canonical, 'utf8').digest()
}

/** SHA-256 of salt followed by the content's bytes: the only trace of a content in the log (decision 10). */
export function saltedDigest(salt: Uint8Array, content: string | Uint8Array): Uint8Array {
  const hash = createHash('sha256').update(salt)
  return (typeof content === 'string' ? hash.update(content, 'utf8') : hash.update(content)).digest()
}

/** SHA-256 of a text as lower-case hex. */
export function sha256Hex(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}

/** An event ready to be written: its columns and the canonical bytes that its hash covers. */
export type ChainedEvent = {
  stream: string
  seq: number
  type: EventType
  visibility: Visibility
  owner_id: string | null
  run_id: string | null
  canonical: string
  prev_hash: Uint8Array
  hash: Uint8Array
}

/**
 * Puts events at the end of a stream: validates each payload against the dictionary, fills the envelope, chains the hashes.
 * Pure; throws a ZodError for a payload that the dictionary does not know (K5, decision 10).
 */
export function chainEvents(input: { stream: string; ownerId: string | null; head: StreamHead; events: readonly NewEvent[] }): {
  chained: ChainedEvent[]
  head: StreamHead
} {
  let { seq, hash } = input.head
  const chained: ChainedEvent[] = []
  for (const event of input.events) {
    const definition = eventDictionary[event.type]
    const kind = input.stream.slice(0, input.stream.indexOf(':'))
    if (kind !== definition.stream && kind !== definition.alsoOn) throw new WrongStreamError(event.type, input.stream)
    seq += 1
    const record: EventRecord = {
      stream: input.stream,
      seq,
      type: event.type,
      version: definition.version,
      at: event.at,
      cause: event.cause,
      payload: strictPayload(event.type).parse(event.payload),
      content_digests: event.content_digests ?? [],
      ...(event.type === 'llm.delta' ? {} : envelope(event, input.ownerId)),
    }
    const canonical = canonicalJson(record)
    const next = chainHash(hash, canonical)
    chained.push({
      stream: input.stream,
      seq,
      type: event.type,
      visibility: definition.visibility,
      owner_id: input.ownerId,
      run_id: event.run_id ?? null,
      canonical,
      prev_hash: hash,
      hash: next,
    })
    hash = next
  }
  return { chained, head: { seq, hash } }
}

const strictPayloads = new Map<EventType, ReturnType<(typeof eventDictionary)[EventType]['payload']['strict']>>()

/** The payload schema that refuses unknown members; made once per type, since making it costs more than using it. */
function strictPayload(type: EventType) {
  const known = strictPayloads.get(type)
  if (known) return known
  const made = eventDictionary[type].payload.strict()
  strictPayloads.set(type, made)
  return made
}

/** What a delta does not repeat. */
function envelope(event: NewEvent, ownerId: string | null) {
  return {
    protocol_version: PROTOCOL_VERSION,
    visibility: eventDictionary[event.type].visibility,
    owner_id: ownerId,
    character_id: event.character_id ?? null,
    run_id: event.run_id ?? null,
    trace_id: event.trace_id ?? null,
    actor: event.actor,
    trust: event.trust ?? 'workspace',
  }
}

/** An event was put on a stream of another kind than the dictionary says. */
export class WrongStreamError extends Error {
  constructor(type: string, stream: string) {
    super(`event ${type} does not belong on stream ${stream}`)
    this.name = 'WrongStreamError'
  }
}

/** A digest entry for an event's `content_digests`. */
export function contentDigest(contentId: string, digest: Uint8Array, segment?: number): ContentDigest {
  const hex = Buffer.from(digest).toString('hex')
  return segment === undefined ? { content_id: contentId, digest: hex } : { content_id: contentId, digest: hex, segment }
}
