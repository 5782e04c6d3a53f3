import { z } from 'zod'
import { EmbeddingPurpose, MemoryLevel, MemoryOrigin, MemoryState, MemoryType } from '../enums.ts'
import { Digest, Id, Slug } from '../ids.ts'
import { count } from './definition.ts'
import type { EventDefinition } from './definition.ts'

/** What a character remembers (one stream per character), and what went out for its vectors (one per request). */
export const memoryEvents = {
  'memory.proposed': {
    version: 1,
    visibility: 'internal',
    stream: 'memory',
    payload: z.object({
      memory_id: Id,
      version_id: Id,
      content_id: Id,
      level: MemoryLevel,
      state: MemoryState,
      memory_type: MemoryType,
      origin: MemoryOrigin,
      canonization_id: Id.nullable(),
      source_node_ids: z.array(Id),
    }),
  },
  'memory.decided': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({ memory_id: Id, decision: z.enum(['confirm', 'reject', 'undo']), state: MemoryState, version_id: Id }),
  },
  'memory.versioned': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({
      memory_id: Id,
      version_id: Id,
      content_id: Id,
      supersedes_version_id: Id,
      cause: z.enum(['correct', 'update', 'merge', 'confirm']),
    }),
  },
  /** Taken in by a version of another memory: no longer recalled, reachable in that memory's chain. */
  'memory.merged': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({ memory_id: Id, into_memory_id: Id, into_version_id: Id }),
  },
  'memory.reinforced': {
    version: 1,
    visibility: 'internal',
    stream: 'memory',
    payload: z.object({ memory_id: Id, version_id: Id, count }),
  },
  'memory.deleted': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({ memory_id: Id, cause: z.enum(['owner', 'source_deleted', 'undo_window_closed']) }),
  },
  'memory.flagged': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({ memory_id: Id, cause: z.enum(['source_deleted', 'canon_withdrawn']) }),
  },
  'memory.dropped': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({
      canonization_id: Id,
      reason: z.enum(['invalid', 'no_source', 'outside_canon', 'echo', 'duplicate', 'rejected_before', 'empty_after_scrub']),
    }),
  },
  'extraction.finished': {
    version: 1,
    visibility: 'internal',
    stream: 'memory',
    payload: z.object({ canonization_id: Id, run_id: Id, proposals: count, stored: count, dropped: count }),
  },
  'extraction.given_up': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({ canonization_id: Id, run_id: Id.nullable(), code: Slug, tries: count }),
  },
  /** Its owner wants it tried again. */
  'extraction.taken_up': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({ canonization_id: Id, code: Slug }),
  },
  /** Write-ahead: durable before anything is sent (K3). The digest is over the salted digests of the texts, which stand elsewhere. */
  'embedding.requested': {
    version: 1,
    visibility: 'internal',
    stream: 'embedding',
    payload: z.object({
      effect_id: Id,
      purpose: EmbeddingPurpose,
      model: Slug,
      texts: z.int().min(1),
      request_digest: Digest,
      reserved_tokens: count,
    }),
  },
  'embedding.completed': {
    version: 1,
    visibility: 'internal',
    stream: 'embedding',
    payload: z.object({ effect_id: Id, tokens: count, estimated: z.boolean(), dimensions: count }),
  },
  'embedding.failed': {
    version: 1,
    visibility: 'internal',
    stream: 'embedding',
    payload: z.object({ effect_id: Id, code: Slug, provider_code: Slug.nullable(), status: count.nullable() }),
  },
  'embedding.unknown': {
    version: 1,
    visibility: 'internal',
    stream: 'embedding',
    payload: z.object({ effect_id: Id, code: Slug, settled_tokens: count }),
  },
  /** Kept back: the kill switch, or the budget. Nothing was sent. */
  'embedding.refused': {
    version: 1,
    visibility: 'audit',
    stream: 'embedding',
    payload: z.object({
      effect_id: Id,
      purpose: EmbeddingPurpose,
      texts: z.int().min(1),
      code: z.enum(['killed', 'price_unknown', 'max_cost_micros', 'max_tokens']),
    }),
  },
} as const satisfies Record<string, EventDefinition>
