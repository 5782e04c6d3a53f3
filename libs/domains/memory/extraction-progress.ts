import { LingtaiError } from '#contracts'
import type { ExtractionView } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { ExtractionRow, ExtractionStore } from './ports.ts'

export type ExtractionProgressDeps = {
  unitOfWork: UnitOfWork
  extractions: ExtractionStore
  log: EventLog
  clock: Clock
  /** Has it done by a job, once the unit of work has committed. */
  enqueue(extraction: { id: string; ownerId: string }): Promise<void>
}

/** Extractions as their owners see them: how far each has come, and what was given up taken up again. */
export class ExtractionProgress {
  readonly #deps: ExtractionProgressDeps

  constructor(deps: ExtractionProgressDeps) {
    this.#deps = deps
  }

  /** How far it has come, for its owner. Throws not_found. */
  async view(ownerId: string, canonizationId: string): Promise<ExtractionView> {
    const place = await this.#deps.extractions.place(canonizationId)
    if (place?.owner_id !== ownerId) throw new LingtaiError('not_found')
    return viewOf(canonizationId, await this.#deps.extractions.read(canonizationId))
  }

  /**
   * Tries again what was given up, from where it stood; does nothing where it is under way. Throws not_found; wrong_state for what is finished,
   * and where nothing live is left to remember from.
   */
  async takeUp(ownerId: string, canonizationId: string): Promise<ExtractionView> {
    const { unitOfWork, extractions, log, clock, enqueue } = this.#deps
    return unitOfWork.run(async () => {
      const place = await extractions.place(canonizationId)
      if (place?.owner_id !== ownerId) throw new LingtaiError('not_found')
      const range = await extractions.lockRange(canonizationId)
      if (!range) throw new LingtaiError('wrong_state', 'Nothing live is left to remember from.')
      const now = clock.now()
      const row = await extractions.lock(canonizationId, range, now)
      if (row.outcome === 'finished') throw new LingtaiError('wrong_state', 'It has been remembered.')
      if (row.outcome === 'running') return viewOf(canonizationId, row)
      const next: ExtractionRow = { ...row, outcome: 'running', code: null }
      await log.append({
        stream: `memory:${range.character_id}`,
        ownerId,
        events: [
          {
            type: 'extraction.taken_up',
            payload: { canonization_id: canonizationId, code: row.code ?? 'other' },
            actor: 'owner',
            at: now.toISOString(),
            cause: { tag: 'memory.take_up' },
            character_id: range.character_id,
          },
        ],
      })
      await extractions.save(canonizationId, next, now)
      await enqueue({ id: canonizationId, ownerId })
      return viewOf(canonizationId, next)
    })
  }
}

/** What nobody has begun with is under way: its job waits. */
function viewOf(canonizationId: string, row: ExtractionRow | null): ExtractionView {
  const { outcome, code, proposals, stored, dropped } = row ?? { outcome: 'running', code: null, proposals: 0, stored: 0, dropped: 0 }
  return { canonization_id: canonizationId, outcome, code, proposals, stored, dropped }
}
