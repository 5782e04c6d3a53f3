import type { EventRecord, EventType, RunStreamEvent } from '#contracts'
import { eventDictionary, EventTypeName } from '#contracts'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import { toStreamEvent } from '#runtime/turn/stream-event'

const publicTypes = EventTypeName.options.filter((type) => eventDictionary[type].visibility === 'public')

/** Public events read from the log at once, so that a reader is never owed more than a page in memory. */
const PAGE = 500

/**
 * The public events of a run from the log: what a stream was, is and will be, whoever reads it and whenever (spec/6 "SSE"). Text comes from
 * the segments while the run lives and from the folded answer afterwards: the same characters (case T7).
 */
export class RunStreamReader {
  readonly #log: EventLog
  readonly #runs: RunStore
  readonly #contents: ContentStore

  constructor({ log, runs, contents }: { log: EventLog; runs: RunStore; contents: ContentStore }) {
    this.#log = log
    this.#runs = runs
    this.#contents = contents
  }

  /** One page of public events after a sequence number, in order; `more` when the log goes on behind it. */
  async after(run: RunRow, seq: number): Promise<{ events: RunStreamEvent[]; more: boolean }> {
    const page = await this.#log.read(`run:${run.id}`, { after: seq, types: publicTypes, limit: PAGE })
    const shown = page.map((event) => event.record)
    const texts = await this.#texts(run, shown)
    let previous = seq === 0 ? 0 : await this.#publicSeqUpTo(run.id, seq)
    const events = shown.flatMap((record) => {
      const event = toStreamEvent({ runId: run.id, record, prevSeq: previous, texts })
      previous = record.seq
      return event ? [event] : []
    })
    return { events, more: page.length === PAGE }
  }

  /** The newest public sequence number of a run, 0 for none. */
  async lastPublicSeq(runId: string): Promise<number> {
    const head = await this.#log.head(`run:${runId}`)
    return head ? this.#publicSeqUpTo(runId, head.seq) : 0
  }

  /** Internal events stand between public ones, never many: a window back from `seq` is enough. */
  async #publicSeqUpTo(runId: string, seq: number): Promise<number> {
    const records = await this.#log.read(`run:${runId}`, { after: Math.max(0, seq - PAGE), types: publicTypes, limit: PAGE })
    return records.findLast((event) => event.record.seq <= seq)?.record.seq ?? 0
  }

  async #texts(run: RunRow, records: readonly EventRecord[]) {
    if (!records.some(hasText)) return { segment: nothing, content: () => null }
    const ownIds = records.flatMap(({ payload }) => (typeof payload['content_id'] === 'string' ? [payload['content_id']] : []))
    const contents = await this.#contents.get([...ownIds, ...(run.candidate_id === null ? [] : [run.candidate_id])])
    const answer = run.candidate_id === null ? undefined : contents.get(run.candidate_id)
    const living = answer ? [] : await this.#runs.segments(run.id)
    // Between the two reads the answer may have been folded: then its content is there now.
    const folded =
      answer ??
      (living.length === 0 && run.candidate_id !== null ? (await this.#contents.get([run.candidate_id])).get(run.candidate_id) : undefined)
    return {
      segment: (ordinal: number) => {
        const segment = living[ordinal]
        if (segment) return { kind: segment.kind, part: segment.part, text: segment.body }
        const range = folded?.layout?.segments?.[ordinal]
        const part = range === undefined ? undefined : folded?.layout?.parts[range.part]
        if (!range || !part || !folded || folded.body === null) return nothing()
        const kind = part.kind === 'reasoning' ? ('reasoning' as const) : ('text' as const)
        return { kind, part: range.part, text: folded.body.slice(range.from, range.to) }
      },
      content: (contentId: string) => contents.get(contentId)?.body ?? null,
    }
  }
}

/** Public events whose text lies in contents. */
const withText: ReadonlySet<EventType> = new Set<EventType>(['llm.delta', 'steer.received', 'tool.executed'])

function hasText({ type, payload }: EventRecord): boolean {
  return withText.has(type) || (type === 'run.started' && payload['inherited'] !== undefined)
}

function nothing(): { kind: 'text'; part: number; text: null } {
  return { kind: 'text', part: 0, text: null }
}
