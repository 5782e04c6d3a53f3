import { LingtaiError } from '#contracts'
import type { AdminRun, ProjectedContext } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { ReplayService } from './replay.service.ts'
import type { RunService } from './run.service.ts'

/** Names beside ids, for people who look at other people's runs. */
export interface RunNames {
  names(runIds: readonly string[]): Promise<Map<string, { owner_name: string; character_name: string; tree_title: string | null }>>
}

export type AdminRunsDeps = {
  unitOfWork: UnitOfWork
  runs: RunStore
  log: EventLog
  clock: Clock
  service: RunService
  replays: ReplayService
  names: RunNames
}

/** Runs of all owners, for admins. */
export class AdminRuns {
  readonly #deps: AdminRunsDeps

  constructor(deps: AdminRunsDeps) {
    this.#deps = deps
  }

  /** Titles are their owners' words: an admin is shown those of their own conversations alone (decision 35). */
  async list(adminId: string, options: Parameters<RunStore['list']>[0]): Promise<{ items: AdminRun[]; next_cursor: string | null }> {
    const { rows, items, next_cursor } = await this.#deps.service.list(options)
    const names = await this.#deps.names.names(rows.map((run) => run.id))
    return {
      items: items.map((item, index) => {
        const ownerId = rows[index]?.owner_id ?? item.id
        const named = names.get(item.id) ?? { owner_name: '', character_name: '', tree_title: null }
        return { ...item, owner_id: ownerId, ...named, tree_title: ownerId === adminId ? named.tree_title : null }
      }),
      next_cursor,
    }
  }

  /** The projected context of any run; when it is somebody else's, its owner finds an event of it (decision 35). */
  async context(adminId: string, runId: string, turn?: number): Promise<ProjectedContext> {
    const run = await this.#deps.runs.get(runId)
    if (!run) throw new LingtaiError('not_found')
    if (run.owner_id !== adminId) await this.#noteReading(adminId, run)
    return this.#deps.replays.context(run, turn)
  }

  async #noteReading(adminId: string, run: RunRow): Promise<void> {
    const { unitOfWork, log, clock } = this.#deps
    await unitOfWork.run(() =>
      log.append({
        stream: `admin:${run.owner_id}`,
        ownerId: run.owner_id,
        events: [
          {
            type: 'content.read_by_admin',
            payload: { admin_id: adminId, owner_id: run.owner_id, run_id: run.id },
            actor: 'admin',
            at: clock.now().toISOString(),
            cause: { tag: 'admin.context' },
          },
        ],
      }),
    )
  }
}
