import type { OutboxRow, OutboxStore } from '#kernel/ports/outbox'
import type { Database } from './database.ts'

/** `outbox` in Postgres (decision 28). */
export class OutboxRepository implements OutboxStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async add(row: { id: string; ownerId: string | null; topic: string; payload: Record<string, string>; dueAt?: Date }): Promise<void> {
    await this.#database.execute(
      'INSERT INTO outbox (id, owner_id, topic, payload, due_at) VALUES ($1::uuid, $2::uuid, $3, $4::jsonb, coalesce($5, now()))',
      [row.id, row.ownerId, row.topic, JSON.stringify(row.payload), row.dueAt ?? null],
    )
  }

  async claim(id: string, seconds: number): Promise<OutboxRow | null> {
    const [row] = await this.#database.query<OutboxRow>(
      `UPDATE outbox SET claimed_until = clock_timestamp() + make_interval(secs => $2), attempts = attempts + 1
       WHERE id = $1::uuid AND closed_at IS NULL AND due_at <= clock_timestamp() AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
       RETURNING id, owner_id, topic, payload, attempts`,
      [id, seconds],
    )
    return row ?? null
  }

  async close(id: string, outcome: 'done' | 'given_up' | 'obsolete'): Promise<boolean> {
    const rows = await this.#database.execute(
      'UPDATE outbox SET closed_at = clock_timestamp(), outcome = $2, claimed_until = NULL WHERE id = $1::uuid AND closed_at IS NULL',
      [id, outcome],
    )
    return rows === 1
  }

  async fail(id: string, error: string, retryInSeconds: number, { uncounted } = { uncounted: false }): Promise<void> {
    await this.#database.execute(
      `UPDATE outbox SET last_error = $2, claimed_until = NULL, due_at = clock_timestamp() + make_interval(secs => $3),
              attempts = attempts - CASE WHEN $4 AND attempts > 0 THEN 1 ELSE 0 END
       WHERE id = $1::uuid AND closed_at IS NULL`,
      [id, error.slice(0, 500), retryInSeconds, uncounted],
    )
  }

  async open(limit: number): Promise<string[]> {
    const rows = await this.#database.query<{ id: string }>(
      `SELECT id FROM outbox WHERE closed_at IS NULL AND due_at <= clock_timestamp() AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
       ORDER BY due_at LIMIT $1`,
      [limit],
    )
    return rows.map((row) => row.id)
  }
}
