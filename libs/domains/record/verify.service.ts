import { EventRecord, eventDictionary, EventTypeName, PROTOCOL_VERSION } from '#contracts'
import { Slug } from '#contracts'
import type { VerifyReport } from '#contracts'
import { z } from 'zod'
import { canonicalJson } from '#kernel/record/canonical-json'
import { chainHash, GENESIS_HASH, saltedDigest } from '#kernel/record/chain'
import { ANCHORS } from './anchor-check.ts'
import type { AnchorFindings } from './anchor-check.ts'

type Fault = VerifyReport['faults'][number]

/** An event's row as it lies in the table, columns beside canonical bytes. */
export type RawEvent = {
  stream: string
  seq: number
  type: string
  visibility: string
  owner_id: string | null
  run_id: string | null
  canonical: string
  payload: unknown
  prev_hash: Uint8Array
  hash: Uint8Array
}

export interface ChainSource {
  /** Names of streams, in order, a page at a time. */
  streams(after: string, limit: number): Promise<string[]>
  head(stream: string): Promise<{ seq: number; hash: Uint8Array } | null>
  events(stream: string, after: number, limit: number): Promise<RawEvent[]>
  /** Salts and bytes of the contents that events refer to; an answer that is still being written is its segments so far. */
  contents(ids: readonly string[]): Promise<Map<string, ContentProof>>
  /** The stream takes nothing more; one that was taken away whole stays away. */
  quarantine(stream: string): Promise<void>
}

/** What a digest in the log can be checked against; `erased` contents prove nothing and disprove nothing. */
export type ContentProof = {
  erased: boolean
  digest: Uint8Array
  salt: Uint8Array | null
  body: string | Uint8Array | null
  segments: readonly { text: string; salt: Uint8Array }[]
}

const PAGE = 500

/** How far a stream is verified: the last sequence number, its hash, and what was wrong up to there. */
type Verified = { stream: string; events: number; hash: Uint8Array; faults: Fault[] }

/**
 * Recomputes every chain from its first event: hashes, order, heads, columns against canonical bytes, the digests of what contents are
 * still there, and the signed anchors over all of it (K5). A broken stream is quarantined: it takes nothing more until a person looked at it (decision 18).
 */
export class VerifyService {
  readonly #source: ChainSource
  readonly #anchors: { check(options: { before?: number }): Promise<AnchorFindings> }
  readonly #now: () => number

  constructor({
    source,
    anchors,
    now,
  }: {
    source: ChainSource
    anchors: { check(options: { before?: number }): Promise<AnchorFindings> }
    now: () => number
  }) {
    this.#source = source
    this.#anchors = anchors
    this.#now = now
  }

  /**
   * `signal`: nobody wants to know any more; throws its reason between two streams. `before`: anchors on file from this number on are of a
   * time that a restore takes back.
   */
  async verifyAll({ signal, before }: { signal?: AbortSignal; before?: number } = {}): Promise<VerifyReport> {
    const started = this.#now()
    const faults: Fault[] = []
    let streams = 0
    let events = 0
    for (let after = ''; ;) {
      const page = await this.#source.streams(after, PAGE)
      for (const stream of page) {
        signal?.throwIfAborted()
        const found = await this.#verifyStream(stream)
        streams += 1
        events += found.events
        faults.push(...found.faults)
        if (found.faults.some((fault) => fault.fault !== 'content')) await this.#source.quarantine(stream)
      }
      const last = page.at(-1)
      if (last === undefined || page.length < PAGE) break
      after = last
    }
    const anchors = await this.#anchors.check({ before })
    faults.push(...anchors.faults)
    for (const { stream } of anchors.faults) if (stream !== ANCHORS) await this.#source.quarantine(stream)
    return {
      streams,
      events,
      intact: faults.length === 0,
      faults,
      anchors: { count: anchors.count, filed: anchors.filed },
      milliseconds: this.#now() - started,
    }
  }

