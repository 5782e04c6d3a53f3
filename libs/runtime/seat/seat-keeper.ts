import type { EventPayload, EventRecord } from '#contracts'
import type { RunRow } from '#kernel/ports/run-store'
import type { Seat } from '#kernel/ports/seat'
import type { RunCommand } from '#kernel/reducer/commands'
import { recoverState } from '#kernel/reducer/recover'
import { reduce } from '#kernel/reducer/reduce'
import { causeOf } from '../turn/cause.ts'
import type { FoldSteer } from '../turn/fold-answer.ts'
import { RunHost, runChannel } from '../turn/run-host.ts'
import type { RunHostDeps } from '../turn/run-host.ts'
import { toStreamEvent } from '../turn/stream-event.ts'
import { eventDictionary } from '#contracts'

/** A sign of life this often (decision 22). */
const HEARTBEAT_MS = 5_000
/** Looks for runs that nobody woke: expired leases, expired queue places, free seats with somebody waiting. */
const SWEEP_MS = 2_000

/**
 * Grants the seat (命台) and keeps it honest: starts the next run of a free seat, extends the leases of its own runs, ends runs whose owner is
 * gone with what they had said (M5, M7; cases Q2, Q3, Q7). Postgres decides; everything here may run on any number of replicas at once.
 */
export class SeatKeeper {
  readonly #deps: RunHostDeps
  readonly #seat: Seat
  /** `<boot>:<process>`; on the light tier a run of another boot is known to be dead (decision 4). */
  readonly #holder: string
  readonly #aloneSince: string | undefined
  readonly #hosts = new Map<string, { host: RunHost; done: Promise<void> }>()
  readonly #starting = new Map<string, Promise<void>>()
  #stopTimers: (() => void)[] = []
  #accepting = false

  constructor({ deps, seat, holder, alone }: { deps: RunHostDeps; seat: Seat; holder: string; alone: boolean }) {
    this.#deps = deps
    this.#seat = seat
    this.#holder = holder
    this.#aloneSince = alone ? holder : undefined
  }

  /** Begins to take runs. First ends those that the last process left behind. */
  async start(): Promise<void> {
    this.#accepting = true
    this.#seat.onAnnounce((characterId) => this.wake(characterId))
    await this.sweep()
    this.#every(SWEEP_MS, () => this.sweep())
    this.#every(HEARTBEAT_MS, () => this.#heartbeat())
  }

  /** Runs of this process that are under way. */
  get liveRuns(): number {
    return this.#hosts.size
  }

