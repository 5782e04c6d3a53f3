import type {
  AffectedMemory,
  ConsentDecision,
  MemoryFilter,
  MemoryPatch,
  MemoryRow,
  MemoryStore,
  NewMemory,
  NewVersion,
  Scope,
  SourceRef,
  SourceRow,
  VersionRow,
} from '#domains/memory/ports'
import { bodyOf } from './content-body.ts'
import type { Sql, SqlParameter } from './sql.ts'

/** A memory, its realm and its current version; the text only while it may be shown. `$2` is the reader's now. */
const memoryColumns = `
  m.id, m.owner_id, m.character_id, m.realm_id, m.level, m.state, m.type, m.origin, m.priority, m.confidence, m.sensitive, m.topics,
  m.current_version_id, m.mentions, m.hits, m.last_hit_at, m.undo_until, m.flagged, m.created_at,
  r.kind AS realm_kind, r.name AS realm_name,
  v.version, v.created_at AS version_created_at, v.content_id, v.trust, v.event_at, v.cause, v.supersedes_version_id,
  CASE WHEN x.erase_at <= $2::timestamptz THEN NULL ELSE c.body END AS text`
const memoryTables = `
  memories m
  JOIN realms r ON r.id = m.realm_id
  JOIN memory_versions v ON v.id = m.current_version_id
  JOIN contents c ON c.id = v.content_id
  LEFT JOIN memory_expiries x ON x.version_id = v.id`

/** What each field of a patch is in the table. */
const patchColumns: Readonly<Record<keyof MemoryPatch, string>> = {
  level: 'text',
  state: 'text',
  priority: 'float8',
  confidence: 'float8',
  sensitive: 'boolean',
  topics: 'text[]',
  current_version_id: 'uuid',
  mentions: 'int',
  undo_until: 'timestamptz',
  flagged: 'text',
  text_hash: 'bytea',
  merged_into_version_id: 'uuid',
}

/** A statement touched another number of rows than it stands for: somebody else changed them, or the caller is wrong (decision 7). */
export class UnexpectedRowsError extends Error {
  constructor(what: string, expected: number, touched: number) {
    super(`${what}: ${touched} rows instead of ${expected}`)
    this.name = 'UnexpectedRowsError'
  }
}

