import { z } from 'zod'
import { EntitySource, MessageRole, Trust } from '../enums.ts'
import { Digest, Id, Slug } from '../ids.ts'
import { count } from './definition.ts'

/** How one message of a request is made from references; rebuilt by `layout_version` (decision 14). */
export const ContextPiece = z.discriminatedUnion('kind', [
  /** A stored text sent as it is: one message. */
  z.object({ kind: z.literal('content'), role: MessageRole, content_id: Id, digest: Digest }),
  /** A stored JSON object that is one whole message: tool calls, and what came of them. */
  z.object({ kind: z.literal('message'), role: MessageRole, content_id: Id, digest: Digest }),
  /** Consecutive nodes of the path, oldest first, one message per non-empty part; at most one piece per gap between in-chat entities. */
  z.object({ kind: z.literal('path'), from_node_id: Id, to_node_id: Id, nodes: count, digest: Digest }),
])
export type ContextPiece = z.infer<typeof ContextPiece>

/** A prompt entity as recorded: references and reasons, never text (spec/3). */
export const RecordedEntity = z.object({
  identifier: Slug,
  role: MessageRole,
  source: EntitySource,
  position: z.discriminatedUnion('at', [
    z.object({ at: z.literal('relative'), rank: z.int() }),
    z.object({ at: z.literal('in_chat'), depth: count, order: z.int() }),
  ]),
  /** Version that the text comes from: persona version, memory version, lore entry version, node, citation or prompt. */
  source_id: Id.nullable(),
  content_id: Id.nullable(),
  trust: Trust,
  tokens: count,
  priority: z.int(),
  forbid_override: z.boolean(),
  reason: Slug,
  /** What replaced this entity's text, if anything. */
  overridden_by: Slug.nullable(),
})
export type RecordedEntity = z.infer<typeof RecordedEntity>
