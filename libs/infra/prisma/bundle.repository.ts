import type { BundleRow, BundleStore } from '#domains/governance/bundles.service'
import type { Database } from './database.ts'

const columns = `b.hash, b.content, b.created_at,
  (SELECT e.accepted FROM bundle_evaluations e WHERE e.hash = b.hash ORDER BY e.seq DESC LIMIT 1) AS accepted,
  b.hash = (SELECT p.to_hash FROM bundle_promotions p ORDER BY p.seq DESC LIMIT 1) AS active`

/** Bundles in Postgres. */
export class BundleRepository implements BundleStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async keep({ hash, content, proposedBy }: Parameters<BundleStore['keep']>[0]): Promise<void> {
    await this.#database.execute('INSERT INTO bundles (hash, content, proposed_by) VALUES ($1, $2, $3::uuid) ON CONFLICT DO NOTHING', [
      hash,
      content,
      proposedBy,
    ])
  }

  async find(hash: string): Promise<BundleRow | null> {
    const [row] = await this.#database.query<BundleRow>(`SELECT ${columns} FROM bundles b WHERE b.hash = $1`, [hash])
    return row ?? null
  }

  async list(limit: number): Promise<BundleRow[]> {
    return this.#database.query<BundleRow>(`SELECT ${columns} FROM bundles b ORDER BY b.created_at DESC, b.hash LIMIT $1`, [limit])
  }

  async active(): Promise<{ hash: string; content: string } | null> {
    const [row] = await this.#database.query<{ hash: string; content: string }>(
      'SELECT b.hash, b.content FROM bundle_promotions p JOIN bundles b ON b.hash = p.to_hash ORDER BY p.seq DESC LIMIT 1',
    )
    return row ?? null
  }

  async wasActive(hash: string): Promise<boolean> {
    return (await this.#database.query('SELECT 1 FROM bundle_promotions WHERE to_hash = $1 LIMIT 1', [hash])).length > 0
  }

  async evaluate({ hash, accepted, by }: Parameters<BundleStore['evaluate']>[0]): Promise<void> {
    await this.#database.execute('INSERT INTO bundle_evaluations (hash, accepted, evaluated_by) VALUES ($1, $2, $3::uuid)', [
      hash,
      accepted,
      by,
    ])
  }

  async promote({ from, to, reason, by }: Parameters<BundleStore['promote']>[0]): Promise<boolean> {
    // One at a time: the lock is the trigger's own, taken before it looks.
    await this.#database.query(`SELECT pg_advisory_xact_lock(hashtext('bundle_promotions'))`)
    const rows = await this.#database.execute(
      `INSERT INTO bundle_promotions (from_hash, to_hash, reason, promoted_by)
       SELECT $1, $2, $3, $4::uuid
       WHERE (SELECT p.to_hash FROM bundle_promotions p ORDER BY p.seq DESC LIMIT 1) IS NOT DISTINCT FROM $1`,
      [from, to, reason, by],
    )
    return rows === 1
  }
}
