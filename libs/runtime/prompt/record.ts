import type { Id, MessageRole, RecordedEntity, Slug } from '#contracts'
import { meetTrust } from '#contracts'
import type { RequestMessage } from '../projection/layout-1.ts'
import { pathDigest } from '../projection/request-digest.ts'
import type { ConversationUnit } from './conversation-units.ts'
import type { ContentRef } from './entity.ts'
import type { Placed } from './place.ts'
import type { PreparedEntity } from './prepare-entities.ts'

/** A text that is sent and stands in no content yet: the caller stores it, derived from these contents. */
export type DerivedText = { identifier: Slug; text: string; derivedFrom: readonly Id[] }

/** A stored content, or the index of a derived text that is stored before the projection is recorded. */
export type TextRef = ContentRef | { derived: number }

export type AssembledPiece =
  | { kind: 'content' | 'message'; role: MessageRole; ref: TextRef }
  | { kind: 'path'; from_node_id: Id; to_node_id: Id; nodes: number; digest: string }

/** As it will be recorded; `derived` is the index of the text whose content id is still missing in `recorded`. */
export type AssembledEntity = { recorded: RecordedEntity; derived: number | null }

export type SentRecord = { messages: RequestMessage[]; pieces: AssembledPiece[]; entities: AssembledEntity[]; derived: DerivedText[] }

type NodeUnit = Extract<ConversationUnit, { kind: 'node' }>
type SaidUnit = Extract<ConversationUnit, { kind: 'said' }>

/** A row of nodes without an entity in between, and how many conversation messages stand below its last. */
type Range = { units: NodeUnit[]; below: number }

class Recorder {
  readonly record: SentRecord = { messages: [], pieces: [], entities: [], derived: [] }
  readonly #question: ConversationUnit | undefined
  #range: Range = { units: [], below: 0 }
  #histories = 0
  #continuations = 0

  constructor(question: ConversationUnit | undefined) {
    this.#question = question
  }

  #text(input: {
    identifier: Slug
    text: string
    contentRef: ContentRef | null
    derivedFrom: readonly Id[]
    role: RequestMessage['role']
    json?: true | undefined
  }): number | null {
    const { identifier, text, contentRef, derivedFrom, role, json } = input
    this.record.messages.push({ role, content: text, ...(json ? { json } : {}) })
    const ref: TextRef = contentRef ?? { derived: this.record.derived.push({ identifier, text, derivedFrom }) - 1 }
    this.record.pieces.push({ kind: json ? 'message' : 'content', role, ref })
    return 'derived' in ref ? ref.derived : null
  }

  entity({ entity, text, contentRef, derivedFrom, trust, tokens }: PreparedEntity): void {
    const derived = this.#text({ identifier: entity.identifier, text, contentRef, derivedFrom, role: entity.role })
    this.record.entities.push({
      derived,
      recorded: {
        identifier: entity.identifier,
        role: entity.role,
        source: entity.source,
        position: entity.position,
        source_id: entity.sourceId,
        content_id: contentRef?.content_id ?? null,
        trust,
        tokens,
        priority: entity.priority,
        forbid_override: entity.forbidOverride,
        reason: entity.reason,
        overridden_by: entity.overriddenBy ?? null,
      },
    })
  }

  #conversation(
    fields: Pick<RecordedEntity, 'identifier' | 'role' | 'source' | 'source_id' | 'content_id' | 'trust' | 'tokens' | 'reason'>,
    below: number,
  ): RecordedEntity {
    return { ...fields, position: { at: 'in_chat', depth: below, order: 0 }, priority: 0, forbid_override: false, overridden_by: null }
  }

  said({ said, messages, tokens }: SaidUnit, below: number): void {
    const identifier = `continuation.${++this.#continuations}`
    const { text, contentRef, derivedFrom, trust } = said
    const role = messages[0]?.role ?? 'user'
    const derived = this.#text({ identifier, text, contentRef, derivedFrom, role, json: messages[0]?.json })
    const source = said.kind === 'steer' ? 'owner_instruction' : 'conversation'
    const fields = {
      identifier,
      role,
      source,
      source_id: null,
      content_id: contentRef?.content_id ?? null,
      trust,
      tokens,
      reason: said.cut ? (`${said.kind}_in_part` as const) : said.kind,
    } as const
    this.record.entities.push({ derived, recorded: this.#conversation(fields, below) })
  }

  node(unit: NodeUnit, below: number): void {
    this.#range.units.push(unit)
    this.#range.below = below
  }

  /** The question and each partial stand for themselves, the rest as one row per stretch; nodes in one piece whatever their entities. */
  closeRange(): void {
    const { units, below } = this.#range
    this.#range = { units: [], below: 0 }
    const first = units[0]
    const last = units.at(-1)
    if (!first || !last) return
    this.record.messages.push(...units.flatMap((unit) => unit.messages))
    this.record.pieces.push({
      kind: 'path',
      from_node_id: first.node.node_id,
      to_node_id: last.node.node_id,
      nodes: units.length,
      digest: pathDigest(units.map((unit) => unit.node)),
    })
    let row: NodeUnit[] = []
    for (const [at, unit] of units.entries()) {
      const depth = below + units.length - 1 - at
      if (unit !== this.#question && !unit.node.partial) {
        row.push(unit)
        continue
      }
      this.#row(row, depth + 1)
      row = []
      this.#alone(unit, depth)
    }
    this.#row(row, below)
  }

  #row(units: readonly NodeUnit[], below: number): void {
    const first = units[0]
    if (!first) return
    const identifier = `history.${++this.#histories}`
    const trust = meetTrust(units.map((unit) => unit.node.trust))
    const tokens = units.reduce((sum, unit) => sum + unit.tokens, 0)
    const role = first.messages[0]?.role ?? 'user'
    const fields = {
      identifier,
      role,
      source: 'conversation',
      source_id: first.node.node_id,
      content_id: null,
      trust,
      tokens,
      reason: 'history',
    } as const
    this.record.entities.push({ derived: null, recorded: this.#conversation(fields, below) })
  }

  #alone(unit: NodeUnit, below: number): void {
    const { node_id, content_id, trust } = unit.node
    const isQuestion = unit === this.#question
    const fields = {
      identifier: isQuestion ? 'question' : `partial.${++this.#histories}`,
      role: unit.messages[0]?.role ?? 'user',
      source: isQuestion ? 'owner_instruction' : 'conversation',
      source_id: node_id,
      content_id,
      trust,
      tokens: unit.tokens,
      reason: isQuestion ? 'question' : 'partial',
    } as const
    this.record.entities.push({ derived: null, recorded: this.#conversation(fields, below) })
  }
}

/** Turns the placed order into messages, the pieces that stand for them and the entities as recorded, all three in sent order. */
export function recordSent(placed: readonly Placed[], question: ConversationUnit | undefined): SentRecord {
  const recorder = new Recorder(question)
  for (const one of placed) {
    if (one.kind === 'unit' && one.unit.kind === 'node') {
      recorder.node(one.unit, one.below)
      continue
    }
    recorder.closeRange()
    if (one.kind === 'entity') recorder.entity(one.prepared)
    else if (one.unit.kind === 'said') recorder.said(one.unit, one.below)
  }
  recorder.closeRange()
  return recorder.record
}
