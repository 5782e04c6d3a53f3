import type { NewRecallAudit, RecallAuditRow, RecallAudits, RecallHitRow } from '#domains/memory/ports'
import type { Sql } from './sql.ts'

const auditColumns = `a.id, a.run_id, a.character_id, a.query_digest, a.embedder, a.vector_leg, a.rank_constant, a.text_weight, a.vector_weight, a.at`

/** `recall_audits`, `recall_hits` and `recall_reinforcements` in Postgres: how each recall came about, without text. */
export class RecallAuditRepository implements RecallAudits {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  async insert(audit: NewRecallAudit): Promise<void> {
    const { hits } = audit
    await this.#sql.execute(
      `WITH audit AS (
         INSERT INTO recall_audits (id, owner_id, character_id, realm_id, run_id, query_salt, query_digest, query_content_ids, embedder,
                                    vector_leg, rank_constant, text_weight, vector_weight, at)
         VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::uuid, $6::bytea, $7::bytea, $8::uuid[], $9, $10, $11::float8, $12::float8,
                 $13::float8, $14::timestamptz)
         RETURNING id, owner_id, character_id)
       INSERT INTO recall_hits (audit_id, ordinal, owner_id, character_id, realm_id, memory_id, version_id, text_rank, text_score,
                                vector_rank, vector_score, vitality, score, rank, cut_by)
       SELECT a.id, h.ordinal, a.owner_id, a.character_id, h.realm_id, h.memory_id, h.version_id, h.text_rank, h.text_score,
              h.vector_rank, h.vector_score, h.vitality, h.score, h.rank, h.cut_by
       FROM audit a
       CROSS JOIN unnest($15::uuid[], $16::uuid[], $17::uuid[], $18::int[], $19::float8[], $20::int[], $21::float8[], $22::float8[],
                         $23::float8[], $24::int[], $25::text[])
         WITH ORDINALITY AS h(realm_id, memory_id, version_id, text_rank, text_score, vector_rank, vector_score, vitality, score, rank, cut_by,
                              ordinal)`,
      [
        audit.id,
        audit.owner_id,
        audit.character_id,
        audit.realm_id,
        audit.run_id,
        audit.query_salt,
        audit.query_digest,
        audit.query_content_ids,
        audit.embedder,
        audit.vector_leg,
        audit.rank_constant,
        audit.text_weight,
        audit.vector_weight,
        audit.at,
        hits.map((hit) => hit.realm_id),
        hits.map((hit) => hit.memory_id),
        hits.map((hit) => hit.version_id),
        hits.map((hit) => hit.text_rank),
        hits.map((hit) => hit.text_score),
        hits.map((hit) => hit.vector_rank),
        hits.map((hit) => hit.vector_score),
        hits.map((hit) => hit.vitality),
        hits.map((hit) => hit.score),
        hits.map((hit) => hit.rank),
        hits.map((hit) => hit.cut_by),
      ],
    )
  }

  async reinforce({
    ownerId,
    runId,
    memoryIds,
    at,
  }: {
    ownerId: string
    runId: string
    memoryIds: readonly string[]
    at: Date
  }): Promise<string[]> {
    if (memoryIds.length === 0) return []
    // The first statement decides, under its unique key, which hits are new; rows are locked in id order before they are counted.
    const fresh = await this.#sql.query<{ id: string }>(
      `INSERT INTO recall_reinforcements (run_id, memory_id, owner_id)
       SELECT $2::uuid, m.id, m.owner_id FROM memories m
       WHERE m.owner_id = $1::uuid AND m.id = ANY ($3::uuid[]) AND m.state = 'live' ORDER BY m.id
       ON CONFLICT DO NOTHING RETURNING memory_id AS id`,
      [ownerId, runId, memoryIds],
    )
    const ids = fresh.map((row) => row.id)
    if (ids.length === 0) return []
    await this.#sql.execute(
      `WITH locked AS (SELECT id FROM memories WHERE owner_id = $1::uuid AND id = ANY ($2::uuid[]) ORDER BY id FOR UPDATE)
       UPDATE memories m SET hits = m.hits + 1, last_hit_at = greatest(m.last_hit_at, $3::timestamptz) FROM locked WHERE m.id = locked.id`,
      [ownerId, ids, at],
    )
    return ids
  }

  list(
    ownerId: string,
    filter: { runId?: string; memoryId?: string; characterId?: string; beforeId?: string; limit: number },
  ): Promise<RecallAuditRow[]> {
    return this.#sql.query<RecallAuditRow>(
      `SELECT ${auditColumns} FROM recall_audits a
       WHERE a.owner_id = $1::uuid AND ($2::uuid IS NULL OR a.run_id = $2::uuid) AND ($3::uuid IS NULL OR a.character_id = $3::uuid)
         AND ($4::uuid IS NULL OR EXISTS (SELECT 1 FROM recall_hits h WHERE h.audit_id = a.id AND h.memory_id = $4::uuid))
         AND ($5::uuid IS NULL OR a.id < $5::uuid)
       ORDER BY a.id DESC LIMIT $6::int`,
      [ownerId, filter.runId ?? null, filter.characterId ?? null, filter.memoryId ?? null, filter.beforeId ?? null, filter.limit],
    )
  }

  async find(ownerId: string, auditId: string): Promise<RecallAuditRow | null> {
    const [row] = await this.#sql.query<RecallAuditRow>(
      `SELECT ${auditColumns} FROM recall_audits a WHERE a.owner_id = $1::uuid AND a.id = $2::uuid`,
      [ownerId, auditId],
    )
    return row ?? null
  }

  hits(ownerId: string, auditIds: readonly string[], now: Date): Promise<RecallHitRow[]> {
    return this.#sql.query<RecallHitRow>(
      `SELECT h.audit_id, h.ordinal, h.realm_id, h.memory_id, h.version_id, h.text_rank, h.text_score, h.vector_rank, h.vector_score,
              h.vitality, h.score, h.rank, h.cut_by, CASE WHEN x.erase_at <= $3::timestamptz THEN NULL ELSE c.body END AS text
       FROM recall_hits h
       JOIN memory_versions v ON v.id = h.version_id
       JOIN contents c ON c.id = v.content_id
       LEFT JOIN memory_expiries x ON x.version_id = v.id
       WHERE h.owner_id = $1::uuid AND h.audit_id = ANY ($2::uuid[]) ORDER BY h.audit_id DESC, h.ordinal`,
      [ownerId, auditIds, now],
    )
  }
}
