import type { EmbeddingCause } from '#kernel/ports/embedder'
import type {
  EmbeddingLedger,
  EmbeddingLimits,
  EmbeddingSettlement,
  LeftEmbeddingRequest,
  NewEmbeddingRequest,
} from '#kernel/ports/embedding-ledger'
import type { Database } from './database.ts'

/** Embedding requests in Postgres: intents and terminals as conditional writes (K3). */
export class EmbeddingRequestRepository implements EmbeddingLedger {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async limits({ ownerId, characterId, runId }: EmbeddingCause): Promise<EmbeddingLimits> {
    const [[flags], cost] = await Promise.all([
      this.#database.query<{ killed: boolean }>(
        `SELECT EXISTS (SELECT 1 FROM kill_flags WHERE scope = 'global' OR (scope = 'owner' AND scope_id = $1::uuid)
                        OR (scope = 'character' AND scope_id = $2::uuid)) AS killed`,
        [ownerId, characterId],
      ),
      runId === null ? null : this.#cost(runId),
    ])
    return { killed: flags?.killed !== false, cost }
  }

  /** The bound stands in the run's own record, as its loop has it; what it spent is there too, and open reservations count. */
  async #cost(runId: string): Promise<EmbeddingLimits['cost']> {
    const [row] = await this.#database.query<{ bound: number | null; spent: number }>(
      `WITH started AS (
         SELECT (canonical::jsonb #>> '{cause,readings,limits.max_cost_micros}')::bigint AS bound
         FROM events WHERE stream = 'run:' || $1 AND type = 'run.started' ORDER BY seq LIMIT 1
       ), effects AS (
         SELECT coalesce(max(cost) FILTER (WHERE type = 'budget.settled'), max(cost)) AS cost
         FROM (
           SELECT type, payload ->> 'effect_id' AS effect_id, coalesce((payload ->> 'cost_micros')::bigint, 0) AS cost
           FROM events WHERE stream = 'run:' || $1 AND type IN ('budget.reserved', 'budget.settled') AND (SELECT bound FROM started) IS NOT NULL
         ) e GROUP BY effect_id
       )
       SELECT bound, (coalesce((SELECT sum(cost) FROM effects), 0)
                      + coalesce((SELECT sum(coalesce(charged_micros, reserved_micros)) FROM embedding_requests WHERE run_id = $1::uuid), 0))::bigint AS spent
       FROM started`,
      [runId],
    )
    return row === undefined || row.bound === null ? null : { boundMicros: row.bound, spentMicros: row.spent }
  }

  async open(request: NewEmbeddingRequest): Promise<void> {
    await this.#database.execute(
      `INSERT INTO embedding_requests (id, owner_id, character_id, run_id, purpose, texts, reserved_tokens, reserved_micros, salt, holder, due_at)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5, $6, $7, $8, $9, $10, clock_timestamp() + $11 * interval '1 millisecond')`,
      [
        request.id,
        request.ownerId,
        request.characterId,
        request.runId,
        request.purpose,
        request.texts,
        request.reservedTokens,
        request.reservedMicros,
        request.salt,
        request.holder,
        request.dueInMs,
      ],
    )
  }

  async settle(id: string, { state, code, chargedTokens, chargedMicros }: EmbeddingSettlement): Promise<boolean> {
    const moved = await this.#database.execute(
      `UPDATE embedding_requests SET state = $2, code = $3, charged_tokens = $4, charged_micros = $5, settled_at = clock_timestamp()
       WHERE id = $1::uuid AND state = 'requested'`,
      [id, state, code, chargedTokens, chargedMicros],
    )
    return moved === 1
  }

  async left({ aliveHolder, limit }: { aliveHolder: string | null; limit: number }): Promise<LeftEmbeddingRequest[]> {
    return this.#database.query<LeftEmbeddingRequest>(
      `SELECT id, owner_id AS "ownerId", character_id AS "characterId", run_id AS "runId", reserved_tokens AS "reservedTokens",
              reserved_micros AS "reservedMicros"
       FROM embedding_requests
       WHERE state = 'requested' AND (due_at < clock_timestamp() OR ($1::text IS NOT NULL AND holder <> $1)) ORDER BY due_at, id LIMIT $2`,
      [aliveHolder, limit],
    )
  }

  async spentBy(runId: string): Promise<number> {
    const [row] = await this.#database.query<{ spent: number }>(
      `SELECT coalesce(sum(coalesce(charged_micros, reserved_micros)), 0)::bigint AS spent FROM embedding_requests WHERE run_id = $1::uuid`,
      [runId],
    )
    return row?.spent ?? 0
  }
}
