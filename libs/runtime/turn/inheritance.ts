import { meetTrust } from '#contracts'
import type { EventRecord, Trust } from '#contracts'
import type { ContentStore, StoredContent } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import { contextTrust } from './context-trust.ts'
import { foldAnswer } from './fold-answer.ts'
import type { FoldInsert, FoldSegment } from './fold-answer.ts'
import { insertsOf } from './inserts.ts'
import { readStream } from './read-stream.ts'
import type { SaidSegment } from './run-so-far.ts'

/** How many runs may follow each other as one answer: each reads what all before it did. */
export const CONTINUATIONS_MAX = 16

/** What a run begins with that goes on with another one: its words, what it did between them, and what it saw. */
export type Inheritance = { segments: readonly SaidSegment[]; inserts: readonly FoldInsert[]; trust: Trust; parts: number }

type Deps = { log: EventLog; runs: Pick<RunStore, 'get'>; contents: ContentStore }

/** The runs that this one goes on with, newest first; none for most. */
export async function lineageOf(run: Pick<RunRow, 'continues_run_id'>, runs: Pick<RunStore, 'get'>): Promise<RunRow[]> {
  const lineage: RunRow[] = []
  let next = run.continues_run_id
  while (next !== null && lineage.length <= CONTINUATIONS_MAX) {
    const former = await runs.get(next)
    if (!former) break
    lineage.push(former)
    next = former.continues_run_id
  }
  return lineage
}

/**
 * The beginning of an answer whose run ran out of budget or was cut short by its process, for the run that goes on with it (K5, K6); null for
 * a run that goes on with none, and where its words were erased meanwhile: then it begins anew.
 */
export async function inheritanceOf(run: RunRow, deps: Deps): Promise<Inheritance | null> {
  const lineage = await lineageOf(run, deps.runs)
  if (lineage.length === 0) return null
  const inserts = await insertsOfLineage(lineage, deps)
  const candidates = lineage.flatMap(({ candidate_id: id }) => id ?? [])
  const stored = await deps.contents.get(candidates)
  // The newest that said anything holds the words of all before it.
  const answer = candidates.map((id) => stored.get(id)).find((content) => content !== undefined)
  if (answer?.erased) return null
  const segments = answer ? segmentsOf(answer) : []
  const { layout } = foldAnswer(segments, inserts.all)
  return {
    segments: segments.map((segment, index) => ({ ...segment, part: layout.segments?.[index]?.part ?? 0 })),
    inserts: inserts.all,
    trust: inserts.trust,
    parts: layout.parts.length,
  }
}

/** What stands between the words of a run, that of the runs before it included. `records`: its own stream. */
export async function insertsOfRun(
  run: Pick<RunRow, 'continues_run_id'>,
  records: readonly EventRecord[],
  deps: Deps,
): Promise<FoldInsert[]> {
  const own = await insertsOf(records, deps.contents)
  if (run.continues_run_id === null) return own
  const inherited = await insertsOfLineage(await lineageOf(run, deps.runs), deps)
  return [...inherited.all, ...own]
}

async function insertsOfLineage(lineage: readonly RunRow[], { log, contents }: Deps): Promise<{ all: FoldInsert[]; trust: Trust }> {
  const all: FoldInsert[] = []
  const trusts: Trust[] = []
  for (const former of lineage.toReversed()) {
    const records = (await readStream(log, `run:${former.id}`)).map(({ record }) => record)
    all.push(...(await insertsOf(records, contents)))
    trusts.push(contextTrust(records) ?? 'trusted')
  }
  return { all: withoutOpenCalls(all), trust: meetTrust(trusts) }
}

/** A call that the end came before has no result, and a conversation with such a call is refused by providers: the model proposes it anew. */
function withoutOpenCalls(inserts: readonly FoldInsert[]): FoldInsert[] {
  const answered = new Set(inserts.flatMap(({ kind, action }) => (kind === 'tool_result_ref' && action ? [action.action_id] : [])))
  return inserts.filter(({ kind, action }) => kind !== 'tool_call' || (action !== null && answered.has(action.action_id)))
}

/** The pieces of a sealed answer as they came, with their salts: the digests of the deltas stay what they are. */
function segmentsOf({ body, layout }: StoredContent): FoldSegment[] {
  return (layout?.segments ?? []).map(({ part, from, to, salt }) => ({
    kind: layout?.parts[part]?.kind === 'reasoning' ? 'reasoning' : 'text',
    body: (body ?? '').slice(from, to),
    salt: Buffer.from(salt, 'base64'),
  }))
}
