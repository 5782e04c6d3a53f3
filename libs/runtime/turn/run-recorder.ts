import type { Cause, Trust } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import { StaleHeadError } from '#kernel/ports/event-log'
import type { EventLog, SegmentRow } from '#kernel/ports/event-log'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { chainEvents } from '#kernel/record/chain'
import type { ChainedEvent, StreamHead } from '#kernel/record/chain'
import type { RunEvent } from '#kernel/reducer/actions'
import { applyEffectEvents, tellsOfEffects } from './effect-events.ts'
import type { ActionDeps } from './action-facts.ts'
import type { PendingContent, RunPin, SproutKeeper } from './ports.ts'
import type { RunAppender } from './run-appender.ts'
import { envelopEvents } from './run-sealer.ts'

export type RunRecorderDeps = {
  unitOfWork: UnitOfWork
  log: EventLog
  runs: RunStore
  contents: ContentStore
  sprouts: SproutKeeper
  appender: RunAppender
  actions: Pick<ActionDeps, 'ledger' | 'approvals'>
  clock: Clock
}

/** What one append of a run carries beside its events. */
export type RunWrite = {
  events: readonly RunEvent[]
  cause: Cause
  rows: readonly SegmentRow[]
  /** The trust of a sprout that these segments open. */
  trust: Trust
  /** Versions that become the run's with its start. */
  pin: RunPin | null
  /** Words of another run that this one begins with; they open no sprout. */
  inherited?: readonly SegmentRow[]
}

/** `fenced`: the run is somebody else's. `killed`: the kill switch kept it back. Either way nothing was written. */
export type RunWritten = { chained: ChainedEvent[] } | 'fenced' | 'killed'

/** Writes one run's stream under its fence, and with the events whatever of the run's state they tell of (M9, decision 16). */
export class RunRecorder {
  readonly #run: RunRow
  readonly #deps: RunRecorderDeps
  #head: StreamHead
  #pendingContents: PendingContent[] = []
  #sproutOpen = false

  /** `sproutOpen`: the run goes on where words of it are durable already. */
  constructor({ run, head, sproutOpen, deps }: { run: RunRow; head: StreamHead; sproutOpen: boolean; deps: RunRecorderDeps }) {
    this.#run = run
    this.#sproutOpen = sproutOpen
    this.#head = head
    this.#deps = deps
  }

  get head(): StreamHead {
    return this.#head
  }

  /** Contents that are stored together with the next events, which refer to them. */
  hold(contents: readonly PendingContent[]): void {
    this.#pendingContents = [...this.#pendingContents, ...contents]
  }

  /** What is held and not written yet: the end of a run takes it along where its events refer to it. */
  get held(): readonly PendingContent[] {
    return this.#pendingContents
  }

  /** Chains events onto the run's stream without writing them. */
  chain(events: readonly RunEvent[], cause: Cause): { chained: ChainedEvent[]; head: StreamHead } {
    return chainEvents({
      stream: this.#stream,
      ownerId: this.#run.owner_id,
      head: this.#head,
      events: envelopEvents(this.#run, events, { at: this.#deps.clock.now().toISOString(), cause, actor: 'kernel' }),
    })
  }

  async write(write: RunWrite): Promise<RunWritten> {
    const { chained, head } = this.chain(write.events, write.cause)
    if (!(await this.#append(write, chained))) {
      const refusal = await this.#whyRefused(chained)
      if (refusal !== null) return refusal
    }
    this.#head = head
    return { chained }
  }

  get #stream(): string {
    return `run:${this.#run.id}`
  }

  /** Most appends join those of other runs; what also changes state is a transaction of its own. */
  async #append({ events, rows, trust, pin, inherited = [] }: RunWrite, chained: readonly ChainedEvent[]): Promise<boolean> {
    const { unitOfWork, log, runs, contents, sprouts, appender, actions, clock } = this.#deps
    const { id, fence } = this.#run
    const opensSprout = rows.length > 0 && !this.#sproutOpen
    const steers = events.flatMap((event) => (event.type === 'steer.received' ? [event.payload] : []))
    const acts = tellsOfEffects(events)
    // What is held while this one is being written goes with the next.
    const held = this.#pendingContents
    if (held.length === 0 && !opensSprout && pin === null && steers.length === 0 && !acts) {
      return appender.append({ runId: id, fence, events: chained, segments: rows })
    }
    const written = await unitOfWork.run(async () => {
      const [isOurs, killed] = await Promise.all([runs.holdFence(id, fence), runs.isKilled(this.#run)])
      if (!isOurs || killed) return false
      for (const content of held) await contents.put(content)
      if (acts) await applyEffectEvents(this.#run, events, { ...actions, now: clock.now() })
      // Sent together: none of these waits for what another answers.
      await Promise.all([
        pin && runs.pinVersions(id, pin),
        opensSprout && sprouts.open(this.#run, trust),
        runs.insertSegments([...inherited, ...rows]),
        ...steers.map((steer) => runs.recordCommands([steer.command_id], steer.used)),
        log.write(chained),
      ])
      return true
    })
    if (written) {
      this.#pendingContents = this.#pendingContents.filter((content) => !held.includes(content))
      this.#sproutOpen ||= opensSprout
    }
    return written
  }

  /** Null when it was written after all and only the answer was lost on its way. Throws StaleHeadError. */
  async #whyRefused(chained: readonly ChainedEvent[]): Promise<'fenced' | 'killed' | null> {
    const current = await this.#deps.runs.get(this.#run.id)
    if (current?.fence !== this.#run.fence || current.state !== 'running') return 'fenced'
    const head = await this.#deps.log.head(this.#stream)
    const last = chained.at(-1)
    if (head && last && Buffer.compare(head.hash, last.hash) === 0) return null
    if (!head || head.quarantined || head.seq !== this.#head.seq) throw new StaleHeadError(this.#stream)
    // Ours, and the stream takes events: it was the kill switch, even where it is lifted again by now.
    return 'killed'
  }
}
