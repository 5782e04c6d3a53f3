import type { CanonicalMessage, CanonicalRange, ExtractionRow, ExtractionStore } from '#domains/memory/ports'
import { bodyOf } from './content-body.ts'
import type { Sql } from './sql.ts'

/** A canonization that is live, of a tree and a character that are there. */
const liveRange = `
  SELECT z.id AS canonization_id, z.owner_id, z.character_id, t.realm_id, z.tree_id, t.zone, c.name AS character_name, p.name AS user_name
  FROM canonizations z
  JOIN trees t ON t.id = z.tree_id AND t.deleted_at IS NULL
  JOIN characters c ON c.id = z.character_id AND c.deleted_at IS NULL
  LEFT JOIN user_persona_versions p ON p.id = t.user_persona_version_id
  WHERE z.id = $1::uuid AND z.withdrawn_at IS NULL`

const rowColumns = 'outcome, mark_node_id, mark_offset, code, tries, proposals, stored, dropped'

type StoredRow = Omit<ExtractionRow, 'mark'> & { mark_node_id: string | null; mark_offset: number | null }

function extractionRow({ mark_node_id, mark_offset, ...row }: StoredRow): ExtractionRow {
  return { ...row, mark: mark_node_id === null ? null : { node_id: mark_node_id, offset: mark_offset ?? 0 } }
}

/** What extraction reads of the canon, and how far it has come (spec/5 "Writing"). */
export class MemoryExtractionRepository implements ExtractionStore {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  async range(canonizationId: string): Promise<CanonicalRange | null> {
    const [row] = await this.#sql.query<CanonicalRange>(liveRange, [canonizationId])
    return row ?? null
  }

  async lockRange(canonizationId: string): Promise<CanonicalRange | null> {
    const [row] = await this.#sql.query<CanonicalRange>(`${liveRange} FOR SHARE OF z, t, c`, [canonizationId])
    return row ?? null
  }

  async place(canonizationId: string): Promise<{ owner_id: string; character_id: string } | null> {
    const [row] = await this.#sql.query<{ owner_id: string; character_id: string }>(
      'SELECT owner_id, character_id FROM canonizations WHERE id = $1::uuid',
      [canonizationId],
    )
    return row ?? null
  }

  async isStopped({ owner_id, character_id }: { owner_id: string; character_id: string }): Promise<boolean> {
    const rows = await this.#sql.query(
      `SELECT 1 FROM kill_flags
       WHERE scope = 'global' OR (scope = 'owner' AND scope_id = $1::uuid) OR (scope = 'character' AND scope_id = $2::uuid) LIMIT 1`,
      [owner_id, character_id],
    )
    return rows.length > 0
  }

  messages(canonizationId: string): Promise<CanonicalMessage[]> {
    return this.#sql.query<CanonicalMessage>(
      `WITH RECURSIVE covered AS (
         SELECT z.from_node_id, z.to_node_id AS node_id FROM canonizations z WHERE z.id = $1::uuid AND z.withdrawn_at IS NULL
         UNION ALL
         SELECT v.from_node_id, n.parent_id FROM covered v JOIN nodes n ON n.id = v.node_id
         WHERE n.parent_id IS NOT NULL AND n.parent_id <> v.from_node_id)
       SELECT n.id AS node_id, n.tree_id, n.role, coalesce(n.speaker_name, s.name) AS speaker_name,
              CASE WHEN n.author = 'character' AND n.run_id IS NULL AND s.accepted_at IS NOT NULL AND n.trust = 'untrusted'
                   THEN 'workspace' ELSE n.trust END AS trust,
              n.zone, n.at, n.content_id, n.run_id,
              CASE WHEN n.deleted_at IS NULL THEN ${bodyOf('c')} END AS body, CASE WHEN n.deleted_at IS NULL THEN c.layout END AS layout
       FROM covered v
       JOIN nodes n ON n.id = v.node_id AND n.kind <> 'root' AND n.sealed AND NOT n.partial AND n.role IN ('user', 'character')
       JOIN contents c ON c.id = n.content_id
       LEFT JOIN characters s ON s.id = n.speaker_character_id
       ORDER BY n.depth`,
      [canonizationId],
    )
  }

  async shownTo(ownerId: string, runIds: readonly string[]): Promise<string[]> {
    if (runIds.length === 0) return []
    const rows = await this.#sql.query<{ text: string }>(
      `SELECT DISTINCT c.body AS text
       FROM recall_audits a
       JOIN recall_hits h ON h.audit_id = a.id AND h.rank IS NOT NULL
       JOIN memory_versions v ON v.id = h.version_id
       JOIN contents c ON c.id = v.content_id AND c.erased_at IS NULL
       WHERE a.owner_id = $1::uuid AND a.run_id = ANY ($2::uuid[])`,
      [ownerId, runIds],
    )
    return rows.map((row) => row.text)
  }

  async read(canonizationId: string): Promise<ExtractionRow | null> {
    const [row] = await this.#sql.query<StoredRow>(`SELECT ${rowColumns} FROM memory_extractions WHERE canonization_id = $1::uuid`, [
      canonizationId,
    ])
    return row ? extractionRow(row) : null
  }

  async lock(canonizationId: string, place: { owner_id: string; character_id: string }, now: Date): Promise<ExtractionRow> {
    await this.#sql.execute(
      `INSERT INTO memory_extractions (canonization_id, owner_id, character_id, outcome, tries, proposals, stored, dropped, updated_at)
       VALUES ($1::uuid, $2::uuid, $3::uuid, 'running', 0, 0, 0, 0, $4::timestamptz) ON CONFLICT DO NOTHING`,
      [canonizationId, place.owner_id, place.character_id, now],
    )
    const [row] = await this.#sql.query<StoredRow>(
      `SELECT ${rowColumns} FROM memory_extractions WHERE canonization_id = $1::uuid FOR UPDATE`,
      [canonizationId],
    )
    if (!row) throw new Error(`the extraction of ${canonizationId} is not there after it was made`)
    return extractionRow(row)
  }

  async save(canonizationId: string, row: ExtractionRow, now: Date): Promise<void> {
    await this.#sql.execute(
      `UPDATE memory_extractions SET outcome = $2, mark_node_id = $3::uuid, mark_offset = $4::int, code = $5, tries = $6::int,
              proposals = $7::int, stored = $8::int, dropped = $9::int, updated_at = $10::timestamptz
       WHERE canonization_id = $1::uuid`,
      [
        canonizationId,
        row.outcome,
        row.mark?.node_id ?? null,
        row.mark?.offset ?? null,
        row.code,
        row.tries,
        row.proposals,
        row.stored,
        row.dropped,
        now,
      ],
    )
  }
}
