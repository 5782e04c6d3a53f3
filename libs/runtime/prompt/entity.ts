import type { Digest, EntitySource, Id, Instant, NodePart, NodeRole, RecordedEntity, Slug, Trust } from '#contracts'
import type { RequestRole } from '../projection/layout-1.ts'

/** A stored text by reference: its content row and that row's salted digest. */
export type ContentRef = { content_id: Id; digest: Digest }

/** `relative`: by rank, against `HISTORY_RANK`. `in_chat`: depth in real conversation messages from the tail, 0 = after the last. */
export type PromptPosition = RecordedEntity['position']

/** Relative entities below this rank stand above the conversation, the others below it. */
export const HISTORY_RANK = 1000

/** Macros are expanded in these sources alone: what people wrote for prompts, never what a model, a tool or a chat said (spec/3). */
export const EXPANDABLE_SOURCES: ReadonlySet<EntitySource> = new Set<EntitySource>([
  'system_contract',
  'persona_anchor',
  'world',
  'guidance',
])

/** A prompt entity: one message of the request, with where it comes from and why it is there (spec/3). */
export type PromptEntity = {
  identifier: Slug
  role: RequestRole
  source: EntitySource
  position: PromptPosition
  /** As authored, macros not yet expanded. Blank = nothing is sent. */
  text: string
  /** Whether `text` holds macros to expand; has no effect outside `EXPANDABLE_SOURCES`. */
  expand: boolean
  /** The version that the text comes from: persona, memory, lore entry, citation, prompt set. */
  sourceId: Id | null
  /** The content that holds exactly `text`; null = there is none (a field of a card, a rendered line), so the caller stores what is sent. */
  contentRef: ContentRef | null
  /** Contents that `text` was made from, where `contentRef` is null: erasing one of them erases what is stored (decision 13). */
  derivedFrom: readonly Id[]
  trust: Trust
  /** Higher claims its share of the budget first. */
  priority: number
  /** Only a platform release replaces it; it is sent or the run fails. */
  forbidOverride: boolean
  reason: Slug
  /** Kinds of run it is meant for; absent or empty = all. */
  triggers?: readonly string[]
  overriddenBy?: Slug
  /** Entities of one group share a heading. */
  group?: Slug
  /** The line above its group: sent if and only if a member of the group is. */
  heading?: boolean
}

/** A node of the current path, oldest to newest. */
export type ConversationMessage = {
  node_id: Id
  /** The node above it on the path, whatever it projects as; proves that the list is one line of ancestors (M6). */
  parent_id: Id | null
  role: NodeRole
  /** Empty for the root, a deleted or an erased node: it projects as nothing. */
  parts: readonly NodePart[]
  content_id: Id | null
  digest: Digest | null
  trust: Trust
  /** Sealed incomplete: sent as it is, recorded as `partial` (M7). */
  partial: boolean
  /** Tokens of its sent texts, where already known. */
  tokens?: number
}

/** What was said in earlier turns of the run that is going on: after the question, not yet a node of the path. */
export type ContinuationMessage = {
  /**
   * `said`: the answer so far, as the character; `steer`: an interjection, as the user; `acted`, `observed`: a whole message as JSON text,
   * the calls that the character made and what came of one of them.
   */
  kind: 'said' | 'steer' | 'acted' | 'observed'
  text: string
  contentRef: ContentRef | null
  derivedFrom: readonly Id[]
  trust: Trust
  /** Observed: the words of a message as the character asked for them, which give way after all other results (case K8). */
  recalled?: true
  /** Shown in part, so that it fits. */
  cut?: true
}

/** What the run read from outside, recorded with it (decisions 15, 42). `utcOffsetMinutes` is the zone's at `now`, east positive. */
export type PromptReadings = {
  now: Instant
  zone: string
  utcOffsetMinutes: number
  seed: number
  /** Milliseconds since the user's message before this one, where known. */
  idleMs?: number
}

/** Counts a text's tokens. Pure; `digest` names the content that is exactly this text, as a key for the caller's cache. */
export type CountTokens = (text: string, digest?: Digest) => number
