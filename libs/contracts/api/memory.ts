import { z } from 'zod'
import { MemoryLevel, MemoryOrigin, MemoryState, MemoryType } from '../enums.ts'
import { Id, Slug } from '../ids.ts'
import { MessageText, PageQuery, pageOf } from './common.ts'

export const MemorySource = z
  .object({ node_id: Id, tree_id: Id, tree_title: z.string(), role: z.string(), text: z.string().nullable() })
  .meta({ id: 'MemorySource' })

export const MemoryView = z
  .object({
    id: Id,
    character_id: Id,
    realm: z.object({ id: Id, kind: z.string(), name: z.string() }),
    level: MemoryLevel,
    state: MemoryState,
    type: MemoryType,
    origin: MemoryOrigin,
    /** null once deleted or erased. */
    text: z.string().nullable(),
    priority: z.number(),
    confidence: z.number(),
    sensitive: z.boolean(),
    topics: z.array(z.string()),
    version: z.int(),
    version_id: Id,
    /** While an automatic memory can still be undone. */
    undo_until: z.string().nullable(),
    flagged: z.enum(['source_deleted', 'canon_withdrawn']).nullable(),
    event_at: z.string(),
    created_at: z.string(),
    hits: z.int(),
    last_hit_at: z.string().nullable(),
    sources: z.array(MemorySource),
  })
  .meta({ id: 'Memory' })
export type MemoryView = z.infer<typeof MemoryView>
export const MemoryPage = pageOf(MemoryView, 'MemoryPage')

export const MemoryListQuery = PageQuery.extend({
  character_id: Id.optional(),
  realm_id: Id.optional(),
  level: MemoryLevel.optional(),
  state: MemoryState.optional(),
  type: MemoryType.optional(),
})

export const MemoryVersionView = z
  .object({ id: Id, version: z.int(), text: z.string().nullable(), cause: z.string(), created_at: z.string(), live: z.boolean() })
  .meta({ id: 'MemoryVersion' })
export const MemoryDetail = MemoryView.extend({
  versions: z.array(MemoryVersionView),
  recalled_in: z.array(z.object({ run_id: Id, tree_id: Id.nullable(), at: z.string() })),
}).meta({ id: 'MemoryDetail' })
export type MemoryDetail = z.infer<typeof MemoryDetail>

/** Confirm as it is, or with an edited text. */
export const ConfirmMemory = z.strictObject({ text: MessageText.optional() }).meta({ id: 'ConfirmMemory' })
export type ConfirmMemory = z.infer<typeof ConfirmMemory>
export const CorrectMemory = z.object({ text: MessageText, version: z.int().min(1) }).meta({ id: 'CorrectMemory' })
export type CorrectMemory = z.infer<typeof CorrectMemory>

export const SearchMemories = z
  .object({ character_id: Id, realm_id: Id.optional(), query: MessageText, limit: z.int().min(1).max(50).default(10) })
  .meta({ id: 'SearchMemories' })
export type SearchMemories = z.infer<typeof SearchMemories>

export const RecallHit = z
  .object({
    memory_id: Id,
    version_id: Id,
    rank: z.int().nullable(),
    text_rank: z.int().nullable(),
    text_score: z.number().nullable(),
    vector_rank: z.int().nullable(),
    vector_score: z.number().nullable(),
    vitality: z.number(),
    score: z.number(),
    /** null = given to the model; otherwise the limit that cut it. */
    cut_by: z.enum(['items', 'characters', 'near_duplicate']).nullable(),
    text: z.string().nullable(),
  })
  .meta({ id: 'RecallHit' })
export const RecallAuditView = z
  .object({
    id: Id,
    run_id: Id.nullable(),
    character_id: Id,
    query_digest: z.string(),
    embedder: z.string(),
    vector_leg: z.enum(['used', 'degenerate', 'unavailable']),
    weights: z.object({ k: z.number(), text: z.number(), vector: z.number() }),
    hits: z.array(RecallHit),
    at: z.string(),
  })
  .meta({ id: 'RecallAudit' })
export type RecallAuditView = z.infer<typeof RecallAuditView>
export const RecallListQuery = PageQuery.extend({ run_id: Id.optional(), memory_id: Id.optional(), character_id: Id.optional() })
export const RecallPage = pageOf(RecallAuditView, 'RecallPage')
export const MemorySearchResult = z.object({ audit: RecallAuditView }).meta({ id: 'MemorySearchResult' })

/** How far remembering of a canonical range has come. */
export const ExtractionView = z
  .object({
    canonization_id: Id,
    outcome: z.enum(['running', 'finished', 'given_up']),
    /** Why it was given up. */
    code: Slug.nullable(),
    proposals: z.int(),
    stored: z.int(),
    dropped: z.int(),
  })
  .meta({ id: 'Extraction' })
export type ExtractionView = z.infer<typeof ExtractionView>
