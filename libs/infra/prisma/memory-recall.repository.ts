import { FADED_HALF_LIVES, PRIORITY_SHARE, VITALITY_SHARE } from '#domains/memory/vitality'
import type { MemoryRecaller, RecallCandidate, RecallQuery, RecallResult, StoredSpace } from '#domains/memory/ports'
import { vectorText } from './memory-index.repository.ts'
import type { Sql } from './sql.ts'

/** Saturation and length normalisation of BM25; measured, see docs/benchmarks/memory.md. */
const BM25_K1 = 0.9
const BM25_B = 0.4

/** A token in more than this share of the scope's memories is dropped while two rarer ones remain (decision 32). */
const COMMON_SHARE = 0.2

/** Most tokens that a query looks up: those that weigh most. */
const QUERY_TOKENS_MAX = 64

/** Index entries that a query reads, rarest tokens first; two tokens are read whatever they cost. Bounds the text leg in a large scope. */
const ENTRIES_MAX = 10_000

/** A vector leg in which different texts score closer together than this says nothing (case R16). */
const DEGENERATE_SPREAD = 1e-4

/** Rows of one index, filtered inside: owner, character, realms, level, state (decisions 31, 32). */
function within(table: string): string {
  return `${table}.character_id = $2::uuid AND ${table}.realm_id = ANY ((SELECT realm_ids FROM place)::uuid[]) AND ${table}.owner_id = $1::uuid
      AND ${table}.level = ANY ($6::text[]) AND (${table}.live OR $7::boolean)`
}

/**
 * The vector leg. A small scope is compared row by row; a large one through the space's index, which goes on searching until enough rows
 * pass the filter. Space and dimensions stand in the text, since a partial index is only found by constants; they are numbers of our own.
 */
function vectorLeg(space: StoredSpace): string {
  const query = `$17::text::halfvec(${space.dimensions})`
  return `
  small_scope AS MATERIALIZED (
    SELECT e.version_id, e.embedding FROM memory_vectors e
    WHERE (SELECT documents <= $18::int FROM size) AND e.space_id = ${space.id} AND ${within('e')}
  ),
  nearest AS (
    (SELECT version_id, 1 - (embedding::halfvec(${space.dimensions}) <=> ${query}) AS score FROM small_scope
     ORDER BY embedding::halfvec(${space.dimensions}) <=> ${query}, version_id LIMIT $8::int)
    UNION ALL
    (SELECT e.version_id, 1 - (e.embedding::halfvec(${space.dimensions}) <=> ${query}) AS score FROM memory_vectors e
     WHERE (SELECT documents > $18::int FROM size) AND e.space_id = ${space.id} AND ${within('e')}
     ORDER BY e.embedding::halfvec(${space.dimensions}) <=> ${query} LIMIT $8::int)
  ),
  spread AS (
    SELECT count(*) > 1 AND max(score) - min(score) < ${DEGENERATE_SPREAD} AND (
             SELECT count(DISTINCT m.text_hash) > 1
             FROM nearest n JOIN memory_versions v ON v.id = n.version_id JOIN memories m ON m.id = v.memory_id) AS flat
    FROM nearest WHERE score <> 'NaN'
  ),
  vector_leg AS (
    SELECT version_id, score, row_number() OVER (ORDER BY score DESC, version_id) AS place
    FROM nearest WHERE NOT (SELECT flat FROM spread) AND score > $16::float8 AND score <> 'NaN'
  ),`
}

/** The same columns where there is no vector to ask with. */
const noVectorLeg = `
  spread AS (SELECT false AS flat),
  vector_leg AS (SELECT NULL::uuid AS version_id, NULL::float8 AS score, NULL::bigint AS place WHERE false),`

/**
 * Both legs, their fusion by weighted reciprocal rank, and the soft factors of `vitality.ts`, in one statement (spec/5 "Recall").
 * Parameters: 1 owner, 2 character, 3 realm, 4 tokens, 5 their weights, 6 levels, 7 proposals too, 8 depth of a leg, 9 k, 10 text weight,
 * 11 vector weight, 12 now, 13 half-life in days, 14 limit, 15 real memories too; with a vector also 16 floor, 17 vector, 18 exact up to.
 */
