import type { RunRow } from '#kernel/ports/run-store'
import type { Seat } from '#kernel/ports/seat'
import { inheritanceOf } from '../turn/inheritance.ts'
import { readStream } from '../turn/read-stream.ts'
import { resumptionOf } from '../turn/resumption.ts'
import { RunHost } from '../turn/run-host.ts'
import type { RunHostDeps } from '../turn/run-deps.ts'
import { commandUndriven, lastPublicSeq } from '../turn/undriven-run.ts'
import type { UndrivenCommand } from '../turn/undriven-run.ts'

/** A sign of life this often (decision 22). */
const HEARTBEAT_MS = 5_000
/** Looks for runs that nobody woke: expired leases, expired queue places, free seats with somebody waiting. */
const SWEEP_MS = 2_000

/**
 * Grants the seat (命台) and keeps it honest: starts the next run of a free seat, extends the leases of its own runs, takes runs whose owner is
 * gone to their end with what they had said, or to where they go on (M5, M7; cases Q2, Q3, Q7). Postgres decides; everything here may run on any number of replicas at once.
 */
export class SeatKeeper {
  readonly #deps: RunHostDeps
  readonly #seat: Seat
  /** `<boot>:<process>`; on the light tier a run of another boot is known to be dead (decision 4). */
  readonly #holder: string
  readonly #aloneSince: string | undefined
  readonly #hosts = new Map<string, { host: RunHost; done: Promise<void> }>()
  readonly #starting = new Map<string, Promise<void>>()
  readonly #stopTimers: (() => Promise<void>)[] = []
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
    const startNext = (): Promise<void> => this.#startNext(characterId)
    // After the one before, however it went: whoever asked for that one hears of its failure.
    const attempt = (this.#starting.get(characterId) ?? Promise.resolve()).then(startNext, startNext)
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
    this.#seat.note(run.character_id, run.id, HEARTBEAT_MS * 3)
    const stored = await readStream(this.#deps.log, `run:${run.id}`)
    const last = stored.at(-1)
    const records = stored.map((event) => event.record)
    const resumption = await resumptionOf(run, records, this.#deps)
    const host = new RunHost({
      run,
      head: last ? { seq: last.record.seq, hash: last.hash } : { seq: 0, hash: new Uint8Array(32) },
      lastPublicSeq: lastPublicSeq(records),
      deps: this.#deps,
      resumption,
      inheritance: resumption ? null : await inheritanceOf(run, this.#deps),
    })
    const done = host
      .drive()
      .then(() => undefined)
      .catch((error: unknown) => this.#deps.report(error, run.id))
      .finally(() => {
        // The run may have been lost and be here again, with another host.
        if (this.#hosts.get(run.id)?.host === host) this.#hosts.delete(run.id)
        this.#seat.announce(run.character_id)
      })
    this.#hosts.set(run.id, { host, done })
  }

  /** One round of looking after what nobody woke. One run that cannot be looked after does not keep the others from it. */
  async sweep(): Promise<void> {
    const { runs } = this.#deps
    for (const run of await runs.expired({ holderPrefixAlive: this.#aloneSince })) {
      if (!this.#hosts.has(run.id)) await this.#reported(run.id, this.#endDead(run))
    }
    for (const run of await runs.waitingForEffect(100)) await this.#reported(run.id, this.requeue(run))
    for (const run of await runs.queueExpired()) await this.#reported(run.id, this.endQueued(run, { tag: 'queue_expired' }))
    for (const characterId of await runs.startable()) this.wake(characterId)
  }

  async #reported(runId: string, work: Promise<unknown>): Promise<void> {
    await work.catch((error: unknown) => this.#deps.report(error, runId))
  }

  async #heartbeat(): Promise<void> {
    // Only those that were here when the question was put: a run that starts meanwhile is not in the answer.
    const hosts = [...this.#hosts.values()].map(({ host }) => host)
    if (hosts.length === 0) return
    const held = await this.#deps.runs.heartbeat(hosts.map(({ run }) => ({ id: run.id, fence: run.fence })))
    const standing = new Map(held.map((run) => [run.id, run]))
    for (const host of hosts) {
      const run = standing.get(host.run.id)
      if (!run) host.fence()
      else if (run.killed) host.kill()
      else await this.#reported(host.run.id, host.pollCommands())
    }
  }

  /**
   * Ends a run that never had the seat, or left it to wait: cancelled, or waited too long. Answers false when it got the seat meanwhile, or has
   * an action out that nobody has in hand: then it is taken up at once by whoever looks at that, and ends with it.
   */
  async endQueued(run: RunRow, command: Extract<UndrivenCommand, { tag: 'cancel' | 'queue_expired' }>): Promise<boolean> {
    const taken = await this.#deps.runs.takeQueued(run.id, this.#holder)
    if (taken === null) return false
    if (await this.#command(taken, command)) return true
    if (command.tag === 'cancel') await this.requeue(taken)
    return false
  }

  /** What a run waited for is there, or worth another look: it stands at the head of its line. */
  async requeue(run: Pick<RunRow, 'id' | 'character_id'>): Promise<void> {
    const { unitOfWork, runs } = this.#deps
    if (await unitOfWork.run(() => runs.requeue(run.id))) this.#seat.announce(run.character_id)
  }

  async #endDead(run: RunRow): Promise<void> {
    const taken = await this.#deps.runs.takeOver(run.id, run.fence, this.#holder)
    if (taken) await this.#command(taken, { tag: 'lease_expired' })
  }

  async #command(run: RunRow, command: UndrivenCommand): Promise<boolean> {
    const outcome = await commandUndriven({ run, command, deps: this.#deps })
    this.#seat.announce(run.character_id)
    return outcome !== null
  }

  #every(milliseconds: number, work: () => Promise<void>): void {
    let stopped = false
    let cancel: () => void = () => undefined
    let underWay: Promise<void> = Promise.resolve()
    const round = (): void => {
      underWay = work()
        .catch((error: unknown) => this.#deps.report(error, 'seat'))
        .finally(() => {
          if (!stopped) cancel = this.#deps.scheduler.after(milliseconds, round)
        })
    }
    cancel = this.#deps.scheduler.after(milliseconds, round)
    this.#stopTimers.push(() => {
      stopped = true
      cancel()
      return underWay
    })
  }

  /** Accepts nothing new, ends what runs as drained, and waits for it to be sealed. */
  async stop(): Promise<void> {
    this.#accepting = false
    await Promise.all(this.#stopTimers.splice(0).map((stop) => stop()))
    await Promise.allSettled(this.#starting.values())
    for (const { host } of this.#hosts.values()) host.drain()
    await Promise.all([...this.#hosts.values()].map(({ done }) => done))
  }
}
