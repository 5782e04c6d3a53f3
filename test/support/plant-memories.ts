/** Many live memories at once, by a few statements: for suites and benchmarks that need a crowd. The text is indexed as extraction does. */
import { memoryDigest } from '#domains/memory/dedupe'
import type { Scope, StoredSpace } from '#domains/memory/ports'
import { tokenize } from '#domains/memory/tokenize'
import { vectorText } from '#infra/prisma/memory-index.repository'
import type { Database } from '#infra/prisma/database'
import type { SystemIds } from '#infra/system/clock'

export type Planting = {
  scope: Scope
  source: { tree_id: string; node_id: string; canonization_id: string }
  texts: readonly string[]
  vectors: { space: StoredSpace; values: readonly Float32Array[] } | null
  at: Date
}

const CHUNK = 50

/** Answers the memories' ids, in the order of their texts. Texts must differ. */
export async function plantMemories({ database, ids }: { database: Database; ids: SystemIds }, planting: Planting): Promise<string[]> {
  const planted: string[] = []
  for (let from = 0; from < planting.texts.length; from += CHUNK) {
    const texts = planting.texts.slice(from, from + CHUNK)
    const rows = texts.map((text) => ({ text, memory: ids.next(), version: ids.next(), content: ids.next() }))
    await database.run(() => plantChunk(database, planting, rows, from))
    planted.push(...rows.map((row) => row.memory))
  }
  return planted
}

type Row = { text: string; memory: string; version: string; content: string }

async function plantChunk(database: Database, { scope, source, vectors, at }: Planting, rows: readonly Row[], from: number): Promise<void> {
  const { owner_id, character_id, realm_id } = scope
  const place = [owner_id, character_id, realm_id]
  const [memories, versions, contents] = [rows.map((row) => row.memory), rows.map((row) => row.version), rows.map((row) => row.content)]
  const key = new Uint8Array(32)
  await database.execute(`INSERT INTO memory_keys (owner_id, character_id, key) VALUES ($1::uuid, $2::uuid, $3) ON CONFLICT DO NOTHING`, [
    owner_id,
    character_id,
    key,
  ])
  await database.execute(
    `INSERT INTO contents (id, owner_id, media_type, body, salt, digest, size)
     SELECT c.id, $1::uuid, 'text/plain', c.body, sha256('salt'), sha256(convert_to(c.body, 'UTF8')), octet_length(c.body)
     FROM unnest($2::uuid[], $3::text[]) AS c(id, body)`,
    [owner_id, contents, rows.map((row) => row.text)],
  )
  await database.execute(
    `INSERT INTO memories (id, owner_id, character_id, realm_id, level, state, type, origin, priority, confidence, sensitive, current_version_id, text_hash, created_at, updated_at)
     SELECT m.id, $1::uuid, $2::uuid, $3::uuid, 'explicit', 'live', 'preference', 'user_explicit', 0.5, 1, false, m.version, decode(m.hash, 'hex'), $7::timestamptz, $7::timestamptz
     FROM unnest($4::uuid[], $5::uuid[], $6::text[]) AS m(id, version, hash)`,
    [...place, memories, versions, rows.map((row) => Buffer.from(memoryDigest(key, row.text)).toString('hex')), at],
  )
  await database.execute(
    `INSERT INTO memory_versions (id, owner_id, character_id, realm_id, memory_id, version, content_id, trust, event_at, cause, created_at)
     SELECT v.id, $1::uuid, $2::uuid, $3::uuid, v.memory, 1, v.content, 'workspace', $7::timestamptz, 'extract', $7::timestamptz
     FROM unnest($4::uuid[], $5::uuid[], $6::uuid[]) AS v(id, memory, content)`,
    [...place, versions, memories, contents, at],
  )
  await database.execute(
    `INSERT INTO memory_sources (version_id, owner_id, character_id, realm_id, tree_id, node_id, canonization_id)
     SELECT v.id, $1::uuid, $2::uuid, $3::uuid, $5::uuid, $6::uuid, $7::uuid FROM unnest($4::uuid[]) AS v(id)`,
    [...place, versions, source.tree_id, source.node_id, source.canonization_id],
  )
  const terms = rows.flatMap(({ version, text }) => {
    const { counts, length } = tokenize(text)
    return [...counts].map(([token, frequency]) => ({ version, token, frequency, length }))
  })
  await database.execute(
    `INSERT INTO memory_terms (version_id, token, owner_id, character_id, realm_id, live, level, frequency, length)
     SELECT t.version, t.token, $1::uuid, $2::uuid, $3::uuid, true, 'explicit', t.frequency, t.length
     FROM unnest($4::uuid[], $5::text[], $6::int[], $7::int[]) AS t(version, token, frequency, length)`,
    [
      ...place,
      terms.map((term) => term.version),
      terms.map((term) => term.token),
      terms.map((term) => term.frequency),
      terms.map((term) => term.length),
    ],
  )
  if (!vectors) return
  await database.execute(
    `INSERT INTO memory_vectors (version_id, space_id, owner_id, character_id, realm_id, live, level, embedding)
     SELECT v.id, $4::int, $1::uuid, $2::uuid, $3::uuid, true, 'explicit', v.embedding::halfvec
     FROM unnest($5::uuid[], $6::text[]) AS v(id, embedding)`,
    [
      ...place,
      vectors.space.id,
      versions,
      rows.map((_, index) => vectorText(vectors.values[from + index] ?? new Float32Array(vectors.space.dimensions))),
    ],
  )
}