  /** The seat may be free: try to start the character's next run here. */
  wake(characterId: string): void {
    this.tryStart(characterId).catch((error: unknown) => this.#deps.report(error, characterId))
  }

  /** Starts the next run if the seat is free; calls for one character follow each other. */
  async tryStart(characterId: string): Promise<void> {
    const before = this.#starting.get(characterId)
    const attempt = (before ?? Promise.resolve()).then(() => this.#startNext(characterId))
    this.#starting.set(characterId, attempt)
    try {
      await attempt
    } finally {
      if (this.#starting.get(characterId) === attempt) this.#starting.delete(characterId)
    }
  }

  async #startNext(characterId: string): Promise<void> {
    if (!this.#accepting) return
    const { unitOfWork, runs } = this.#deps
    const run = await unitOfWork.run(() => runs.claimNext(characterId, this.#holder))
    if (run) await this.#host(run)
  }

  async #host(run: RunRow): Promise<void> {
    const { log } = this.#deps
    this.#seat.note(run.character_id, run.id, HEARTBEAT_MS * 3)
    const stored = await log.read(`run:${run.id}`, {})
    const last = stored.at(-1)
    const host = new RunHost({
      run,
      head: last ? { seq: last.record.seq, hash: last.hash } : { seq: 0, hash: new Uint8Array(32) },
      lastPublicSeq: lastPublicSeq(stored.map((event) => event.record)),
      deps: this.#deps,
    })
    const done = host
      .drive()
      .then(() => undefined)
      .catch((error: unknown) => this.#deps.report(error, run.id))
      .finally(() => {
        this.#hosts.delete(run.id)
        this.#seat.announce(run.character_id)
      })
    this.#hosts.set(run.id, { host, done })
  }

  /** One round of looking after what nobody woke. */
  async sweep(): Promise<void> {
    const { runs } = this.#deps
    for (const run of await runs.expired({ holderPrefixAlive: this.#aloneSince })) {
      if (!this.#hosts.has(run.id)) await this.#endDead(run)
    }
    for (const run of await runs.queueExpired()) await this.endQueued(run, { tag: 'queue_expired' })
    for (const characterId of await runs.startable()) this.wake(characterId)
  }

  async #heartbeat(): Promise<void> {
    const { runs } = this.#deps
    if (this.#hosts.size === 0) return
    const alive = new Map((await runs.heartbeat(this.#holder)).map((run) => [run.id, run.fence]))
    for (const { host } of this.#hosts.values()) {
      if (alive.get(host.run.id) !== host.run.fence) host.fence()
      else await host.pollCommands()
    }
  }

  /** Ends a run that never had the seat: cancelled in the queue, or waited too long. Answers false when it got the seat meanwhile. */
  async endQueued(run: RunRow, command: Extract<RunCommand, { tag: 'cancel' | 'queue_expired' }>): Promise<boolean> {
    const taken = await this.#deps.runs.takeQueued(run.id, this.#holder)
    if (!taken) return false
    await this.#endWithoutHost(taken, command)
    return true
  }

  async #endDead(run: RunRow): Promise<void> {
    const taken = await this.#deps.runs.takeOver(run.id, run.fence, this.#holder)
    if (taken) await this.#endWithoutHost(taken, null)
  }

  async #endWithoutHost(run: RunRow, command: RunCommand | null): Promise<void> {
    const { log, runs, contents, sealer, fanout } = this.#deps
    const stored = await log.read(`run:${run.id}`, {})
    const last = stored.at(-1)
    if (!last) return
    const records = stored.map((event) => event.record)
    const state = recoverState(run.candidate_id, records)
    const ending = command ?? { tag: 'lease_expired' as const, settled_tokens: state.effect?.reserved_tokens ?? 0 }
    const action = reduce(state, ending).actions.find((candidate) => candidate.type === 'seal')
    if (!action) return
    const steers = usedSteers(records)
    const texts = await contents.get(steers.map((steer) => steer.content_id))
    const sealed = await sealer.seal({
      run,
      head: { seq: last.record.seq, hash: last.hash },
      action,
      cause: causeOf(ending),
      segments: await runs.segments(run.id),
      steers: steers.map((steer) => ({ ...steer, text: texts.get(steer.content_id)?.body ?? '' })),
    })
    let previous = lastPublicSeq(records)
    for (const event of sealed ?? []) {
      if (event.visibility !== 'public') continue
      const message = toStreamEvent({
        runId: run.id,
        record: JSON.parse(event.canonical) as EventRecord,
        prevSeq: previous,
        texts: { segment: () => ({ kind: 'text', part: 0, text: null }), steer: () => null },
      })
      previous = event.seq
      if (message) fanout.publish(runChannel(run.id), JSON.stringify(message))
    }
    this.#seat.announce(run.character_id)
  }

  #every(milliseconds: number, work: () => Promise<void>): void {
    let stopped = false
    let cancel: () => void = () => undefined
    const round = (): void => {
      work()
        .catch((error: unknown) => this.#deps.report(error, 'seat'))
        .finally(() => {
          if (!stopped) cancel = this.#deps.scheduler.after(milliseconds, round)
        })
    }
    cancel = this.#deps.scheduler.after(milliseconds, round)
    this.#stopTimers.push(() => {
      stopped = true
      cancel()
    })
  }

  /** Accepts nothing new, ends what runs as drained, and waits for it to be sealed. */
  async stop(): Promise<void> {
    this.#accepting = false
    for (const stop of this.#stopTimers) stop()
    this.#stopTimers = []
    await Promise.all(this.#starting.values())
    for (const { host } of this.#hosts.values()) host.drain()
    await Promise.all([...this.#hosts.values()].map(({ done }) => done))
  }
}

function lastPublicSeq(records: readonly EventRecord[]): number {
  return records.findLast((record) => eventDictionary[record.type].visibility === 'public')?.seq ?? 0
}

function usedSteers(records: readonly EventRecord[]): Omit<FoldSteer, 'text'>[] {
  return records.flatMap((record) => {
    if (record.type !== 'steer.received') return []
    const { content_id, after_segments, used } = record.payload as EventPayload<'steer.received'>
    const digest = record.content_digests[0]?.digest ?? ''
    return used ? [{ content_id, digest, after_segments }] : []
  })
}
