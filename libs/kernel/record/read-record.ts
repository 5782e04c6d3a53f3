import { EventRecord, EventTypeName, PROTOCOL_VERSION } from '#contracts'

/** An event was written under another version of the protocol: it is not read as ours, nor is anything negotiated (K7). */
export class ProtocolMismatchError extends Error {
  readonly stream: string
  readonly version: number

  constructor(stream: string, version: number) {
    super(`stream ${stream} holds an event of protocol ${version}; this is protocol ${PROTOCOL_VERSION}`)
    this.name = 'ProtocolMismatchError'
    this.stream = stream
    this.version = version
  }
}

/** What every event has, whatever it says. */
const Envelope = EventRecord.omit({ type: true, cause: true, payload: true, content_digests: true })

/**
 * A stored event as this version reads it. One whose type is unknown is dropped whole: in its place stands a closed notice, which keeps its
 * place in the stream and holds nothing of what it said (K7). Throws ProtocolMismatchError, ZodError.
 */
export function readRecord(stored: unknown): EventRecord {
  const envelope = Envelope.parse(stored)
  const { stream, protocol_version: version = PROTOCOL_VERSION } = envelope
  if (version !== PROTOCOL_VERSION) throw new ProtocolMismatchError(stream, version)
  const type = typeof stored === 'object' && stored !== null && 'type' in stored ? stored.type : null
  if (typeof type !== 'string' || EventTypeName.safeParse(type).success) return EventRecord.parse(stored)
  return { ...envelope, type: 'event.dropped', cause: { tag: 'unknown' }, payload: {}, content_digests: [] }
}
