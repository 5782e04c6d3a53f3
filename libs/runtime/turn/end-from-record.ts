import { eventDictionary } from '#contracts'
import type { EventPayload, EventRecord } from '#contracts'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { Fanout } from '#kernel/ports/fanout'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { RunAction } from '#kernel/reducer/actions'
import type { RunCommand } from '#kernel/reducer/commands'
import { recoverState } from '#kernel/reducer/recover'
import { reduce } from '#kernel/reducer/reduce'
import { causeOf } from './cause.ts'
import { contextTrust } from './context-trust.ts'
import { insertsOfRun } from './inheritance.ts'
import { readStream } from './read-stream.ts'
import { RunPublisher } from './run-publisher.ts'
import type { RunSealer } from './run-sealer.ts'

export type EndFromRecordDeps = { log: EventLog; runs: RunStore; contents: ContentStore; sealer: RunSealer; fanout: Fanout }

/** How a run that nobody drives may end. `lease_expired` and `fail` charge what the record shows as reserved. */
export type EndingCommand = Extract<RunCommand, { tag: 'cancel' | 'queue_expired' | 'fail' }> | { tag: 'lease_expired' }

/**
 * Ends a run that nobody drives (any more) with what its record shows: its owner died, it waited in vain, or something of ours broke. The
 * caller holds the run's fence. False when it has ended, or is somebody else's by now (M7, case Q7).
 */
export async function endFromRecord(input: { run: RunRow; command: EndingCommand; deps: EndFromRecordDeps }): Promise<boolean> {
  const { run, deps } = input
  const stored = await readStream(deps.log, `run:${run.id}`)
  const last = stored.at(-1)
  if (!last) return false
  const records = stored.map((event) => event.record)
  const state = recoverState(run.candidate_id, records)
  const command: RunCommand =
    input.command.tag === 'lease_expired' ? { tag: 'lease_expired', settled_tokens: state.effect?.reserved_tokens ?? 0 } : input.command
  const action = reduce(state, command).actions.find(
    (candidate): candidate is Extract<RunAction, { type: 'seal' }> => candidate.type === 'seal',
  )
  if (!action) return false
  const sealed = await deps.sealer.seal({
    run,
    head: { seq: last.record.seq, hash: last.hash },
    action,
    cause: causeOf(command),
    segments: await deps.runs.segments(run.id),
    inserts: await insertsOfRun(run, records, deps),
    trust: contextTrust(records),
  })
  if (!sealed) return false
  const interjected = await deps.contents.get(
    sealed.flatMap((event) => (event.type === 'steer.received' ? contentIdsOf(event.canonical) : [])),
  )
  new RunPublisher({
    runId: run.id,
    lastPublicSeq: lastPublicSeq(records),
    fanout: deps.fanout,
    texts: { segment: () => ({ kind: 'text', part: 0, text: null }), content: (contentId) => interjected.get(contentId)?.body ?? null },
  }).publish(sealed)
  return true
}

/** The newest sequence number that readers of the stream have seen; 0 for none. */
export function lastPublicSeq(records: readonly EventRecord[]): number {
  return records.findLast((record) => eventDictionary[record.type].visibility === 'public')?.seq ?? 0
}

function contentIdsOf(canonical: string): string[] {
  const { payload } = JSON.parse(canonical) as { payload: EventPayload<'steer.received'> }
  return [payload.content_id]
}
