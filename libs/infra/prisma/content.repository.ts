import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentLayout, ContentStore, NewContent, StoredContent } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import { saltedDigest } from '#kernel/record/chain'
import type { Database } from './database.ts'
import { RowCountError } from './tree.repository.ts'

/** Contents over this size are stored in pieces of it (decision 9). */
const CHUNK_BYTES = 512 * 1024

/** Texts in one statement of `putMany`. */
const BATCH_ROWS = 500

type TextRow = Omit<NewContent, 'layout' | 'content'> & { id: string; content: string; salt: Uint8Array; digest: Uint8Array }

type ErasedRow = { id: string; owner_id: string }

type ContentRow = {
  id: string
  owner_id: string
  media_type: string
  body: string | null
  bytes: Buffer | null
  chunks: number
  layout: ContentLayout | null
  salt: Buffer | null
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

  /** Told after each erasure has been committed, for what is kept of erasures outside the database. */
  onErased: () => void = () => undefined

  constructor({ database, log, ids, clock }: { database: Database; log: EventLog; ids: Ids; clock: Clock }) {
    this.#database = database
    this.#log = log
    this.#ids = ids
    this.#clock = clock
  }

  put(content: NewContent): Promise<{ id: string; digest: Uint8Array }> {
    return this.#withSources([content], async () => [await this.#insert(content)]).then(([stored]) => {
      if (!stored) throw new RowCountError('insert contents', 1, 0)
      return stored
    })
  }

  async #insert(content: NewContent): Promise<{ id: string; digest: Uint8Array }> {
    const id = content.id ?? this.#ids.next()
    const salt = content.salt ?? this.#ids.bytes(32)
    const digest = saltedDigest(salt, content.content)
    const bytes = typeof content.content === 'string' ? Buffer.from(content.content, 'utf8') : Buffer.from(content.content)
    const chunks = bytes.byteLength > CHUNK_BYTES ? Math.ceil(bytes.byteLength / CHUNK_BYTES) : 0
    const insert = async (): Promise<void> => {
      const [row] = await this.#database.query<{ erased: boolean }>(
        `INSERT INTO contents (id, owner_id, media_type, body, bytes, chunks, layout, salt, digest, size, derived_from)
         VALUES ($1::uuid, $2::uuid, $3, $4, $5, $6, array_to_string($7::text[], '')::jsonb, $8, $9, $10, $11::uuid[])
         RETURNING erased_at IS NOT NULL AS erased`,
        [
          id,
          content.owner_id,
          content.media_type,
          chunks === 0 && typeof content.content === 'string' ? content.content : null,
          chunks === 0 && typeof content.content !== 'string' ? bytes : null,
          chunks,
          content.layout ? pieces(JSON.stringify(content.layout)) : null,
          salt,
          digest,
          bytes.byteLength,
          content.derived_from ?? [],
        ],
      )
      // The ledger named it before it came: nothing of it is kept.
      if (row?.erased) return
      for (let ordinal = 0; ordinal < chunks; ordinal++) {
        const piece = bytes.subarray(ordinal * CHUNK_BYTES, (ordinal + 1) * CHUNK_BYTES)
        await this.#database.execute('INSERT INTO content_chunks (content_id, ordinal, bytes) VALUES ($1::uuid, $2, $3)', [
          id,
          ordinal,
          piece,
        ])
      }
    }
    // A content whose pieces are not all there is none.
    await (chunks === 0 ? insert() : this.#database.run(insert))
    return { id, digest }
  }

  putMany(contents: readonly Omit<NewContent, 'layout'>[]): Promise<{ id: string; digest: Uint8Array }[]> {
    return this.#withSources(contents, () => this.#insertMany(contents))
  }

  /**
   * What is made of an erased text is erased as soon as it is there: the making takes time, and the erasure may have come meanwhile. The
   * sources are held until the commit, so that an erasure that comes later waits and then finds what was made of them.
   */
  async #withSources(
    contents: readonly Pick<NewContent, 'derived_from'>[],
    insert: () => Promise<{ id: string; digest: Uint8Array }[]>,
  ): Promise<{ id: string; digest: Uint8Array }[]> {
    const sources = [...new Set(contents.flatMap(({ derived_from: from }) => from ?? []))]
    if (sources.length === 0) return insert()
    return this.#database.run(async () => {
      const [stored, held] = await Promise.all([
        insert(),
        this.#database.query<{ id: string; erased: boolean }>(
          'SELECT id, erased_at IS NOT NULL AS erased FROM contents WHERE id = ANY ($1::uuid[]) ORDER BY id FOR SHARE',
          [sources],
        ),
      ])
      const erased = new Set(held.flatMap((row) => (row.erased ? [row.id] : [])))
      const gone = stored.filter((_, index) => contents[index]?.derived_from?.some((id) => erased.has(id)))
      await this.erase({ ids: gone.map(({ id }) => id), cause: 'source_erased' })
      return stored
    })
  }

  async #insertMany(contents: readonly Omit<NewContent, 'layout'>[]): Promise<{ id: string; digest: Uint8Array }[]> {
    const stored: { id: string; digest: Uint8Array }[] = []
    let batch: TextRow[] = []
    let batchBytes = 0
    for (const content of contents) {
      if (typeof content.content !== 'string' || Buffer.byteLength(content.content) > CHUNK_BYTES) {
        stored.push(await this.#insert(content))
        continue
      }
      const salt = content.salt ?? this.#ids.bytes(32)
      const row = {
        ...content,
        content: content.content,
        id: content.id ?? this.#ids.next(),
        salt,
        digest: saltedDigest(salt, content.content),
      }
      const size = Buffer.byteLength(row.content)
      if (batch.length === BATCH_ROWS || batchBytes + size > CHUNK_BYTES) {
        await this.#insertTexts(batch)
        batch = []
        batchBytes = 0
      }
      batch.push(row)
      batchBytes += size
      stored.push({ id: row.id, digest: row.digest })
    }
    await this.#insertTexts(batch)
    return stored
  }

  async #insertTexts(rows: readonly TextRow[]): Promise<void> {
    if (rows.length === 0) return
    const written = await this.#database.execute(
      `INSERT INTO contents (id, owner_id, media_type, body, salt, digest, size, derived_from)
       SELECT c.id, c.owner_id, c.media_type, c.body, decode(c.salt, 'hex'), decode(c.digest, 'hex'), octet_length(c.body), c.derived_from::uuid[]
       FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
         AS c(id, owner_id, media_type, body, salt, digest, derived_from)`,
      [
        rows.map((row) => row.id),
        rows.map((row) => row.owner_id),
        rows.map((row) => row.media_type),
        rows.map((row) => row.content),
        rows.map((row) => Buffer.from(row.salt).toString('hex')),
        rows.map((row) => Buffer.from(row.digest).toString('hex')),
        rows.map((row) => `{${(row.derived_from ?? []).join(',')}}`),
      ],
    )
    if (written !== rows.length) throw new RowCountError('insert contents', rows.length, written)
  }

  async get(ids: readonly string[]): Promise<Map<string, StoredContent>> {
    const found = new Map<string, StoredContent>()
    if (ids.length === 0) return found
    const rows = await this.#database.query<ContentRow>(
      `SELECT id, owner_id, media_type, body, bytes, chunks, layout, salt, digest, size, erased_at IS NOT NULL AS erased
       FROM contents WHERE id = ANY ($1::uuid[])`,
      [[...new Set(ids)]],
    )
    for (const row of rows) found.set(row.id, await this.#assemble(row))
    return found
  }

  async #assemble({ chunks, ...row }: ContentRow): Promise<StoredContent> {
    if (chunks === 0) return row
    const pieces = await this.#database.query<{ bytes: Buffer }>(
      'SELECT bytes FROM content_chunks WHERE content_id = $1::uuid ORDER BY ordinal',
      [row.id],
    )
    const bytes = Buffer.concat(pieces.map((piece) => piece.bytes))
    const isText = row.media_type.startsWith('text/') || row.media_type === 'application/json'
    return isText ? { ...row, body: bytes.toString('utf8') } : { ...row, bytes }
  }

  async erase({ ids, cause }: { ids: readonly string[]; cause: string }): Promise<string[]> {
    if (ids.length === 0) return []
    return this.#database.run(async () => {
      const erased: ErasedRow[] = []
      const seen = new Set<string>()
      // Level by level, each by a statement of its own: whoever derives a content holds its sources, so that what was derived while this
      // waited for them is seen by the next one.
      for (let level = [...ids]; level.length > 0; level = (await this.#derivedFrom(level)).filter((id) => !seen.has(id))) {
        for (const id of level) seen.add(id)
        erased.push(...(await this.#eraseTexts(level)))
      }
      erased.sort((left, right) => (left.id < right.id ? -1 : 1))
      await this.#recordErasures(erased, cause)
      return erased.map((row) => row.id)
    })
  }

  async #eraseTexts(ids: readonly string[]): Promise<ErasedRow[]> {
    // Locked in their order, so that two erasures never wait for each other. The database takes their pieces away with them.
    return this.#database.query<ErasedRow>(
      `WITH standing AS (SELECT id FROM contents WHERE id = ANY ($1::uuid[]) AND erased_at IS NULL ORDER BY id FOR NO KEY UPDATE)
       UPDATE contents c SET body = NULL, bytes = NULL, chunks = 0, layout = NULL, salt = NULL, erased_at = now()
       FROM standing s WHERE c.id = s.id RETURNING c.id, c.owner_id`,
      [ids],
    )
  }

  /** What was made of any of these. The second condition is what the index of derived contents is for. */
  async #derivedFrom(ids: readonly string[]): Promise<string[]> {
    const rows = await this.#database.query<{ id: string }>(
      `SELECT DISTINCT c.id FROM unnest($1::uuid[]) AS s(id)
       JOIN contents c ON c.derived_from @> ARRAY[s.id] AND c.derived_from <> '{}'`,
      [ids],
    )
    return rows.map((row) => row.id)
  }

  /** An owner's texts can be erased whatever became of the owner's record: a broken stream takes nothing more (decision 18), so another one does. */
  async #streamOf(ownerId: string): Promise<string> {
    for (let number = 0; number < STREAMS_MAX; number++) {
      const stream = number === 0 ? `admin:${ownerId}` : `admin:${ownerId}-erased-${number}`
      if ((await this.#log.head(stream))?.quarantined !== true) return stream
    }
    return `admin:${ownerId}`
  }

  async #recordErasures(derived: readonly ErasedRow[], cause: string): Promise<void> {
    if (derived.length === 0) return
    await this.#database.execute(
      `INSERT INTO erasures (content_id, owner_id, cause)
       SELECT e.content_id, e.owner_id, $3 FROM unnest($1::uuid[], $2::uuid[]) AS e(content_id, owner_id) ON CONFLICT DO NOTHING`,
      [derived.map((row) => row.id), derived.map((row) => row.owner_id), cause],
    )
    this.#database.afterCommit(() => this.onErased())
    const owners = new Set(derived.map((row) => row.owner_id))
    for (const ownerId of owners) {
      await this.#log.append({
        stream: await this.#streamOf(ownerId),
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
  }
}

/** Streams that are looked at for an owner's erasures before it is said that they cannot be noted. */
const STREAMS_MAX = 10

/** The layout of a long answer is larger than a parameter may be (decision 7). */
function pieces(text: string): string[] {
  return Array.from({ length: Math.ceil(text.length / CHUNK_BYTES) }, (_, index) =>
    text.slice(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES),
  )
}
