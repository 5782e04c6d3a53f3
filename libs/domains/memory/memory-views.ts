import { Id, LingtaiError } from '#contracts'
import type { MemoryView, RecallAuditView } from '#contracts'
import { partsOf, textOf } from '#kernel/record/content-parts'
import type { MemoryRow, MemoryStore, RecallAuditRow, RecallAudits, SourceRow } from './ports.ts'

/** A memory as the API shows it. A time that has passed is passed, whether or not a job has tidied (decision 28). */
export function memoryView(row: MemoryRow, sources: readonly SourceRow[], now: Date): MemoryView {
  const canUndo = row.state === 'live' && row.level === 'explicit' && row.undo_until !== null && row.undo_until > now
  return {
    id: row.id,
    character_id: row.character_id,
    realm: { id: row.realm_id, kind: row.realm_kind, name: row.realm_name },
    level: row.level,
    state: row.state,
    type: row.type,
    origin: row.origin,
    text: row.text,
    priority: row.priority,
    confidence: row.confidence,
    sensitive: row.sensitive,
    topics: row.topics,
    version: row.version,
    version_id: row.current_version_id,
    undo_until: canUndo ? (row.undo_until?.toISOString() ?? null) : null,
    flagged: row.flagged,
    event_at: row.event_at.toISOString(),
    created_at: row.created_at.toISOString(),
    hits: row.hits,
    last_hit_at: row.last_hit_at?.toISOString() ?? null,
    sources: sources.map((source) => ({
      node_id: source.node_id,
      tree_id: source.tree_id,
      tree_title: source.tree_title,
      role: source.role,
      text: source.body === null ? null : textOf(partsOf(source)),
    })),
  }
}

/** Views of memories, in the rows' order, with one read of all sources. */
export async function memoryViews(store: MemoryStore, ownerId: string, rows: readonly MemoryRow[], now: Date): Promise<MemoryView[]> {
  if (rows.length === 0) return []
  const sources = await store.sources(
    ownerId,
    rows.map((row) => row.current_version_id),
  )
  const byVersion = Map.groupBy(sources, (source) => source.version_id)
  return rows.map((row) => memoryView(row, byVersion.get(row.current_version_id) ?? [], now))
}

/** Views of recall audits, in the rows' order. */
export async function auditViews(
  audits: RecallAudits,
  ownerId: string,
  rows: readonly RecallAuditRow[],
  now: Date,
): Promise<RecallAuditView[]> {
  if (rows.length === 0) return []
  const hits = await audits.hits(
    ownerId,
    rows.map((row) => row.id),
    now,
  )
  const byAudit = Map.groupBy(hits, (hit) => hit.audit_id)
  return rows.map((row) => ({
    id: row.id,
    run_id: row.run_id,
    character_id: row.character_id,
    query_digest: Buffer.from(row.query_digest).toString('hex'),
    embedder: row.embedder,
    vector_leg: row.vector_leg,
    weights: { k: row.rank_constant, text: row.text_weight, vector: row.vector_weight },
    hits: (byAudit.get(row.id) ?? []).map((hit) => ({
      memory_id: hit.memory_id,
      version_id: hit.version_id,
      rank: hit.rank,
      text_rank: hit.text_rank,
      text_score: hit.text_score,
      vector_rank: hit.vector_rank,
      vector_score: hit.vector_score,
      vitality: hit.vitality,
      score: hit.score,
      cut_by: hit.cut_by,
      text: hit.text,
    })),
    at: row.at.toISOString(),
  }))
}

/** A list's cursor: the id of the last row of the page before. Throws validation_failed. */
export function readCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined || Id.safeParse(cursor).success) return cursor
  throw new LingtaiError('validation_failed', 'The cursor is not one of ours.', { errors: [{ path: 'cursor', message: 'unknown cursor' }] })
}
