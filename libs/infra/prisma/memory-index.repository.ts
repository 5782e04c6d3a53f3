import { EmbeddingSpaceMismatchError } from '#domains/memory/ports'
import type { MemoryIndex, StoredSpace } from '#domains/memory/ports'
import type { TokenCounts } from '#domains/memory/tokenize'
import type { Sql } from './sql.ts'

/** Most dimensions that an index over halfvec takes (decision 31). */
export const DIMENSIONS_MAX = 4_000

/** How pgvector is set where memories are searched (decision 31): a start parameter on the light tier, on the database on the full one. */
export const vectorSettings = { 'hnsw.iterative_scan': 'strict_order', 'hnsw.ef_search': '100' } as const

/** The database is not set as recall needs it; the message says what to do. */
export class VectorSettingsError extends Error {
  constructor(name: string, wanted: string, found: string | null) {
    super(`${name} is ${found ?? 'not set'}; recall needs ${wanted}: ALTER DATABASE … SET ${name} = '${wanted}', then restart`)
    this.name = 'VectorSettingsError'
  }
}

/** pgvector is too old to search inside a filter. */
export class VectorVersionError extends Error {
  constructor(found: string) {
    super(`pgvector ${found} is installed; recall needs 0.8 or newer: update it and run ALTER EXTENSION vector UPDATE`)
    this.name = 'VectorVersionError'
  }
}

/** Checked at start: throws VectorVersionError or VectorSettingsError. */
export async function checkVectorSettings(sql: Sql): Promise<void> {
  const [extension] = await sql.query<{ version: string }>(`SELECT extversion AS version FROM pg_extension WHERE extname = 'vector'`)
  const [major = 0, minor = 0] = (extension?.version ?? '0').split('.').map(Number)
  if (major === 0 && minor < 8) throw new VectorVersionError(extension?.version ?? 'not')
  for (const [name, wanted] of Object.entries(vectorSettings)) {
    const [row] = await sql.query<{ value: string | null }>('SELECT current_setting($1, true) AS value', [name])
    if (row?.value !== wanted) throw new VectorSettingsError(name, wanted, row?.value ?? null)
  }
}

/** A vector as pgvector reads it. Half precision keeps some three digits: six are enough to write. */
export function vectorText(values: Float32Array): string {
  return `[${Array.from(values, (value) => Number(value.toPrecision(6))).join(',')}]`
}

/**
 * The version `$1` where it may be found by search, with what the indexes say of it. Its memory and its content stay locked until the entry
 * is in: an entry written past a deletion would outlive the text.
 */
const searchable = `
  SELECT v.id AS version_id, m.owner_id, m.character_id, m.realm_id, m.state = 'live' AS live, m.level
  FROM memory_versions v
  JOIN memories m ON m.current_version_id = v.id AND m.state IN ('proposed', 'live')
  JOIN contents c ON c.id = v.content_id AND c.erased_at IS NULL
  WHERE v.id = $1::uuid FOR SHARE OF m, c`

