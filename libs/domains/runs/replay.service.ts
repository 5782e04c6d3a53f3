import { LingtaiError } from '#contracts'
import type { EventPayload, Explanation, ProjectedContext } from '#contracts'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import { replayCommands } from '#kernel/reducer/replay-commands'
import type { CommandReplay } from '#kernel/reducer/replay-commands'
import { replayRequest } from '#runtime/projection/rebuild-request'
import type { RecordedRewrite, Replayed } from '#runtime/projection/rebuild-request'
import { explainProjection } from '#runtime/projection/explain'
import type { ContextSources } from '#runtime/turn/context-sources'
import { loadReferences } from '#runtime/turn/load-references'
import { readStream } from '#runtime/turn/read-stream'

/** A context that was projected, what listeners changed of it, what was then requested with it, and what that cost. */
type Recorded = {
  projected: EventPayload<'context.projected'>
  rewrites: (EventPayload<'rewrite'> & RecordedRewrite)[]
  requested: EventPayload<'llm.requested'> | null
  usage: Explanation['usage']
}

export type ReplayDeps = {
  log: EventLog
  contents: ContentStore
  runs: Pick<RunStore, 'segments'>
  sources: Pick<ContextSources, 'range'>
  demoModel: string | null
}

/** What a model saw, rebuilt from the record: the explanation for its owner, the bytes for an admin (M10). */
export class ReplayService {
  readonly #deps: ReplayDeps

  constructor(deps: ReplayDeps) {
    this.#deps = deps
  }

  async explain(run: RunRow, turn?: number): Promise<Explanation> {
    const contexts = await this.#contexts(run)
    const recorded = contextOf(contexts, turn)
    const { replayed, loaded } = await this.#replay(run, recorded)
    const { projected, requested, usage } = recorded
    const model = requested?.model ?? 'other'
    return {
      run_id: run.id,
      turn: projected.turn,
      turns: new Set(contexts.map((context) => context.projected.turn)).size,
      model,
      demo: this.#deps.demoModel === model,
      ...explainProjection({ projected, rebuilt: replayed.rebuilt, textOf: (contentId) => loaded.contents.get(contentId)?.body ?? null }),
      ...(recorded.rewrites.length === 0
        ? {}
        : { rewrites: recorded.rewrites.map(({ plugin, plugin_version, reference }) => ({ plugin, plugin_version, reference })) }),
      usage,
      rebuilt: replayed.result,
      request_digest: requested?.request_digest ?? replayed.rebuiltDigest,
      recall_audit_id: projected.recall_audit_id,
    }
  }

  async context(run: RunRow, turn?: number): Promise<ProjectedContext> {
    const recorded = contextOf(await this.#contexts(run), turn)
    const { replayed } = await this.#replay(run, recorded)
    return {
      run_id: run.id,
      turn: recorded.projected.turn,
      body: replayed.bodyText,
      request_digest: recorded.requested?.request_digest ?? replayed.rebuiltDigest,
      rebuilt_digest: replayed.rebuiltDigest,
      result: replayed.result,
    }
  }

  /** Every context that was requested with, rebuilt and compared; a turn has more than one where the endpoint refused how it was asked. */
  async everyContext(run: RunRow): Promise<{ turn: number; result: ProjectedContext['result'] }[]> {
    const results: { turn: number; result: ProjectedContext['result'] }[] = []
    for (const recorded of await this.#contexts(run)) {
      if (recorded.requested === null) continue
      const { replayed } = await this.#replay(run, recorded)
      results.push({ turn: recorded.projected.turn, result: replayed.result })
    }
    return results
  }

  /** The run's commands through the loop again, compared event by event with the record (Reproducible, decision 15). */
  async commands(run: RunRow): Promise<CommandReplay> {
    const { log, contents, runs } = this.#deps
    const stored = await readStream(log, `run:${run.id}`)
    const answer = run.candidate_id === null ? undefined : (await contents.get([run.candidate_id])).get(run.candidate_id)
    const living = answer ? [] : await runs.segments(run.id)
    const layout = answer?.layout
    return replayCommands({
      candidateId: run.candidate_id,
      records: stored.map(({ record }) => record),
      kindOf: (ordinal) => {
        const range = layout?.segments?.[ordinal]
        const kind = living[ordinal]?.kind ?? (range ? layout?.parts[range.part]?.kind : undefined)
        return kind === 'reasoning' ? 'reasoning' : 'text'
      },
    })
  }

  async #replay(run: RunRow, recorded: Recorded): Promise<{ replayed: Replayed; loaded: Awaited<ReturnType<typeof loadReferences>> }> {
    const loaded = await loadReferences({
      projected: recorded.projected,
      rewrites: recorded.rewrites,
      ownerId: run.owner_id,
      contents: this.#deps.contents,
      sources: this.#deps.sources,
    })
    const replayed = replayRequest({
      projected: recorded.projected,
      rewrites: recorded.rewrites,
      recordedDigest: recorded.requested?.request_digest ?? null,
      loader: loaded.loader,
    })
    return { replayed, loaded }
  }

  /** A run's contexts as recorded, oldest first. What is requested belongs to the context before it. */
  async #contexts(run: RunRow): Promise<Recorded[]> {
    const events = await this.#deps.log.read(`run:${run.id}`, { types: ['context.projected', 'rewrite', 'llm.requested', 'llm.completed'] })
    const contexts: Recorded[] = []
    for (const { record } of events) {
      const last = contexts.at(-1)
      if (record.type === 'context.projected') {
        contexts.push({ projected: record.payload as EventPayload<'context.projected'>, rewrites: [], requested: null, usage: null })
      } else if (last && record.type === 'rewrite') {
        last.rewrites.push({ ...(record.payload as EventPayload<'rewrite'>), digest: record.content_digests[0]?.digest ?? '' })
      } else if (last && record.type === 'llm.requested') {
        last.requested = record.payload as EventPayload<'llm.requested'>
      } else if (last && record.type === 'llm.completed') {
        const { prompt_tokens, completion_tokens, estimated } = record.payload as EventPayload<'llm.completed'>
        last.usage = { prompt_tokens, completion_tokens, estimated }
      }
    }
    return contexts
  }
}

/** The context that a turn was answered from, the last turn's unless one is named: the last of those tried. Throws not_found. */
function contextOf(contexts: readonly Recorded[], turn: number | undefined): Recorded {
  const found = contexts.findLast(({ projected }) => turn === undefined || projected.turn === turn)
  if (!found) throw new LingtaiError('not_found', 'No context was projected for this run and turn.')
  return found
}