export function recallSql(space: StoredSpace | null): string {
  return `
WITH place AS (
  SELECT coalesce(array_agg(r.id), '{}') AS realm_ids
  FROM realms here
  JOIN characters c ON c.owner_id = here.owner_id AND c.id = $2::uuid AND c.deleted_at IS NULL
  JOIN realms r ON r.owner_id = here.owner_id AND (r.id = here.id OR (r.kind = 'real' AND $15::boolean))
  WHERE here.owner_id = $1::uuid AND here.id = $3::uuid
),
size AS (
  SELECT coalesce(sum(documents), 0)::float8 AS documents, greatest(coalesce(sum(length_sum), 0)::float8, 1) AS length_sum
  FROM memory_scopes
  WHERE owner_id = $1::uuid AND character_id = $2::uuid AND realm_id = ANY ((SELECT realm_ids FROM place)::uuid[])
),
known AS (
  SELECT q.token, q.weight, k.documents, row_number() OVER rarest AS rarity, sum(k.documents) OVER rarest AS entries
  FROM unnest($4::text[], $5::float8[]) AS q(token, weight)
  JOIN LATERAL (
    SELECT coalesce(sum(n.documents), 0)::float8 AS documents FROM memory_term_counts n
    WHERE n.character_id = $2::uuid AND n.realm_id = ANY ((SELECT realm_ids FROM place)::uuid[]) AND n.token = q.token COLLATE "C"
  ) k ON k.documents > 0 OR $7::boolean -- proposals are not counted
  WINDOW rarest AS (ORDER BY k.documents, q.token)
),
asked AS (
  SELECT k.token, k.weight * ln(1 + (s.documents - k.documents + 0.5) / (k.documents + 0.5)) * ${BM25_K1 + 1}::float8 AS gain
  FROM known k CROSS JOIN size s
  WHERE k.rarity <= 2 OR (k.entries <= ${ENTRIES_MAX} AND (k.documents <= ${COMMON_SHARE} * s.documents OR $7::boolean))
  ORDER BY gain DESC, k.token LIMIT ${QUERY_TOKENS_MAX}
),
matching AS (
  SELECT t.version_id,
         sum(a.gain * t.frequency / (t.frequency + s.flat_part + s.length_part * t.length)) AS score
  FROM asked a
  CROSS JOIN (
    SELECT ${BM25_K1 * (1 - BM25_B)}::float8 AS flat_part, ${BM25_K1 * BM25_B}::float8 * documents / length_sum AS length_part FROM size
  ) s
  JOIN memory_terms t ON t.token = a.token AND ${within('t')}
  GROUP BY t.version_id ORDER BY score DESC, t.version_id LIMIT $8::int
),
text_leg AS (SELECT version_id, score, row_number() OVER (ORDER BY score DESC, version_id) AS place FROM matching),
${space ? vectorLeg(space) : noVectorLeg}
fused AS (
  SELECT coalesce(t.version_id, v.version_id) AS version_id,
         t.place::int AS text_rank, t.score AS text_score, v.place::int AS vector_rank, v.score AS vector_score,
         coalesce($10::float8 / ($9::float8 + t.place), 0) + coalesce($11::float8 / ($9::float8 + v.place), 0) AS score
  FROM text_leg t FULL JOIN vector_leg v ON v.version_id = t.version_id
),
alive AS (
  SELECT f.version_id, f.text_rank, f.text_score, f.vector_rank, f.vector_score, f.score AS fused_score,
         m.id AS memory_id, m.realm_id, m.level, m.type, m.state, m.sensitive, m.priority, m.mentions,
         v.version, v.content_id, v.trust, v.event_at, c.body AS text, c.digest,
         power(2, -least(greatest(extract(epoch FROM $12::timestamptz - greatest(v.event_at, m.last_hit_at))::float8, 0)
                         / 86400 / $13::float8, ${FADED_HALF_LIVES})) AS vitality
  FROM fused f
  JOIN memory_versions v ON v.id = f.version_id
  JOIN memories m ON m.id = v.memory_id AND m.current_version_id = v.id AND m.owner_id = $1::uuid AND (m.state = 'live' OR ($7::boolean AND m.state = 'proposed'))
  JOIN contents c ON c.id = v.content_id AND c.owner_id = $1::uuid AND c.erased_at IS NULL
),
ranked AS (
  SELECT a.*, fused_score * (1 - ${VITALITY_SHARE} * (1 - vitality)) * (1 - ${PRIORITY_SHARE} * (1 - priority)) AS score FROM alive a
)
SELECT s.flat, r.memory_id, r.version_id, r.content_id, r.realm_id, r.text, r.digest, r.level, r.type, r.state, r.sensitive, r.trust, r.version,
       r.event_at, r.mentions, r.text_rank, r.text_score, r.vector_rank, r.vector_score, r.vitality, r.score
FROM spread s
LEFT JOIN LATERAL (SELECT * FROM ranked ORDER BY score DESC, version_id LIMIT $14::int) r ON true
ORDER BY r.score DESC, r.version_id`
}

/** The two legs of recall in one statement, on both tiers alike. */
export class MemoryRecallRepository implements MemoryRecaller {
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
  }

  async recall(query: RecallQuery): Promise<RecallResult> {
    const vector = query.vector
    const rows = await this.#sql.query<(RecallCandidate | { memory_id: null }) & { flat: boolean }>(recallSql(vector?.space ?? null), [
      query.owner_id,
      query.character_id,
      query.realm_id,
      query.tokens,
      query.weights,
      query.levels,
      query.includeProposed,
      query.depth,
      query.rankConstant,
      query.textWeight,
      query.vectorWeight,
      query.now,
      query.halfLifeDays,
      query.limit,
      query.includeReal,
      ...(vector ? [query.vectorFloor, vectorText(vector.values), query.exactUpTo] : []),
    ])
    const candidates: RecallCandidate[] = []
    for (const { flat: _, ...row } of rows) if (row.memory_id !== null) candidates.push(row)
    return { candidates, vectorDegenerate: rows[0]?.flat ?? false }
  }
}