/** `memories` and the tables about them in Postgres (spec/5). */
export class MemoryRepository implements MemoryStore {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  async resolveScope(ownerId: string, characterId: string, realmId: string | null): Promise<Scope | null> {
    const [row] = await this.#sql.query<Scope>(
      `SELECT c.owner_id, c.id AS character_id, r.id AS realm_id
       FROM characters c JOIN realms r ON r.owner_id = c.owner_id AND r.id = coalesce($3::uuid, c.realm_id)
       WHERE c.owner_id = $1::uuid AND c.id = $2::uuid AND c.deleted_at IS NULL`,
      [ownerId, characterId, realmId],
    )
    return row ?? null
  }

  list(ownerId: string, filter: MemoryFilter, now: Date): Promise<MemoryRow[]> {
    return this.#sql.query<MemoryRow>(
      `SELECT ${memoryColumns} FROM ${memoryTables}
       WHERE m.owner_id = $1::uuid AND ($3::uuid IS NULL OR m.character_id = $3::uuid) AND ($4::uuid IS NULL OR m.realm_id = $4::uuid)
         AND ($5::text IS NULL OR m.level = $5::text) AND ($6::text IS NULL OR m.state = $6::text) AND ($7::text IS NULL OR m.type = $7::text)
         AND ($8::uuid IS NULL OR m.id < $8::uuid)
       ORDER BY m.id DESC LIMIT $9::int`,
      [
        ownerId,
        now,
        filter.characterId ?? null,
        filter.realmId ?? null,
        filter.level ?? null,
        filter.state ?? null,
        filter.type ?? null,
        filter.beforeId ?? null,
        filter.limit,
      ],
    )
  }

  async find(ownerId: string, memoryId: string, now: Date): Promise<MemoryRow | null> {
    const [row] = await this.findAll(ownerId, [memoryId], now)
    return row ?? null
  }

  findAll(ownerId: string, memoryIds: readonly string[], now: Date): Promise<MemoryRow[]> {
    return this.#sql.query<MemoryRow>(
      `SELECT ${memoryColumns} FROM ${memoryTables} WHERE m.owner_id = $1::uuid AND m.id = ANY ($3::uuid[]) ORDER BY m.id`,
      [ownerId, now, memoryIds],
    )
  }

  versions(ownerId: string, memoryId: string, now: Date): Promise<VersionRow[]> {
    return this.#sql.query<VersionRow>(
      `SELECT v.id, v.memory_id, v.version, v.content_id, v.trust, v.event_at, v.cause, v.supersedes_version_id, v.created_at,
              v.id = m.current_version_id AS live, CASE WHEN x.erase_at <= $2::timestamptz THEN NULL ELSE c.body END AS text
       FROM memory_versions v
       JOIN memories m ON m.id = v.memory_id
       JOIN contents c ON c.id = v.content_id
       LEFT JOIN memory_expiries x ON x.version_id = v.id
       WHERE v.owner_id = $1::uuid AND v.memory_id = $3::uuid ORDER BY v.version DESC`,
      [ownerId, now, memoryId],
    )
  }

  sources(ownerId: string, versionIds: readonly string[]): Promise<SourceRow[]> {
    return this.#sql.query<SourceRow>(
      `SELECT s.version_id, s.tree_id, s.node_id, s.canonization_id, t.title AS tree_title, n.role,
              CASE WHEN n.deleted_at IS NULL THEN ${bodyOf('c')} END AS body, CASE WHEN n.deleted_at IS NULL THEN c.layout END AS layout
       FROM memory_sources s
       JOIN trees t ON t.id = s.tree_id
       JOIN nodes n ON n.id = s.node_id
       LEFT JOIN contents c ON c.id = n.content_id
       WHERE s.owner_id = $1::uuid AND s.version_id = ANY ($2::uuid[]) ORDER BY s.version_id, n.tree_id, n.depth`,
      [ownerId, versionIds],
    )
  }

  recalledIn(ownerId: string, memoryId: string, limit: number): Promise<{ run_id: string; tree_id: string | null; at: Date }[]> {
    return this.#sql.query(
      `SELECT a.run_id, u.tree_id, a.at
       FROM recall_hits h JOIN recall_audits a ON a.id = h.audit_id JOIN runs u ON u.id = a.run_id
       WHERE h.memory_id = $2::uuid AND h.owner_id = $1::uuid AND h.rank IS NOT NULL ORDER BY a.id DESC LIMIT $3::int`,
      [ownerId, memoryId, limit],
    )
  }

  async lockScope(scope: Scope, freshKey: Uint8Array): Promise<Uint8Array> {
    await this.#sql.execute(
      `INSERT INTO memory_keys (character_id, owner_id, key) VALUES ($1::uuid, $2::uuid, $3::bytea) ON CONFLICT DO NOTHING`,
      [scope.character_id, scope.owner_id, freshKey],
    )
    await this.#sql.execute(
      `INSERT INTO memory_scopes (character_id, realm_id, owner_id) VALUES ($1::uuid, $2::uuid, $3::uuid) ON CONFLICT DO NOTHING`,
      [scope.character_id, scope.realm_id, scope.owner_id],
    )
    const [row] = await this.#sql.query<{ key: Buffer }>(
      `SELECT k.key FROM memory_scopes s JOIN memory_keys k ON k.character_id = s.character_id
       WHERE s.character_id = $1::uuid AND s.realm_id = $2::uuid AND s.owner_id = $3::uuid FOR UPDATE OF s`,
      [scope.character_id, scope.realm_id, scope.owner_id],
    )
    if (!row) throw new UnexpectedRowsError('lock of a memory scope', 1, 0)
    return row.key
  }

  async lockRows(ownerId: string, memoryIds: readonly string[]): Promise<void> {
    if (memoryIds.length === 0) return
    await this.#sql.query('SELECT id FROM memories WHERE owner_id = $1::uuid AND id = ANY ($2::uuid[]) ORDER BY id FOR UPDATE', [
      ownerId,
      memoryIds,
    ])
  }

  async insertMemory(memory: NewMemory): Promise<void> {
    await this.#sql.execute(
      `INSERT INTO memories (id, owner_id, character_id, realm_id, level, state, type, origin, priority, confidence, sensitive, topics,
                             current_version_id, text_hash, mentions, undo_until, created_at, updated_at)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5, $6, $7, $8, $9::float8, $10::float8, $11::boolean, $12::text[],
               $13::uuid, $14::bytea, $15::int, $16::timestamptz, $17::timestamptz, $17::timestamptz)`,
      [
        memory.id,
        memory.owner_id,
        memory.character_id,
        memory.realm_id,
        memory.level,
        memory.state,
        memory.type,
        memory.origin,
        memory.priority,
        memory.confidence,
        memory.sensitive,
        memory.topics,
        memory.current_version_id,
        memory.text_hash,
        memory.mentions,
        memory.undo_until,
        memory.created_at,
      ],
    )
  }

  async insertVersion(version: NewVersion): Promise<void> {
    await this.#sql.execute(
      `INSERT INTO memory_versions (id, owner_id, character_id, realm_id, memory_id, version, content_id, trust, event_at, cause,
                                    supersedes_version_id, created_at)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::uuid, $6::int, $7::uuid, $8, $9::timestamptz, $10, $11::uuid, $12::timestamptz)`,
      [
        version.id,
        version.owner_id,
        version.character_id,
        version.realm_id,
        version.memory_id,
        version.version,
        version.content_id,
        version.trust,
        version.event_at,
        version.cause,
        version.supersedes_version_id,
        version.created_at,
      ],
    )
  }

  async insertSources(scope: Scope, versionId: string, sources: readonly SourceRef[]): Promise<void> {
    await this.#sql.execute(
      `INSERT INTO memory_sources (version_id, owner_id, character_id, realm_id, tree_id, node_id, canonization_id)
       SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid, s.tree_id, s.node_id, s.canonization_id
       FROM unnest($5::uuid[], $6::uuid[], $7::uuid[]) AS s(tree_id, node_id, canonization_id)
       ON CONFLICT DO NOTHING`,
      [
        versionId,
        scope.owner_id,
        scope.character_id,
        scope.realm_id,
        sources.map((source) => source.tree_id),
        sources.map((source) => source.node_id),
        sources.map((source) => source.canonization_id),
      ],
    )
  }

  async update(ownerId: string, memoryId: string, patch: MemoryPatch, at: Date): Promise<void> {
    const params: SqlParameter[] = [ownerId, memoryId, at]
    const settings = ['updated_at = $3::timestamptz']
    for (const [column, type] of Object.entries(patchColumns) as [keyof MemoryPatch, string][]) {
      const value = patch[column]
      if (value === undefined) continue
      params.push(value)
      settings.push(`${column} = $${params.length}::${type}`)
    }
    const touched = await this.#sql.execute(
      `UPDATE memories SET ${settings.join(', ')} WHERE owner_id = $1::uuid AND id = $2::uuid`,
      params,
    )
    if (touched !== 1) throw new UnexpectedRowsError('update of a memory', 1, touched)
  }

  async tombstone(ownerId: string, memoryIds: readonly string[], at: Date): Promise<void> {
    const touched = await this.#sql.execute(
      `UPDATE memories SET state = 'deleted', text_hash = NULL, undo_until = NULL, flagged = NULL, updated_at = $3::timestamptz
       WHERE owner_id = $1::uuid AND id = ANY ($2::uuid[])`,
      [ownerId, memoryIds, at],
    )
    if (touched !== memoryIds.length) throw new UnexpectedRowsError('tombstones of memories', memoryIds.length, touched)
  }

  async insertConfirmation(
    row: Scope & { id: string; memory_id: string; version_id: string; decision: ConsentDecision; decided_at: Date },
  ): Promise<void> {
    await this.#sql.execute(
      `INSERT INTO confirmations (id, owner_id, character_id, realm_id, memory_id, version_id, decision, decided_by, decided_at)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::uuid, $6::uuid, $7, $2::uuid, $8::timestamptz)`,
      [row.id, row.owner_id, row.character_id, row.realm_id, row.memory_id, row.version_id, row.decision, row.decided_at],
    )
  }

  async isConfirmed(ownerId: string, versionId: string): Promise<boolean> {
    const rows = await this.#sql.query(
      `SELECT 1 AS found FROM confirmations WHERE owner_id = $1::uuid AND version_id = $2::uuid AND decision IN ('confirm', 'correct')`,
      [ownerId, versionId],
    )
    return rows.length > 0
  }

  async suppress(row: Scope & { text_hash: Uint8Array; memory_id: string; created_at: Date }): Promise<void> {
    await this.#sql.execute(
      `INSERT INTO memory_suppressions (character_id, realm_id, owner_id, text_hash, memory_id, created_at)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4::bytea, $5::uuid, $6::timestamptz) ON CONFLICT DO NOTHING`,
      [row.character_id, row.realm_id, row.owner_id, row.text_hash, row.memory_id, row.created_at],
    )
  }

  async isSuppressed(scope: Scope, hash: Uint8Array): Promise<boolean> {
    const rows = await this.#sql.query(
      `SELECT 1 AS found FROM memory_suppressions
       WHERE owner_id = $1::uuid AND character_id = $2::uuid AND realm_id = $3::uuid AND text_hash = $4::bytea`,
      [scope.owner_id, scope.character_id, scope.realm_id, hash],
    )
    return rows.length > 0
  }

  async byHash(scope: Scope, hash: Uint8Array, now: Date): Promise<MemoryRow | null> {
    const [row] = await this.#sql.query<MemoryRow>(
      `SELECT ${memoryColumns} FROM ${memoryTables}
       WHERE m.owner_id = $1::uuid AND m.character_id = $3::uuid AND m.realm_id = $4::uuid AND m.text_hash = $5::bytea
         AND m.state IN ('proposed', 'live')`,
      [scope.owner_id, now, scope.character_id, scope.realm_id, hash],
    )
    return row ?? null
  }

  async hashOf(ownerId: string, memoryId: string): Promise<Uint8Array | null> {
    const [row] = await this.#sql.query<{ text_hash: Buffer | null }>(
      'SELECT text_hash FROM memories WHERE owner_id = $1::uuid AND id = $2::uuid',
      [ownerId, memoryId],
    )
    return row?.text_hash ?? null
  }

  async insertReplacements(scope: Scope, memoryId: string, targetIds: readonly string[]): Promise<void> {
    await this.#sql.execute(
      `INSERT INTO memory_replacements (memory_id, target_id, owner_id, character_id, realm_id)
       SELECT $1::uuid, t.id, $2::uuid, $3::uuid, $4::uuid FROM unnest($5::uuid[]) AS t(id) ON CONFLICT DO NOTHING`,
      [memoryId, scope.owner_id, scope.character_id, scope.realm_id, targetIds],
    )
  }

  replacedBy(ownerId: string, memoryId: string): Promise<string[]> {
    return this.#ids('SELECT target_id AS id FROM memory_replacements WHERE owner_id = $1::uuid AND memory_id = $2::uuid ORDER BY 1', [
      ownerId,
      memoryId,
    ])
  }

  mergedInto(ownerId: string, versionId: string): Promise<string[]> {
    return this.#ids(
      `SELECT id FROM memories WHERE owner_id = $1::uuid AND merged_into_version_id = $2::uuid AND state = 'merged' ORDER BY id`,
      [ownerId, versionId],
    )
  }

  family(ownerId: string, memoryIds: readonly string[]): Promise<string[]> {
    return this.#ids(
      `WITH RECURSIVE kin AS (
         SELECT id FROM memories WHERE owner_id = $1::uuid AND id = ANY ($2::uuid[])
         UNION
         SELECT m.id FROM kin k JOIN memory_versions v ON v.memory_id = k.id JOIN memories m ON m.merged_into_version_id = v.id)
       SELECT id FROM kin ORDER BY id`,
      [ownerId, memoryIds],
    )
  }

  contentIds(ownerId: string, memoryIds: readonly string[]): Promise<string[]> {
    return this.#ids('SELECT content_id AS id FROM memory_versions WHERE owner_id = $1::uuid AND memory_id = ANY ($2::uuid[]) ORDER BY 1', [
      ownerId,
      memoryIds,
    ])
  }

  jobAnswers(ownerId: string, contentIds: readonly string[]): Promise<string[]> {
    return this.#ids(
      `SELECT DISTINCT r.candidate_id AS id
       FROM memory_versions v
       JOIN memory_sources s ON s.version_id = v.id
       JOIN nodes n ON n.id = s.node_id
       JOIN contents asked ON asked.derived_from @> ARRAY[n.content_id] AND asked.derived_from <> '{}'
       JOIN contents said ON said.derived_from @> ARRAY[asked.id] AND said.derived_from <> '{}'
       JOIN runs r ON r.candidate_id = said.id AND r.owner_id = v.owner_id AND r.kind = 'maintenance'
       WHERE v.owner_id = $1::uuid AND v.content_id = ANY ($2::uuid[]) AND n.content_id IS NOT NULL ORDER BY 1`,
      [ownerId, contentIds],
    )
  }

  async expire(ownerId: string, versionIds: readonly string[], eraseAt: Date): Promise<void> {
    await this.#sql.execute(
      `INSERT INTO memory_expiries (version_id, owner_id, erase_at)
       SELECT v.id, v.owner_id, $3::timestamptz FROM memory_versions v WHERE v.owner_id = $1::uuid AND v.id = ANY ($2::uuid[])
       ON CONFLICT (version_id) DO UPDATE SET erase_at = least(memory_expiries.erase_at, excluded.erase_at)`,
      [ownerId, versionIds, eraseAt],
    )
  }

  due(
    now: Date,
    limit: number,
    without: readonly string[],
  ): Promise<{ version_id: string; content_id: string; memory_id: string; owner_id: string; character_id: string; realm_id: string }[]> {
    return this.#sql.query(
      `SELECT x.version_id, v.content_id, v.memory_id, v.owner_id, v.character_id, v.realm_id
       FROM memory_expiries x JOIN memory_versions v ON v.id = x.version_id
       WHERE x.erase_at <= $1::timestamptz AND v.memory_id <> ALL ($3::uuid[]) ORDER BY v.memory_id, v.version LIMIT $2::int`,
      [now, limit, [...without]],
    )
  }

  async settleExpiries(versionIds: readonly string[]): Promise<void> {
    await this.#sql.execute('DELETE FROM memory_expiries WHERE version_id = ANY ($1::uuid[])', [versionIds])
  }

  citing(ownerId: string, nodeIds: readonly string[]): Promise<AffectedMemory[]> {
    return this.#sql.query<AffectedMemory>(
      `SELECT m.id AS memory_id,
              bool_or(n.deleted_at IS NULL AND NOT n.id = ANY ($2::uuid[])) AS sourced
       FROM memories m
       JOIN memory_sources s ON s.version_id = m.current_version_id
       JOIN nodes n ON n.id = s.node_id
       WHERE m.owner_id = $1::uuid AND m.state <> 'deleted'
         AND m.current_version_id IN (SELECT version_id FROM memory_sources WHERE node_id = ANY ($2::uuid[]))
       GROUP BY m.id ORDER BY m.id`,
      [ownerId, nodeIds],
    )
  }

  pastContentsOf(ownerId: string, nodeIds: readonly string[]): Promise<string[]> {
    return this.#ids(
      `SELECT v.content_id AS id
       FROM memory_versions v
       JOIN memories m ON m.id = v.memory_id AND m.current_version_id <> v.id
       JOIN memory_sources s ON s.version_id = v.id
       JOIN nodes n ON n.id = s.node_id
       WHERE v.owner_id = $1::uuid AND v.id IN (SELECT version_id FROM memory_sources WHERE node_id = ANY ($2::uuid[]))
       GROUP BY v.content_id
       HAVING NOT bool_or(n.deleted_at IS NULL AND NOT n.id = ANY ($2::uuid[])) ORDER BY 1`,
      [ownerId, nodeIds],
    )
  }

  citingCanonization(ownerId: string, canonizationId: string): Promise<AffectedMemory[]> {
    return this.#sql.query<AffectedMemory>(
      `SELECT m.id AS memory_id, bool_or(z.withdrawn_at IS NULL AND z.id <> $2::uuid) AS sourced
       FROM memories m
       JOIN memory_sources s ON s.version_id = m.current_version_id
       JOIN canonizations z ON z.id = s.canonization_id
       WHERE m.owner_id = $1::uuid AND m.state IN ('proposed', 'live')
         AND m.current_version_id IN (SELECT version_id FROM memory_sources WHERE canonization_id = $2::uuid)
       GROUP BY m.id ORDER BY m.id`,
      [ownerId, canonizationId],
    )
  }

  ofCharacter(ownerId: string, characterId: string): Promise<string[]> {
    return this.#ids(`SELECT id FROM memories WHERE owner_id = $1::uuid AND character_id = $2::uuid AND state <> 'deleted' ORDER BY id`, [
      ownerId,
      characterId,
    ])
  }

  async forgetKeys(ownerId: string, characterId: string): Promise<void> {
    await this.#sql.execute('DELETE FROM memory_suppressions WHERE owner_id = $1::uuid AND character_id = $2::uuid', [ownerId, characterId])
    await this.#sql.execute('DELETE FROM memory_keys WHERE owner_id = $1::uuid AND character_id = $2::uuid', [ownerId, characterId])
  }

  async #ids(text: string, params: readonly SqlParameter[]): Promise<string[]> {
    const rows = await this.#sql.query<{ id: string }>(text, params)
    return rows.map((row) => row.id)
  }
}
