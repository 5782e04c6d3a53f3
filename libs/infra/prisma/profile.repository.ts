import type { Ids } from '#kernel/ports/clock'
import { canonicalJson } from '#kernel/record/canonical-json'
import { sha256Hex } from '#kernel/record/chain'
import type { Database } from './database.ts'

/** Resolved profiles, content-addressed: one row per owner and hash (spec/3 "Profile"). */
export class ProfileRepository {
  readonly #database: Database
  readonly #ids: Ids
  readonly #known = new Map<string, string>()

  constructor({ database, ids }: { database: Database; ids: Ids }) {
    this.#database = database
    this.#ids = ids
  }

  async keep(ownerId: string, profile: Record<string, string | number | null>): Promise<{ versionId: string; hash: string }> {
    const text = canonicalJson(profile)
    const hash = sha256Hex(text)
    const known = this.#known.get(ownerId + hash)
    if (known !== undefined) return { versionId: known, hash }
    const bytes = Buffer.from(hash, 'hex')
    await this.#database.execute(
      'INSERT INTO profile_versions (id, owner_id, hash, profile) VALUES ($1::uuid, $2::uuid, $3, $4) ON CONFLICT (owner_id, hash) DO NOTHING',
      [this.#ids.next(), ownerId, bytes, text],
    )
    const [row] = await this.#database.query<{ id: string }>('SELECT id FROM profile_versions WHERE owner_id = $1::uuid AND hash = $2', [
      ownerId,
      bytes,
    ])
    if (!row) throw new Error('the profile was not kept')
    this.#known.set(ownerId + hash, row.id)
    return { versionId: row.id, hash }
  }
}
