import { eventDictionary } from '#contracts'
import type { EventPayload, EventRecord } from '#contracts'
import type { CheckpointStore } from '#kernel/ports/approval-store'
import type { Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog, SegmentRow, StoredEvent } from '#kernel/ports/event-log'
import type { Fanout } from '#kernel/ports/fanout'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { ChainedEvent } from '#kernel/record/chain'
import type { RunAction } from '#kernel/reducer/actions'
import type { RunCommand } from '#kernel/reducer/commands'
import { recoverState } from '#kernel/reducer/recover'
import { reduce } from '#kernel/reducer/reduce'
import { replayCommands, UnreadableStepError } from '#kernel/reducer/replay-commands'
import { REDUCER_VERSION } from '#kernel/reducer/state'
import type { RunLoopState } from '#kernel/reducer/state'
import { causeOf } from './cause.ts'
import { contextTrust } from './context-trust.ts'
import { insertsOfRun } from './inheritance.ts'
import { readStream } from './read-stream.ts'
import { RunPublisher } from './run-publisher.ts'
import type { RunSealer } from './run-sealer.ts'
import type { RunSuspender } from './run-suspender.ts'

export type UndrivenRunDeps = {
  log: EventLog
  runs: RunStore
  contents: ContentStore
  sealer: RunSealer
  suspender: RunSuspender
  actions: { checkpoints: CheckpointStore }
  fanout: Fanout
  ids: Pick<Ids, 'next'>
}

/** What may happen to a run that nobody drives. `lease_expired` and `fail` charge what the record shows as reserved. */
export type UndrivenCommand = Extract<RunCommand, { tag: 'cancel' | 'queue_expired' | 'fail' }> | { tag: 'lease_expired' }

/** `null`: it has ended, or is somebody else's by now, or the command changes nothing. */
export type UndrivenOutcome = 'sealed' | 'suspended' | null

type Leaving = Extract<RunAction, { type: 'seal' | 'suspend' }>

/**
 * Takes a run that nobody drives (any more) to its end, or to where another process takes it on, by what its record shows: its owner died, it
 * waited in vain, or something of ours broke. The caller holds the run's fence (M7, case Q7; `003…` §4).
 */
export async function commandUndriven(input: { run: RunRow; command: UndrivenCommand; deps: UndrivenRunDeps }): Promise<UndrivenOutcome> {
  const { run, deps } = input
  const stored = await readStream(deps.log, `run:${run.id}`)
  const last = stored.at(-1)
  if (!last) return null
  const records = stored.map((event) => event.record)
  const segments = await deps.runs.segments(run.id)
  const { state, isExact } = standingOf(run, records, segments)
  const command = completed(input.command, state, canBeTakenOn(run) && isExact ? deps.ids.next() : null)
  const action = reduce(state, command).actions.find(
    (candidate): candidate is Leaving => candidate.type === 'seal' || candidate.type === 'suspend',
  )
  if (!action) return null
  const written = await leave({ run, records, segments, last, action, command, deps })
  if (!written) return null
  if (written === 'cancelled') {
    return commandUndriven({ run, command: { tag: 'cancel', settled_tokens: state.effect?.reserved_tokens ?? 0 }, deps })
  }
  await publish({ run, records, written, deps })
  return action.type === 'seal' ? 'sealed' : 'suspended'
}

/**
 * Where the loop stands: its commands run again, which is what it was to the byte (Reproducible). What another version of the loop recorded is
 * only told from its events, which is enough to end it.
 */
function standingOf(
  run: RunRow,
  records: readonly EventRecord[],
  segments: readonly SegmentRow[],
): { state: RunLoopState; isExact: boolean } {
  const started = records.find(({ type }) => type === 'run.started')?.payload as EventPayload<'run.started'> | undefined
  if (started === undefined || started.reducer_version === REDUCER_VERSION) {
    const replayed = commandsAgain(run, records, segments)
    if (replayed?.result === 'identical') return { state: replayed.state, isExact: started !== undefined }
  }
  return { state: recoverState(run.candidate_id, records), isExact: false }
}

function commandsAgain(run: RunRow, records: readonly EventRecord[], segments: readonly SegmentRow[]) {
  try {
    return replayCommands({
      candidateId: run.candidate_id,
      records,
      kindOf: (ordinal) => (segments[ordinal]?.kind === 'reasoning' ? 'reasoning' : 'text'),
    })
  } catch (error) {
    if (error instanceof UnreadableStepError) return null
    throw error
  }
}

/** A job asks anew with a run of its own; nobody takes on the one that it asked with. */
export function canBeTakenOn({ kind }: Pick<RunRow, 'kind'>): boolean {
  return kind !== 'maintenance'
}

function completed(command: UndrivenCommand, state: RunLoopState, checkpointId: string | null): RunCommand {
  if (command.tag !== 'lease_expired') return command
  return { tag: 'lease_expired', settled_tokens: state.effect?.reserved_tokens ?? 0, checkpoint_id: checkpointId }
}

async function leave(input: {
  run: RunRow
  records: readonly EventRecord[]
  segments: readonly SegmentRow[]
  last: StoredEvent
  action: Leaving
  command: RunCommand
  deps: UndrivenRunDeps
}): ReturnType<RunSuspender['suspend']> {
  const { run, records, segments, last, action, command, deps } = input
  const head = { seq: last.record.seq, hash: last.hash }
  const cause = causeOf(command)
  if (action.type === 'suspend') {
    const spentWallMs = await spentWall(run, records, deps)
    return deps.suspender.suspend({ run, head, action, cause, contents: [], question: null, spentWallMs })
  }
  const inserts = await insertsOfRun(run, records, deps)
  return deps.sealer.seal({ run, head, action, cause, segments, inserts, trust: contextTrust(records) })
}

/** Milliseconds at work, up to the last sign of it: what its checkpoint says, and since it last began. */
async function spentWall(run: RunRow, records: readonly EventRecord[], { actions }: UndrivenRunDeps): Promise<number> {
  const checkpoint = await actions.checkpoints.latest(run.id)
  const began = records.findLast(({ type }) => type === 'run.started' || type === 'run.resumed' || type === 'run.suspended')
  const last = records.at(-1)
  const since = began && last && began.type !== 'run.suspended' ? Date.parse(last.at) - Date.parse(began.at) : 0
  return (checkpoint?.spent_wall_ms ?? 0) + Math.max(0, since)
}

async function publish(input: {
  run: RunRow
  records: readonly EventRecord[]
  written: readonly ChainedEvent[]
  deps: UndrivenRunDeps
}): Promise<void> {
  const { run, records, written, deps } = input
  const interjected = await deps.contents.get(
    written.flatMap((event) => (event.type === 'steer.received' ? [contentIdOf(event.canonical)] : [])),
  )
  new RunPublisher({
    runId: run.id,
    lastPublicSeq: lastPublicSeq(records),
    fanout: deps.fanout,
    texts: { segment: () => ({ kind: 'text', part: 0, text: null }), content: (contentId) => interjected.get(contentId)?.body ?? null },
  }).publish(written)
}

/** The newest sequence number that readers of the stream have seen; 0 for none. */
export function lastPublicSeq(records: readonly EventRecord[]): number {
  return records.findLast((record) => eventDictionary[record.type].visibility === 'public')?.seq ?? 0
}

function contentIdOf(canonical: string): string {
  const { payload } = JSON.parse(canonical) as { payload: EventPayload<'steer.received'> }
  return payload.content_id
}
