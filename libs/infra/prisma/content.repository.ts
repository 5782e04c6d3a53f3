import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentLayout, ContentStore, NewContent, StoredContent } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import { saltedDigest } from '#kernel/record/chain'
import type { Database } from './database.ts'

/** Contents over this size are stored in pieces of it (decision 9). */
const CHUNK_BYTES = 512 * 1024

type ContentRow = {
  id: string
  owner_id: string
  media_type: string
  body: string | null
  bytes: Buffer | null
  chunks: number
  layout: ContentLayout | null
  digest: Buffer
  size: number
  erased: boolean
}

/** `contents` in Postgres (decisions 9–13). */
export class ContentRepository implements ContentStore {
  readonly #database: Database
  readonly #log: EventLog
  readonly #ids: Ids
  readonly #clock: Clock

  constructor({ database, log, ids, clock }: { database: Database; log: EventLog; ids: Ids; clock: Clock }) {
    this.#database = database
    this.#log = log
    this.#ids = ids
    this.#clock = clock
  }

  async put(content: NewContent): Promise<{ id: string; digest: Uint8Array }> {
    const id = content.id ?? this.#ids.next()
    const salt = this.#ids.bytes(32)
    const digest = saltedDigest(salt, content.content)
    const bytes = typeof content.content === 'string' ? Buffer.from(content.content, 'utf8') : Buffer.from(content.content)
    const chunks = bytes.byteLength > CHUNK_BYTES ? Math.ceil(bytes.byteLength / CHUNK_BYTES) : 0
    await this.#database.execute(
      `INSERT INTO contents (id, owner_id, media_type, body, bytes, chunks, layout, salt, digest, size, derived_from)
       VALUES ($1::uuid, $2::uuid, $3, $4, $5, $6, $7::jsonb, $8, $9, $10, $11::uuid[])`,
      [
        id,
        content.owner_id,
        content.media_type,
        chunks === 0 && typeof content.content === 'string' ? content.content : null,
        chunks === 0 && typeof content.content !== 'string' ? bytes : null,
        chunks,
        content.layout ? JSON.stringify(content.layout) : null,
        salt,
        digest,
        bytes.byteLength,
        content.derived_from ?? [],
      ],
    )
    for (let ordinal = 0; ordinal < chunks; ordinal++) {
      const piece = bytes.subarray(ordinal * CHUNK_BYTES, (ordinal + 1) * CHUNK_BYTES)
      await this.#database.execute('INSERT INTO content_chunks (content_id, ordinal, bytes) VALUES ($1::uuid, $2, $3)', [id, ordinal, piece])
    }
    return { id, digest }
  }

  async get(ids: readonly string[]): Promise<Map<string, StoredContent>> {
    const found = new Map<string, StoredContent>()
    if (ids.length === 0) return found
    const rows = await this.#database.query<ContentRow>(
      `SELECT id, owner_id, media_type, body, bytes, chunks, layout, digest, size, erased_at IS NOT NULL AS erased
       FROM contents WHERE id = ANY ($1::uuid[])`,
      [[...new Set(ids)]],
    )
    for (const row of rows) found.set(row.id, await this.#assemble(row))
    return found
  }

  async #assemble({ chunks, ...row }: ContentRow): Promise<StoredContent> {
    if (chunks === 0) return row
    const pieces = await this.#database.query<{ bytes: Buffer }>('SELECT bytes FROM content_chunks WHERE content_id = $1::uuid ORDER BY ordinal', [row.id])
    const bytes = Buffer.concat(pieces.map((piece) => piece.bytes))
    const isText = row.media_type.startsWith('text/') || row.media_type === 'application/json'
    return isText ? { ...row, body: bytes.toString('utf8') } : { ...row, bytes }
  }

  async erase({ ids, cause }: { ids: readonly string[]; cause: string }): Promise<string[]> {
    if (ids.length === 0) return []
    const derived = await this.#database.query<{ id: string; owner_id: string }>(
      `WITH RECURSIVE affected AS (
         SELECT id FROM contents WHERE id = ANY ($1::uuid[])
         UNION
         SELECT c.id FROM contents c JOIN affected a ON c.derived_from @> ARRAY[a.id])
       SELECT c.id, c.owner_id FROM contents c JOIN affected USING (id) WHERE c.erased_at IS NULL ORDER BY c.id`,
      [[...ids]],
    )
    if (derived.length === 0) return []
    const erased = derived.map((row) => row.id)
    await this.#database.execute('DELETE FROM content_chunks WHERE content_id = ANY ($1::uuid[])', [erased])
    await this.#database.execute(
      'UPDATE contents SET body = NULL, bytes = NULL, chunks = 0, layout = NULL, salt = NULL, erased_at = now() WHERE id = ANY ($1::uuid[])',
      [erased],
    )
    for (const row of derived) {
      await this.#database.execute('INSERT INTO erasures (content_id, owner_id, cause) VALUES ($1::uuid, $2::uuid, $3) ON CONFLICT DO NOTHING', [
        row.id,
        row.owner_id,
        cause,
      ])
    }
    const owners = new Set(derived.map((row) => row.owner_id))
    for (const ownerId of owners) {
      await this.#log.append({
        stream: `admin:${ownerId}`,
        ownerId,
        events: derived
          .filter((row) => row.owner_id === ownerId)
          .map((row) => ({
            type: 'content.erased',
            payload: { content_id: row.id, cause },
            actor: 'system',
            at: this.#clock.now().toISOString(),
            cause: { tag: 'content.erase' },
          })),
      })
    }
    return erased
  }
}
