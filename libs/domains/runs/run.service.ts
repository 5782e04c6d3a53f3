import { LingtaiError } from '#contracts'
import type { CommandAccepted, RunView } from '#contracts'
import type { Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { Fanout } from '#kernel/ports/fanout'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { commandChannel } from '#runtime/turn/run-inbox'

/** What the runs' side needs to know of trees: titles of those that hold a seat. */
export interface TreeTitles {
  title(ownerId: string, treeId: string): Promise<string | null>
}

export type RunServiceDeps = {
  unitOfWork: UnitOfWork
  runs: RunStore
  contents: ContentStore
  log: EventLog
  fanout: Fanout
  trees: TreeTitles
  ids: Ids
  /** How many interjections may wait for one run. */
  maxSteers(): Promise<number>
  /** Ends a run that waits, in the queue or for a person; false when it has the seat by now. */
  endQueued(run: RunRow): Promise<boolean>
}

/** Runs as their owner sees and commands them. Commands are durable when accepted; the run's owner takes them in (decision 16). */
export class RunService {
  readonly #deps: RunServiceDeps

  constructor(deps: RunServiceDeps) {
    this.#deps = deps
  }

  async get(ownerId: string, runId: string): Promise<RunView> {
    return this.view(await this.row(ownerId, runId))
  }

  async row(ownerId: string, runId: string): Promise<RunRow> {
    const run = await this.#deps.runs.find(ownerId, runId)
    if (!run) throw new LingtaiError('not_found')
    return run
  }

  async list(options: Parameters<RunStore['list']>[0]): Promise<{ items: RunView[]; next_cursor: string | null; rows: RunRow[] }> {
    const rows = await this.#deps.runs.list({ ...options, limit: options.limit + 1 })
    const page = rows.slice(0, options.limit)
    const last = page.at(-1)
    return {
      rows: page,
      items: await Promise.all(page.map((run) => this.view(run))),
      next_cursor: rows.length > options.limit && last ? `${last.requested_at.toISOString()}_${last.id}` : null,
    }
  }

  async view(run: RunRow): Promise<RunView> {
    const { runs, log, trees } = this.#deps
    const position = await runs.ahead(run)
    const holder = position > 0 ? await runs.seatHolder(run.character_id) : null
    const head = await log.head(`run:${run.id}`)
    return {
      id: run.id,
      kind: run.kind,
      state: run.state,
      reason: run.reason,
      cancelling: run.ended_at === null && (await runs.openCommands(run.id)).some(({ kind }) => kind === 'cancel'),
      character_id: run.character_id,
      tree_id: run.tree_id,
      question_id: run.question_id,
      candidate_id: run.candidate_id,
      queue_position: position,
      seat_held_by: holder && {
        run_id: holder.id,
        tree_id: holder.tree_id,
        tree_title: holder.tree_id === null ? null : await trees.title(run.owner_id, holder.tree_id),
      },
      requested_at: run.requested_at.toISOString(),
      started_at: run.started_at?.toISOString() ?? null,
      ended_at: run.ended_at?.toISOString() ?? null,
      last_seq: head?.seq ?? 0,
    }
  }

  /** Idempotent: cancelling a run that has ended, or that is being cancelled, changes nothing. */
  async cancel(ownerId: string, runId: string): Promise<CommandAccepted> {
    const { unitOfWork, runs, ids, fanout, endQueued } = this.#deps
    const commandId = await unitOfWork.run(async () => {
      const run = await runs.lock(ownerId, runId)
      if (!run) throw new LingtaiError('not_found')
      const open = (await runs.openCommands(runId)).find((command) => command.kind === 'cancel')
      if (open || run.ended_at !== null) return open?.id ?? runId
      const id = ids.next()
      await runs.insertCommand({ id, run_id: runId, owner_id: ownerId, kind: 'cancel', content_id: null })
      unitOfWork.afterCommit(() => fanout.publish(commandChannel(runId), 'cancel'))
      return id
    })
    const run = await this.row(ownerId, runId)
    // What went out and never answered keeps the run: it is cancelled when that is known, and not said to be before (case E12).
    const waits = run.state === 'queued' || (run.state === 'suspended' && run.reason !== 'reconcile_required')
    if (waits) await endQueued(run)
    return { command_id: commandId, run: await this.get(ownerId, runId) }
  }

  /** An interjection for the next turn of a run (插话): durable, bounded. */
  async steer(ownerId: string, runId: string, text: string): Promise<CommandAccepted> {
    const { unitOfWork, runs, contents, ids, fanout, maxSteers } = this.#deps
    return unitOfWork.run(async () => {
      const run = await runs.lock(ownerId, runId)
      if (!run) throw new LingtaiError('not_found')
      if (run.ended_at !== null) throw new LingtaiError('run_ended')
      if ((await runs.countOpenSteers(runId)) >= (await maxSteers())) throw new LingtaiError('steers_full')
      const content = await contents.put({ owner_id: ownerId, media_type: 'text/plain', content: text })
      const id = ids.next()
      await runs.insertCommand({ id, run_id: runId, owner_id: ownerId, kind: 'steer', content_id: content.id })
      unitOfWork.afterCommit(() => fanout.publish(commandChannel(runId), 'steer'))
      return { command_id: id, run: await this.view(run) }
    })
  }
}
