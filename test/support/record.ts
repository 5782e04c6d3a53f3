/** Small events and runs for the suites that try the record. */
import { chainEvents, chainHash, EMPTY_HEAD } from '#kernel/record/chain'
import type { ChainedEvent, StreamHead } from '#kernel/record/chain'
import type { NewEvent } from '#contracts'
import type { EventLog, StoredEvent } from '#kernel/ports/event-log'
import type { RunRow } from '#kernel/ports/run-store'
import type { PortTier, Stores } from './port-tier.ts'

/** An event that any run stream takes. */
export function turnStarted(turn: number): NewEvent {
  return { type: 'turn.started', payload: { turn }, actor: 'kernel', at: '2026-01-02T03:04:05.678Z', cause: { tag: 'test' } }
}

/** The next events of a run's stream, chained but not written. */
export function nextTurns(run: Pick<RunRow, 'id' | 'owner_id'>, head: StreamHead, turns: readonly number[]): ChainedEvent[] {
  return chainEvents({
    stream: `run:${run.id}`,
    ownerId: run.owner_id,
    head,
    events: turns.map((turn) => ({ ...turnStarted(turn), run_id: run.id })),
  }).chained
}

export function headAfter(events: readonly ChainedEvent[]): StreamHead {
  const last = events.at(-1)
  return last ? { seq: last.seq, hash: last.hash } : EMPTY_HEAD
}

/** Throws where a stream's stored events are not numbered from 1 without a gap, each hash over the one before. */
export async function assertWholeChain(log: EventLog, stream: string, length: number): Promise<StoredEvent[]> {
  const stored = await log.read(stream, { limit: length + 10 })
  let previous = EMPTY_HEAD.hash
  for (const [index, event] of stored.entries()) {
    if (event.record.seq !== index + 1) throw new Error(`${stream} has ${event.record.seq} where ${index + 1} should be`)
    if (Buffer.compare(event.prev_hash, previous) !== 0) throw new Error(`event ${index + 1} of ${stream} does not follow the one before`)
    if (Buffer.compare(event.hash, chainHash(previous, event.canonical)) !== 0)
      throw new Error(`event ${index + 1} of ${stream} has another hash`)
    previous = event.hash
  }
  if (stored.length !== length) throw new Error(`${stream} has ${stored.length} events instead of ${length}`)
  const head = await log.head(stream)
  if (head?.seq !== length || Buffer.compare(head.hash, previous) !== 0) throw new Error(`the head of ${stream} is elsewhere`)
  return stored
}

/** Queues a run; seated ones take a ticket. `expiresAt` null = waits for ever. */
export async function queueRun(
  tier: Pick<PortTier, 'ids'> & Stores,
  who: { ownerId: string; characterId: string },
  options: { seated?: boolean; expiresAt?: Date | null } = {},
): Promise<{ id: string; ahead: number }> {
  const { seated = true, expiresAt = null } = options
  const id = tier.ids.next()
  const { ahead } = await tier.database.run(() =>
    tier.runs.insert({
      id,
      owner_id: who.ownerId,
      kind: seated ? 'answer' : 'maintenance',
      seated,
      character_id: who.characterId,
      tree_id: null,
      question_id: null,
      candidate_id: null,
      trace_id: tier.ids.next(),
      settings: { seed: 1 },
      queueExpiresAt: expiresAt,
    }),
  )
  return { id, ahead }
}

/** A run that has its character's seat. */
export async function startRun(tier: Pick<PortTier, 'ids' | 'character'> & Stores, holder = 'somebody'): Promise<RunRow> {
  const who = await tier.character()
  await queueRun(tier, who)
  const run = await tier.database.run(() => tier.runs.claimNext(who.characterId, holder))
  if (!run) throw new Error('the seat was free and nobody got it')
  return run
}

/** Opens the stream of a run, as the transaction that creates the run does. */
export async function openStream(tier: Stores, run: Pick<RunRow, 'id' | 'owner_id'>): Promise<StreamHead> {
  const written = await tier.database.run(() =>
    tier.log.append({ stream: `run:${run.id}`, ownerId: run.owner_id, events: [turnStarted(1)] }),
  )
  return headAfter(written)
}

/** Lets a run's lease be over, as if its time had passed. */
export async function endLease(tier: Stores, runId: string): Promise<void> {
  await tier.database.execute(`UPDATE runs SET lease_until = clock_timestamp() - interval '1 second' WHERE id = $1::uuid`, [runId])
}