/** `memory_terms`, `memory_vectors` and `embedding_spaces` in Postgres (decisions 31, 32). */
export class MemoryIndexRepository implements MemoryIndex {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  async putTerms({ versionId, terms }: { versionId: string; terms: TokenCounts }): Promise<void> {
    if (terms.counts.size === 0) return
    await this.#sql.execute(
      `WITH searchable AS MATERIALIZED (${searchable})
       INSERT INTO memory_terms (version_id, token, owner_id, character_id, realm_id, live, level, frequency, length)
       SELECT s.version_id, t.token, s.owner_id, s.character_id, s.realm_id, s.live, s.level, t.frequency, $2::int
       FROM searchable s CROSS JOIN unnest($3::text[], $4::int[]) AS t(token, frequency)
       ON CONFLICT DO NOTHING`,
      [versionId, terms.length, [...terms.counts.keys()], [...terms.counts.values()]],
    )
  }

  async drop(ownerId: string, memoryIds: readonly string[]): Promise<void> {
    for (const table of ['memory_terms', 'memory_vectors']) {
      await this.#sql.execute(
        `DELETE FROM ${table} WHERE version_id IN (SELECT id FROM memory_versions WHERE owner_id = $1::uuid AND memory_id = ANY ($2::uuid[]))`,
        [ownerId, memoryIds],
      )
    }
  }

  async putVector({ versionId, space, vector }: { versionId: string; space: StoredSpace; vector: Float32Array }): Promise<void> {
    if (vector.length !== space.dimensions)
      throw new RangeError(`a vector of ${vector.length} dimensions for ${space.slug} (${space.dimensions})`)
    await this.#sql.execute(
      `WITH searchable AS MATERIALIZED (${searchable})
       INSERT INTO memory_vectors (version_id, space_id, owner_id, character_id, realm_id, live, level, embedding)
       SELECT s.version_id, $2::int, s.owner_id, s.character_id, s.realm_id, s.live, s.level, $3::text::halfvec FROM searchable s
       ON CONFLICT DO NOTHING`,
      [versionId, space.id, vectorText(vector)],
    )
  }

  spaces(): Promise<StoredSpace[]> {
    return this.#sql.query<StoredSpace>('SELECT id, slug, model, version, dimensions FROM embedding_spaces ORDER BY id')
  }

  usedSpaces(): Promise<StoredSpace[]> {
    return this.#sql.query<StoredSpace>(
      `SELECT id, slug, model, version, dimensions FROM embedding_spaces s
       WHERE EXISTS (SELECT 1 FROM memory_vectors WHERE space_id = s.id) ORDER BY id`,
    )
  }

  async ensureSpace(space: { slug: string; model: string; version: string; dimensions: number }): Promise<StoredSpace> {
    if (space.dimensions > DIMENSIONS_MAX)
      throw new RangeError(`${space.slug} has ${space.dimensions} dimensions, at most ${DIMENSIONS_MAX} can be searched`)
    await this.#sql.execute(
      'INSERT INTO embedding_spaces (slug, model, version, dimensions) VALUES ($1, $2, $3, $4::int) ON CONFLICT DO NOTHING',
      [space.slug, space.model, space.version, space.dimensions],
    )
    const [stored] = await this.#sql.query<StoredSpace>(
      'SELECT id, slug, model, version, dimensions FROM embedding_spaces WHERE slug = $1',
      [space.slug],
    )
    if (!stored || stored.dimensions !== space.dimensions || stored.model !== space.model || stored.version !== space.version) {
      throw new EmbeddingSpaceMismatchError(stored ?? { id: 0, ...space }, space)
    }
    // Numbers of our own table: an index takes no parameters.
    await this.#sql.execute(
      `CREATE INDEX IF NOT EXISTS memory_vectors_space_${stored.id} ON memory_vectors
       USING hnsw ((embedding::halfvec(${stored.dimensions})) halfvec_cosine_ops) WHERE space_id = ${stored.id}`,
    )
    return stored
  }

  missingVectors(
    spaceId: number,
    { limit, exceptVersions, exceptCharacters }: Parameters<MemoryIndex['missingVectors']>[1],
  ): ReturnType<MemoryIndex['missingVectors']> {
    return this.#sql.query(
      `SELECT v.id AS version_id, m.owner_id, m.character_id, c.body AS text
       FROM memories m
       JOIN memory_versions v ON v.id = m.current_version_id
       JOIN contents c ON c.id = v.content_id AND c.erased_at IS NULL
       WHERE m.state IN ('proposed', 'live') AND NOT EXISTS (SELECT 1 FROM memory_vectors e WHERE e.version_id = v.id AND e.space_id = $1::int)
         AND NOT EXISTS (
           SELECT 1 FROM kill_flags k
           WHERE k.scope = 'global' OR (k.scope = 'owner' AND k.scope_id = m.owner_id) OR (k.scope = 'character' AND k.scope_id = m.character_id))
         AND v.id <> ALL ($3::uuid[]) AND m.character_id <> ALL ($4::uuid[])
       ORDER BY v.id LIMIT $2::int`,
      [spaceId, limit, exceptVersions, exceptCharacters],
    )
  }

  dropOtherSpaces(spaceId: number, limit: number): Promise<number> {
    return this.#sql.execute(
      `DELETE FROM memory_vectors WHERE (version_id, space_id) IN (
         SELECT version_id, space_id FROM memory_vectors WHERE space_id <> $1::int LIMIT $2::int)`,
      [spaceId, limit],
    )
  }
}
