import { LingtaiError } from '#contracts'
import type { EventPayload, Explanation, ProjectedContext } from '#contracts'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunRow } from '#kernel/ports/run-store'
import { replayRequest } from '#runtime/projection/rebuild-request'
import type { Replayed } from '#runtime/projection/rebuild-request'
import { explainProjection } from '#runtime/projection/explain'
import type { ContextSources } from '#runtime/turn/context-sources'
import { loadReferences } from '#runtime/turn/load-references'

type Recorded = {
  projected: EventPayload<'context.projected'>
  requested: EventPayload<'llm.requested'> | null
  usage: Explanation['usage']
  turns: number
}

export type ReplayDeps = { log: EventLog; contents: ContentStore; sources: Pick<ContextSources, 'range'>; demoModel: string | null }

/** What a model saw, rebuilt from the record: the explanation for its owner, the bytes for an admin (M10). */
export class ReplayService {
  readonly #deps: ReplayDeps

  constructor(deps: ReplayDeps) {
    this.#deps = deps
  }

  async explain(run: RunRow, turn?: number): Promise<Explanation> {
    const { recorded, replayed, loaded } = await this.#replay(run, turn)
    const { projected, requested, usage, turns } = recorded
    const model = requested?.model ?? 'other'
    return {
      run_id: run.id,
      turn: projected.turn,
      turns,
      model,
      demo: this.#deps.demoModel === model,
      ...explainProjection({ projected, rebuilt: replayed.rebuilt, textOf: (contentId) => loaded.contents.get(contentId)?.body ?? null }),
      usage,
      rebuilt: replayed.result,
      request_digest: requested?.request_digest ?? replayed.rebuiltDigest,
      recall_audit_id: projected.recall_audit_id,
    }
  }

  async context(run: RunRow, turn?: number): Promise<ProjectedContext> {
    const { recorded, replayed } = await this.#replay(run, turn)
    return {
      run_id: run.id,
      turn: recorded.projected.turn,
      body: replayed.bodyText,
      request_digest: recorded.requested?.request_digest ?? replayed.rebuiltDigest,
      rebuilt_digest: replayed.rebuiltDigest,
      result: replayed.result,
    }
  }

  /** Every context that a run was given, rebuilt and compared. */
  async everyTurn(run: RunRow): Promise<{ turn: number; result: ProjectedContext['result'] }[]> {
    const events = await this.#deps.log.read(`run:${run.id}`, { types: ['llm.requested'] })
    const turns = new Set(events.map((event) => (event.record.payload as EventPayload<'llm.requested'>).turn))
    const results: { turn: number; result: ProjectedContext['result'] }[] = []
    for (const turn of turns) results.push({ turn, result: (await this.#replay(run, turn)).replayed.result })
    return results
  }

  async #replay(
    run: RunRow,
    turn: number | undefined,
  ): Promise<{ recorded: Recorded; replayed: Replayed; loaded: Awaited<ReturnType<typeof loadReferences>> }> {
    const recorded = await this.#recorded(run, turn)
    const loaded = await loadReferences({
      projected: recorded.projected,
      ownerId: run.owner_id,
      contents: this.#deps.contents,
      sources: this.#deps.sources,
    })
    const replayed = replayRequest({
      projected: recorded.projected,
      recordedDigest: recorded.requested?.request_digest ?? '',
      loader: loaded.loader,
    })
    return { recorded, replayed, loaded }
  }

  async #recorded(run: RunRow, turn: number | undefined): Promise<Recorded> {
    const events = await this.#deps.log.read(`run:${run.id}`, { types: ['context.projected', 'llm.requested', 'llm.completed'] })
    const records = events.map((event) => event.record)
    const projections = records
      .filter((record) => record.type === 'context.projected')
      .map((record) => record.payload as EventPayload<'context.projected'>)
    const projected = turn === undefined ? projections.at(-1) : projections.find((projection) => projection.turn === turn)
    if (!projected) throw new LingtaiError('not_found', 'No context was projected for this run and turn.')
    const requested = records
      .filter((record) => record.type === 'llm.requested')
      .map((record) => record.payload as EventPayload<'llm.requested'>)
      .findLast((payload) => payload.turn === projected.turn)
    const completed = records
      .filter((record) => record.type === 'llm.completed')
      .map((record) => record.payload as EventPayload<'llm.completed'>)
      .find((payload) => payload.effect_id === requested?.effect_id)
    return {
      projected,
      requested: requested ?? null,
      usage: completed
        ? { prompt_tokens: completed.prompt_tokens, completion_tokens: completed.completion_tokens, estimated: completed.estimated }
        : null,
      turns: projections.length,
    }
  }
}
