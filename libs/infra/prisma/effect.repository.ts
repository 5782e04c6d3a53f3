import { nextEffectState, statesBefore } from '#kernel/effects/effect'
import { EffectConflictError } from '#kernel/ports/effect-ledger'
import type { EffectLedger, EffectRow, NewEffect } from '#kernel/ports/effect-ledger'
import type { Database } from './database.ts'
import { RowCountError } from './tree.repository.ts'

/** How long an unsent claim stands without its owner; the fence decides, this only lets another one try (`003…` §3). */
const CLAIM_SECONDS = 60

const columns = `id, owner_id, character_id, run_id, action_id, tool, capability, consequence, constraints, resource, idempotency_key,
  tool_version, arguments_content_id, arguments_hash, reserved_micros, state, code, outcome_content_id, cost_micros, claim_holder, claim_fence, created_at, settled_at`

/** What the same intent is compared by; ids of the row itself are not part of it. */
const bound = ['run_id', 'action_id', 'tool', 'tool_version', 'capability', 'arguments_content_id', 'arguments_hash'] as const

/** Effects in Postgres: keys, claims and settlements as conditional writes (K3). */
export class EffectRepository implements EffectLedger {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async bind(effect: NewEffect): Promise<EffectRow> {
    const [inserted] = await this.#database.query<EffectRow>(
      `INSERT INTO effects (id, owner_id, character_id, run_id, action_id, tool, capability, consequence, constraints, resource, idempotency_key,
                            arguments_content_id, arguments_hash, reserved_micros, tool_version)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::uuid, $6, $7, $8, $9::text[], $10, $11, $12::uuid, $13, $14, $15)
       ON CONFLICT (owner_id, resource, idempotency_key) DO NOTHING RETURNING ${columns}`,
      [
        effect.id,
        effect.owner_id,
        effect.character_id,
        effect.run_id,
        effect.action_id,
        effect.tool,
        effect.capability,
        effect.consequence,
        [...effect.constraints],
        effect.resource,
        effect.idempotency_key,
        effect.arguments_content_id,
        effect.arguments_hash,
        effect.reserved_micros,
        effect.tool_version,
      ],
    )
    if (inserted) return inserted
    const [known] = await this.#database.query<EffectRow>(
      `SELECT ${columns} FROM effects WHERE owner_id = $1::uuid AND resource = $2 AND idempotency_key = $3`,
      [effect.owner_id, effect.resource, effect.idempotency_key],
    )
    if (!known) throw new RowCountError('bind effect', 1, 0)
    if (bound.some((key) => known[key] !== effect[key])) throw new EffectConflictError(known.id)
    return known
  }

  async find(ownerId: string, effectId: string): Promise<EffectRow | null> {
    return this.#one('owner_id = $1::uuid AND id = $2::uuid', [ownerId, effectId])
  }

  async get(effectId: string): Promise<EffectRow | null> {
    return this.#one('id = $1::uuid', [effectId])
  }

  async #one(where: string, params: string[]): Promise<EffectRow | null> {
    const [row] = await this.#database.query<EffectRow>(`SELECT ${columns} FROM effects WHERE ${where}`, params)
    return row ?? null
  }

  async claim(
    effectId: string,
    holder: string,
    { takesOver }: { takesOver: boolean } = { takesOver: false },
  ): Promise<{ fence: number } | null> {
    const [claimed] = await this.#database.query<{ fence: number }>(
      `UPDATE effects SET claim_holder = $2, claim_fence = claim_fence + 1, claim_until = clock_timestamp() + interval '${CLAIM_SECONDS} seconds'
       WHERE id = $1::uuid AND state = 'intent' AND (claim_holder IS NULL OR claim_until < clock_timestamp() OR $3)
       RETURNING claim_fence AS fence`,
      [effectId, holder, takesOver],
    )
    return claimed ?? null
  }

  async markExecuting(effectId: string, fence: number): Promise<boolean> {
    const moved = await this.#database.execute(
      `UPDATE effects SET state = 'executing', dispatched_at = clock_timestamp() WHERE id = $1::uuid AND state = 'intent' AND claim_fence = $2`,
      [effectId, fence],
    )
    return moved === 1
  }

  async release(effectId: string, fence: number): Promise<void> {
    await this.#database.execute(
      `UPDATE effects SET claim_holder = NULL, claim_until = NULL WHERE id = $1::uuid AND state = 'intent' AND claim_fence = $2`,
      [effectId, fence],
    )
  }

  async settle(
    effectId: string,
    event: Parameters<EffectLedger['settle']>[1],
    { code, outcomeContentId, costMicros }: Parameters<EffectLedger['settle']>[2],
  ): Promise<boolean> {
    const before = statesBefore(event)
    const cases = before.map((state) => `WHEN '${state}' THEN '${nextEffectState(state, event) ?? state}'`).join(' ')
    const moved = await this.#database.execute(
      `UPDATE effects SET state = CASE state ${cases} END, code = $2, outcome_content_id = $3::uuid, cost_micros = coalesce($4::bigint, cost_micros), settled_at = clock_timestamp()
       WHERE id = $1::uuid AND state = ANY ($5::text[])`,
      [effectId, code, outcomeContentId, costMicros, before],
    )
    return moved === 1
  }

  async open(runId: string): Promise<EffectRow[]> {
    return this.#database.query<EffectRow>(
      `SELECT ${columns} FROM effects WHERE run_id = $1::uuid AND state IN ('intent', 'executing', 'unknown') ORDER BY created_at, id`,
      [runId],
    )
  }

  async unknown(ownerId: string, { limit }: { limit: number }): Promise<EffectRow[]> {
    return this.#database.query<EffectRow>(
      `SELECT ${columns} FROM effects WHERE owner_id = $1::uuid AND state = 'unknown' AND consequence = 'lasting' ORDER BY created_at, id LIMIT $2`,
      [ownerId, limit],
    )
  }
}
