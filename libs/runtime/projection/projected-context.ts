import type { ContentDigest, ContextPiece, EventPayload, Id, RecordedEntity, Slug } from '#contracts'
import { toSlug } from '#contracts'
import type { Assembly } from '../prompt/assemble.ts'
import type { ContentRef, PromptReadings } from '../prompt/entity.ts'
import type { TextRef } from '../prompt/record.ts'

/** A derived text of an assembly was not stored before its projection was recorded. */
export class MissingDerivedContentError extends Error {
  readonly identifier: string

  constructor(identifier: string) {
    super(`the text of ${identifier} was not stored`)
    this.name = 'MissingDerivedContentError'
    this.identifier = identifier
  }
}

/**
 * The payload of `context.projected`. `derived` holds the stored contents of `assembly.derived`, in the same order.
 * Throws MissingDerivedContentError.
 */
export function projectedContext(input: {
  assembly: Assembly
  derived: readonly ContentRef[]
  frame: ContentRef
  turn: number
  tokenizer: Slug
  readings: PromptReadings
  recallAuditId: Id | null
}): EventPayload<'context.projected'> {
  const { assembly, derived, readings } = input
  const stored = (index: number): ContentRef => {
    const ref = derived[index]
    if (!ref) throw new MissingDerivedContentError(assembly.derived[index]?.identifier ?? String(index))
    return ref
  }
  const resolve = (ref: TextRef): ContentRef => ('derived' in ref ? stored(ref.derived) : ref)
  return {
    turn: input.turn,
    layout_version: assembly.layoutVersion,
    frame_content_id: input.frame.content_id,
    frame_digest: input.frame.digest,
    pieces: assembly.pieces.map((piece): ContextPiece => {
      if (piece.kind === 'path') return piece
      const { content_id, digest } = resolve(piece.ref)
      return { kind: piece.kind, role: piece.role, content_id, digest }
    }),
    entities: assembly.entities.map(({ recorded, derived: index }): RecordedEntity =>
      index === null ? recorded : { ...recorded, content_id: stored(index).content_id },
    ),
    dropped: assembly.dropped,
    tokens: assembly.tokens,
    tokenizer: input.tokenizer,
    trust: assembly.trust,
    readings: {
      now: readings.now,
      zone: toSlug(readings.zone),
      utc_offset_minutes: readings.utcOffsetMinutes,
      seed: readings.seed,
      ...(readings.idleMs === undefined ? {} : { idle_ms: readings.idleMs }),
    },
    recall_audit_id: input.recallAuditId,
  }
}

/** The contents that a projection names one by one, for its event's `content_digests`; the nodes of a path stand in their piece's digest. */
export function projectedContents(projected: EventPayload<'context.projected'>): ContentDigest[] {
  const digests = new Map<Id, ContentDigest>([
    [projected.frame_content_id, { content_id: projected.frame_content_id, digest: projected.frame_digest }],
  ])
  for (const piece of projected.pieces) {
    if (piece.kind !== 'path') digests.set(piece.content_id, { content_id: piece.content_id, digest: piece.digest })
  }
  return [...digests.values()]
}
