import type { ChainSource, ContentProof, RawEvent } from '#domains/record/verify.service'
import type { ContentStore } from '#kernel/ports/content-store'
import type { Database } from './database.ts'

/** Everything that a verification reads, straight from the tables. */
export class ChainRepository implements ChainSource {
  readonly #database: Database
  readonly #contents: ContentStore

  constructor({ database, contents }: { database: Database; contents: ContentStore }) {
    this.#database = database
    this.#contents = contents
  }

  async streams(after: string, limit: number): Promise<{ stream: string; seq: number; hash: Uint8Array }[]> {
    return this.#database.query('SELECT stream, seq, hash FROM streams WHERE stream > $1 ORDER BY stream LIMIT $2', [after, limit])
  }

  async events(stream: string, after: number, limit: number): Promise<RawEvent[]> {
    return this.#database.query(
      `SELECT stream, seq, type, visibility, owner_id, run_id, canonical, payload, prev_hash, hash
       FROM events WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
      [stream, after, limit],
    )
  }

  async contents(ids: readonly string[]): Promise<Map<string, ContentProof>> {
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
            : (content.layout?.segments ?? []).map((range) => ({ text: body.slice(range.from, range.to), salt: Buffer.from(range.salt, 'base64') })),
      })
    }
    return proofs
  }

  async quarantine(stream: string): Promise<void> {
    await this.#database.execute('UPDATE streams SET quarantined_at = now() WHERE stream = $1 AND quarantined_at IS NULL', [stream])
  }
}
