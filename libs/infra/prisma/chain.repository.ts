import type { ChainSource, ContentProof, RawEvent } from '#domains/record/verify.service'
import type { ContentStore } from '#kernel/ports/content-store'
import type { Database } from './database.ts'

const ERASED: ContentProof = { erased: true, digest: new Uint8Array(), salt: null, body: null, segments: [] }

/** Everything that a verification reads, straight from the tables. */
export class ChainRepository implements ChainSource {
  readonly #database: Database
  readonly #contents: ContentStore

  constructor({ database, contents }: { database: Database; contents: ContentStore }) {
    this.#database = database
    this.#contents = contents
  }

  async streams(after: string, limit: number): Promise<string[]> {
    const rows = await this.#database.query<{ stream: string }>('SELECT stream FROM streams WHERE stream > $1 ORDER BY stream LIMIT $2', [
      after,
      limit,
    ])
    return rows.map((row) => row.stream)
  }

  async head(stream: string): Promise<{ seq: number; hash: Uint8Array } | null> {
    const [head] = await this.#database.query<{ seq: number; hash: Uint8Array }>('SELECT seq, hash FROM streams WHERE stream = $1', [
      stream,
    ])
    return head ?? null
  }

  async events(stream: string, after: number, limit: number): Promise<RawEvent[]> {
    return this.#database.query(
      `SELECT stream, seq, type, visibility, owner_id, run_id, canonical, payload, prev_hash, hash
       FROM events WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
      [stream, after, limit],
    )
  }

  async contents(ids: readonly string[]): Promise<Map<string, ContentProof>> {
    const proofs = await this.#stored(ids)
    const missing = ids.filter((id) => !proofs.has(id))
    if (missing.length === 0) return proofs
    for (const [id, proof] of await this.#beingWritten(missing)) proofs.set(id, proof)
    // An answer that was sealed between the two looks is stored by now.
    for (const [id, proof] of await this.#stored(missing)) proofs.set(id, proof)
    for (const id of await this.#erasedBefore(missing.filter((other) => !proofs.has(other)))) proofs.set(id, ERASED)
    return proofs
  }

  async #stored(ids: readonly string[]): Promise<Map<string, ContentProof>> {
    const proofs = new Map<string, ContentProof>()
    for (const [id, content] of await this.#contents.get(ids)) {
      const body = content.body
      proofs.set(id, {
        erased: content.erased,
        digest: content.digest,
        salt: content.salt,
        body: body ?? content.bytes,
        segments:
          body === null
            ? []
            : (content.layout?.segments ?? []).map((range) => ({
                text: body.slice(range.from, range.to),
                salt: Buffer.from(range.salt, 'base64'),
              })),
      })
    }
    return proofs
  }

  /** An answer that was being written when an archive was made, and that the ledger named when it was restored. */
  async #erasedBefore(ids: readonly string[]): Promise<string[]> {
    if (ids.length === 0) return []
    const rows = await this.#database.query<{ id: string }>(
      `SELECT r.candidate_id AS id FROM runs r JOIN erasures e ON e.content_id = r.candidate_id WHERE r.candidate_id = ANY ($1::uuid[])`,
      [[...new Set(ids)]],
    )
    return rows.map((row) => row.id)
  }

  async #beingWritten(ids: readonly string[]): Promise<Map<string, ContentProof>> {
    const rows = await this.#database.query<{ candidate_id: string; body: string; salt: Uint8Array }>(
      `SELECT r.candidate_id, s.body, s.salt FROM runs r JOIN segments s ON s.run_id = r.id WHERE r.candidate_id = ANY ($1::uuid[]) ORDER BY s.ordinal`,
      [[...new Set(ids)]],
    )
    const segments = new Map<string, { text: string; salt: Uint8Array }[]>()
    for (const { candidate_id: id, body, salt } of rows) {
      const written = segments.get(id) ?? []
      written.push({ text: body, salt })
      segments.set(id, written)
    }
    return new Map(
      [...segments].map(([id, written]) => [id, { erased: false, digest: new Uint8Array(), salt: null, body: null, segments: written }]),
    )
  }

  async quarantine(stream: string): Promise<void> {
    await this.#database.execute(
      `INSERT INTO streams AS s (stream, quarantined_at) VALUES ($1, now())
       ON CONFLICT (stream) DO UPDATE SET quarantined_at = now() WHERE s.quarantined_at IS NULL`,
      [stream],
    )
  }
}
