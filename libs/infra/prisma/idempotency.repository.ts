import type { Database } from './database.ts'
import { RowCountError } from './tree.repository.ts'

export type KeyName = { ownerId: string; method: string; route: string; key: string }
type Kept = Readonly<Record<string, string | number | null | readonly string[]>>

/** Rows that tell a repeated mutation from a new one (decision 30). */
export interface IdempotencyStore {
  /**
   * Takes the key and answers null, or answers what an earlier mutation left; waits while that one is still in its transaction. `hash` is
   * null once anything of the owner's was erased.
   */
  claim(
    input: KeyName & { salt: Uint8Array; bodyHash: Uint8Array; at: Date; expiredBefore: Date },
  ): Promise<{ hash: { salt: Uint8Array; bodyHash: Uint8Array } | null; kept: Kept | null } | null>
  isKept(name: KeyName): Promise<boolean>
  settle(input: KeyName & { status: number; kept: Kept | null }): Promise<void>
  removeBefore(before: Date): Promise<void>
}

/** `idempotency_keys` in Postgres. */
export class IdempotencyRepository implements IdempotencyStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async claim(input: Parameters<IdempotencyStore['claim']>[0]): ReturnType<IdempotencyStore['claim']> {
    const claimed = await this.#database.execute(
      `INSERT INTO idempotency_keys (owner_id, method, route, key, salt, body_hash, created_at)
       VALUES ($1::uuid, $2, $3, $4, $5, $6, $7)
       ON CONFLICT (owner_id, method, route, key) DO UPDATE
       SET salt = excluded.salt, body_hash = excluded.body_hash, status = NULL, resource = NULL, created_at = excluded.created_at
       WHERE idempotency_keys.created_at < $8`,
      [input.ownerId, input.method, input.route, input.key, input.salt, input.bodyHash, input.at, input.expiredBefore],
    )
    if (claimed === 1) return null
    const [row] = await this.#database.query<{ salt: Uint8Array | null; body_hash: Uint8Array | null; resource: Kept | null }>(
      'SELECT salt, body_hash, resource FROM idempotency_keys WHERE owner_id = $1::uuid AND method = $2 AND route = $3 AND key = $4',
      [input.ownerId, input.method, input.route, input.key],
    )
    if (!row) throw new RowCountError('read idempotency key', 1, 0)
    const { salt, body_hash: bodyHash, resource: kept } = row
    return { hash: salt && bodyHash && { salt, bodyHash }, kept }
  }

  async isKept(name: KeyName): Promise<boolean> {
    const rows = await this.#database.query(
      'SELECT 1 FROM idempotency_keys WHERE owner_id = $1::uuid AND method = $2 AND route = $3 AND key = $4',
      [name.ownerId, name.method, name.route, name.key],
    )
    return rows.length > 0
  }

  async settle(input: Parameters<IdempotencyStore['settle']>[0]): Promise<void> {
    const written = await this.#database.execute(
      `UPDATE idempotency_keys SET status = $5, resource = $6::jsonb WHERE owner_id = $1::uuid AND method = $2 AND route = $3 AND key = $4`,
      [input.ownerId, input.method, input.route, input.key, input.status, input.kept === null ? null : JSON.stringify(input.kept)],
    )
    if (written !== 1) throw new RowCountError('settle idempotency key', 1, written)
  }

  async removeBefore(before: Date): Promise<void> {
    await this.#database.client.idempotency_keys.deleteMany({ where: { created_at: { lt: before } } })
  }
}