  async #verifyStream(stream: string): Promise<Verified> {
    const verified: Verified = { stream, events: 0, hash: GENESIS_HASH, faults: [] }
    // Streams are appended to while they are read: events and head move together, so the head that was read before the events must be
    // among them, and the one that is read after them not be behind.
    for (let before = await this.#source.head(stream); ; before = await this.#source.head(stream)) {
      await this.#readOn(verified)
      const head = before && before.seq >= verified.events ? before : await this.#source.head(stream)
      if (head && head.seq > verified.events && head !== before) continue
      if (head?.seq !== verified.events || !sameBytes(head.hash, verified.hash))
        verified.faults.push({ stream, seq: verified.events, fault: 'head' })
      return verified
    }
  }

  /** Verifies the events that follow on those before, up to the last one there is now. */
  async #readOn(verified: Verified): Promise<void> {
    const { stream, faults } = verified
    for (let page: RawEvent[] | null = null; page === null || page.length === PAGE;) {
      page = await this.#source.events(stream, verified.events, PAGE)
      for (const event of page) {
        const note = (fault: Fault['fault']): void => void faults.push({ stream, seq: event.seq, fault })
        if (event.seq !== verified.events + 1) note('gap')
        if (!sameBytes(event.prev_hash, verified.hash)) note('chain')
        if (!sameBytes(chainHash(event.prev_hash, event.canonical), event.hash)) note('hash')
        const fault = envelopeFault(event)
        if (fault) note(fault)
        verified.hash = event.hash
        verified.events = event.seq
      }
      faults.push(...(await this.#contentFaults(stream, page)))
    }
  }

  async #contentFaults(stream: string, events: readonly RawEvent[]): Promise<Fault[]> {
    const referred = events.flatMap((event) => {
      const record = EventRecord.safeParse(parseJson(event.canonical))
      return record.success ? record.data.content_digests.map((entry) => ({ ...entry, seq: event.seq })) : []
    })
    const contents = await this.#source.contents(referred.map((entry) => entry.content_id))
    return referred.flatMap((entry) => {
      const content = contents.get(entry.content_id)
      // Contents are erased, never removed: one that is not there was taken.
      return content?.erased || (content && proves(content, entry)) ? [] : [{ stream, seq: entry.seq, fault: 'content' as const }]
    })
  }
}

function proves(content: ContentProof, entry: { digest: string; segment?: number }): boolean {
  if (entry.segment !== undefined) {
    const segment = content.segments[entry.segment]
    return segment !== undefined && Buffer.from(saltedDigest(segment.salt, segment.text)).toString('hex') === entry.digest
  }
  if (content.salt === null || content.body === null) return false
  const digest = Buffer.from(saltedDigest(content.salt, content.body)).toString('hex')
  return digest === entry.digest && digest === Buffer.from(content.digest).toString('hex')
}

/** The columns say what the canonical bytes say, and the bytes are canonical. */
function envelopeFault(event: RawEvent): 'envelope' | 'payload' | null {
  const written = parseJson(event.canonical)
  if (isOfAnotherRelease(written)) return foreignFault(event, written)
  const parsed = EventRecord.safeParse(written)
  if (!parsed.success || canonicalOf(parsed.data) !== event.canonical) return 'envelope'
  const record = parsed.data
  const definition = eventDictionary[record.type]
  if (record.stream !== event.stream || record.seq !== event.seq || record.type !== event.type) return 'envelope'
  if (event.visibility !== definition.visibility || (record.visibility ?? event.visibility) !== event.visibility) return 'envelope'
  if ((record.owner_id ?? event.owner_id) !== event.owner_id || (record.run_id ?? event.run_id) !== event.run_id) return 'envelope'
  return canonicalOf(event.payload) === canonicalJson(record.payload) ? null : 'payload'
}

/** Events of a type, or a protocol, that this release does not know: another one may write them beside us, or wrote them before (K7). */
const Foreign = z.looseObject({
  ...EventRecord.omit({ type: true, cause: true, payload: true, content_digests: true }).shape,
  type: Slug,
  payload: z.unknown(),
})

function isOfAnotherRelease(written: unknown): boolean {
  const named = z.looseObject({ type: Slug, protocol_version: z.int().min(1).default(PROTOCOL_VERSION) }).safeParse(written)
  return named.success && (named.data.protocol_version !== PROTOCOL_VERSION || !EventTypeName.safeParse(named.data.type).success)
}

/** What it means is not known here, so that its bytes and its envelope are all there is to check. */
function foreignFault(event: RawEvent, written: unknown): 'envelope' | 'payload' | null {
  const parsed = Foreign.safeParse(written)
  if (!parsed.success || canonicalOf(written) !== event.canonical) return 'envelope'
  const record = parsed.data
  if (record.stream !== event.stream || record.seq !== event.seq || record.type !== event.type) return 'envelope'
  if ((record.visibility ?? event.visibility) !== event.visibility) return 'envelope'
  if ((record.owner_id ?? event.owner_id) !== event.owner_id || (record.run_id ?? event.run_id) !== event.run_id) return 'envelope'
  return canonicalOf(event.payload) === canonicalOf(record.payload) ? null : 'payload'
}

function canonicalOf(value: unknown): string | null {
  try {
    return canonicalJson(value)
  } catch {
    return null // what has no canonical form was never written by us: the caller reports it
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null // not JSON: the caller reports the envelope
  }
}

function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0
}
