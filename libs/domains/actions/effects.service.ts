import { LingtaiError } from '#contracts'
import type { EffectView, ReconcileEffect } from '#contracts'
import { isSettled } from '#kernel/effects/effect'
import type { Clock } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EffectLedger, EffectRow } from '#kernel/ports/effect-ledger'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'

export type EffectsDeps = {
  unitOfWork: UnitOfWork
  ledger: EffectLedger
  runs: RunStore
  contents: ContentStore
  log: EventLog
  clock: Clock
  wake(run: Pick<RunRow, 'id' | 'kind' | 'character_id'>): void
}

/** What went out and never answered, for the owner to find out about (K3: settled by a person, never sent again by itself). */
export class EffectsService {
  readonly #deps: EffectsDeps

  constructor(deps: EffectsDeps) {
    this.#deps = deps
  }

  /** Effects that wait for a person, oldest first. */
  async unknown(ownerId: string): Promise<{ items: EffectView[] }> {
    return { items: await this.#views(await this.#deps.ledger.unknown(ownerId, { limit: 200 })) }
  }

  /** Throws not_found. */
  async get(ownerId: string, effectId: string): Promise<EffectView> {
    const row = await this.#deps.ledger.find(ownerId, effectId)
    const [view] = row ? await this.#views([row]) : []
    if (!view) throw new LingtaiError('not_found')
    return view
  }

  /** The owner's word on what became of it; the same word twice is one. Throws not_found, wrong_state. */
  async reconcile(ownerId: string, effectId: string, { as }: ReconcileEffect): Promise<EffectView> {
    const { unitOfWork, ledger, runs, log, clock, wake } = this.#deps
    await unitOfWork.run(async () => {
      const known = await ledger.find(ownerId, effectId)
      const run = known ? await runs.lock(ownerId, known.run_id) : null
      if (!known || !run) throw new LingtaiError('not_found')
      const settled = await ledger.settle(effectId, as === 'done' ? 'proved_done' : 'proved_failed', {
        code: null,
        outcomeContentId: null,
        costMicros: known.cost_micros,
      })
      if (!settled) {
        const now = await ledger.find(ownerId, effectId)
        if (now?.state === `reconciled_${as}`) return
        throw new LingtaiError('wrong_state', 'Only an effect whose outcome is unknown can be settled.')
      }
      await log.append({
        stream: `confirmation:${ownerId}`,
        ownerId,
        events: [
          {
            type: 'reconciliation.decided',
            payload: { effect_id: effectId, run_id: run.id, as, by: ownerId },
            character_id: run.character_id,
            run_id: run.id,
            actor: 'owner',
            at: clock.now().toISOString(),
            cause: { tag: 'reconcile' },
          },
        ],
      })
      if (run.ended_at === null && (await runs.requeue(run.id))) unitOfWork.afterCommit(() => wake(run))
    })
    return this.get(ownerId, effectId)
  }

  async #views(rows: readonly EffectRow[]): Promise<EffectView[]> {
    const texts = await this.#deps.contents.get(rows.map((row) => row.arguments_content_id))
    return rows.map((row) => ({
      id: row.id,
      character_id: row.character_id,
      run_id: row.run_id,
      action_id: row.action_id,
      tool: row.tool,
      capability: row.capability,
      consequence: row.consequence,
      state: row.state,
      code: row.code,
      arguments: texts.get(row.arguments_content_id)?.body ?? null,
      created_at: row.created_at.toISOString(),
      // The ledger's own time of an unknown outcome is when it was lost.
      settled_at: (isSettled(row.state) && row.settled_at?.toISOString()) || null,
    }))
  }
}
