import { partsOf, textOf } from '#kernel/record/content-parts'
import { classify } from './classify.ts'
import type { Placement, PoolEntry } from './dedupe.ts'
import { eventTime } from './event-time.ts'
import type { Proposed } from './extraction-answer.ts'
import type { ExtractionBatch, ReadableMessage } from './extraction-batch.ts'
import { lowerTrust } from './memory-change.ts'
import type { Candidate } from './memory-change.ts'
import type { CanonicalMessage, CanonicalRange, ExtractionMark, MemoryRow } from './ports.ts'
import { scrub } from './scrub.ts'

/** A stored message as a reader sees it: its text parts, never its reasoning (decision 11). */
export function readable({ body, layout, ...message }: CanonicalMessage): ReadableMessage {
  const text = body === null ? '' : textOf(partsOf({ body, layout }))
  return { ...message, text: text.trim() === '' ? null : text }
}

/** A sifted proposal with what it rests on: dated, classified, as trusted as the least of its sources. */
export function candidateOf(range: CanonicalRange, batch: ExtractionBatch, proposal: Proposed, vector: Float32Array | null): Candidate {
  const { content: text, type, priority, confidence } = proposal
  const cited = new Set(proposal.source_message_ids)
  const sources = [
    ...new Map(batch.sources.filter((source) => cited.has(source.node_id)).map((source) => [source.node_id, source])).values(),
  ]
  return {
    text,
    type,
    ...classify({ text, type, sensitive: proposal.sensitive }),
    origin: sources.some((source) => source.role === 'user') ? 'user_explicit' : 'self_inferred',
    priority,
    confidence,
    sources: sources.map(({ tree_id, node_id }) => ({ tree_id, node_id, canonization_id: range.canonization_id })),
    eventAt: eventTime({
      text,
      type,
      stated: proposal.event_at,
      messages: sources.map((source) => ({ at: source.at, zone: source.zone ?? range.zone, text: source.text ?? '' })),
    }),
    trust: lowerTrust(sources.map((source) => source.trust)),
    vector,
  }
}

/** The candidate with a text that the model made of it and its targets: scrubbed and judged anew, the stricter wins; embedded later. */
export function rewritten(candidate: Candidate, merged: string): Candidate {
  const { text } = scrub(merged.toWellFormed().trim())
  if (text === candidate.text) return candidate
  const again = classify({ text, type: candidate.type, sensitive: candidate.sensitive })
  return {
    ...candidate,
    text,
    vector: null,
    level: candidate.level === 'heavy' ? 'heavy' : again.level,
    sensitive: again.sensitive,
    topics: [...new Set([...candidate.topics, ...again.topics])],
  }
}

/** The memories that a placement is about. */
export function targetsOf(placement: Placement): readonly PoolEntry[] {
  if (placement.action === 'store') return []
  return placement.action === 'merge' ? placement.targets : [placement.target]
}

/** True where a memory is still what was decided about. */
export function standsAs(memory: MemoryRow | undefined, entry: PoolEntry): boolean {
  return (
    memory !== undefined && memory.state === entry.state && memory.level === entry.level && memory.current_version_id === entry.versionId
  )
}

export function sameMark(left: ExtractionMark | null, right: ExtractionMark | null): boolean {
  return left?.node_id === right?.node_id && left?.offset === right?.offset
}
