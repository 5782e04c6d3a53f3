import type { Checkpoint, CheckpointStore } from '#kernel/ports/approval-store'
import type { Database } from './database.ts'
import { RowCountError } from './tree.repository.ts'

/** Checkpoints of suspended runs in Postgres. */
export class CheckpointRepository implements CheckpointStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async write(checkpoint: Checkpoint): Promise<void> {
    const rows = await this.#database.execute(
      `INSERT INTO checkpoints (id, owner_id, run_id, event_offset, reducer_version, state, spent_wall_ms)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4, $5, $6::jsonb, $7)`,
      [
        checkpoint.id,
        checkpoint.owner_id,
        checkpoint.run_id,
        checkpoint.event_offset,
        checkpoint.reducer_version,
        JSON.stringify(checkpoint.state),
        checkpoint.spent_wall_ms,
      ],
    )
    if (rows !== 1) throw new RowCountError('write checkpoint', 1, rows)
  }

  async latest(runId: string): Promise<Checkpoint | null> {
    const [row] = await this.#database.query<Checkpoint>(
      `SELECT id, owner_id, run_id, event_offset, reducer_version, state, spent_wall_ms FROM checkpoints
       WHERE run_id = $1::uuid ORDER BY event_offset DESC LIMIT 1`,
      [runId],
    )
    return row ?? null
  }
}
