import type { Cause, RunStreamEvent } from '#contracts'
import { EventRecord } from '#contracts'
import { RunDriver } from '#kernel/driver/driver'
import type { DriverOutcome, Performed, RunEffects } from '#kernel/driver/driver'
import type { Clock, Ids, Scheduler } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog, SegmentRow } from '#kernel/ports/event-log'
import type { Fanout } from '#kernel/ports/fanout'
import type { ModelGateway, ModelStreamEvent } from '#kernel/ports/model-gateway'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { chainEvents, saltedDigest } from '#kernel/record/chain'
import type { ChainedEvent, StreamHead } from '#kernel/record/chain'
import type { RunAction } from '#kernel/reducer/actions'
import type { RunCommand } from '#kernel/reducer/commands'
import { initialState } from '#kernel/reducer/state'
import { causeOf } from './cause.ts'
import { DeltaWriter } from './delta-writer.ts'
import type { Segment } from './delta-writer.ts'
import { foldAnswer } from './fold-answer.ts'
import type { FoldSteer } from './fold-answer.ts'
import type { ContextProjector, PendingContent, ReadyRequest, RunPin, SproutKeeper } from './ports.ts'
import type { RunAppender } from './run-appender.ts'
import { envelopEvents } from './run-sealer.ts'
import type { RunSealer } from './run-sealer.ts'
import { toStreamEvent } from './stream-event.ts'

/** Everything that running runs needs from outside. */
export type RunHostDeps = {
  unitOfWork: UnitOfWork
  log: EventLog
  runs: RunStore
  contents: ContentStore
  sprouts: SproutKeeper
  appender: RunAppender
  sealer: RunSealer
  projector: ContextProjector
  gateway: ModelGateway
  fanout: Fanout
  clock: Clock
  ids: Ids
  scheduler: Scheduler
  /** Milliseconds before try number `tries` + 1, or null when it is not worth it. */
  retryDelay(failure: { retryable: boolean; retryAfterMs?: number; tries: number }): number | null
  report(error: unknown, runId: string): void
}

/** Channel on which a run's public events are published after their commit. */
export function runChannel(runId: string): string {
  return `run.${runId}`
}

/** Channel that tells a run's owner that a command was accepted. */
export function commandChannel(runId: string): string {
  return `run-commands.${runId}`
}

/**
 * One run, from the granted seat to its end: the effects that the driver asks for (spec/1 "The life of a turn", 3–8). Lives in one process
 * and writes only under its fence.
 */
export class RunHost implements RunEffects {
  readonly run: RunRow
  readonly #deps: RunHostDeps
  readonly #driver: RunDriver
  readonly #deltas: DeltaWriter
  readonly #segments: (Segment & { part: number })[] = []
  readonly #steers: FoldSteer[] = []
  readonly #steerTexts = new Map<string, string>()
  readonly #steerDigests = new Map<string, string>()
  readonly #seenCommands = new Set<string>()
  #head: StreamHead
  #lastPublicSeq: number
  #handedOver: Segment[] = []
  #pendingContents: PendingContent[] = []
  #pin: RunPin | null = null
  #request: ReadyRequest | null = null
  #abort: AbortController | null = null
  #answerSalt: Uint8Array | undefined
  #sproutOpen = false
  #cancelTimer: () => void = () => undefined
  #unsubscribe: () => void = () => undefined

  constructor({ run, head, lastPublicSeq, deps }: { run: RunRow; head: StreamHead; lastPublicSeq: number; deps: RunHostDeps }) {
    this.run = run
    this.#deps = deps
    this.#head = head
    this.#lastPublicSeq = lastPublicSeq
    this.#driver = new RunDriver({ state: initialState(run.candidate_id), effects: this })
    this.#deltas = new DeltaWriter({ ids: deps.ids, scheduler: deps.scheduler, flush: (segments) => this.#handOver(segments) })
  }

  async drive(): Promise<DriverOutcome> {
    const { projector, fanout, scheduler } = this.#deps
    try {
      this.#unsubscribe = await fanout.subscribe(commandChannel(this.run.id), () => this.#background(this.pollCommands()))
      const pin = await projector.pin(this.run)
      this.#pin = pin
      await this.#deps.runs.pinPersona(this.run.id, pin.personaVersionId, pin.profileVersionId)
      this.#cancelTimer = scheduler.after(pin.limits.max_wall_ms, () =>
        this.#cutOff({ tag: 'limit_reached', which: 'max_wall_ms', limit: pin.limits.max_wall_ms, needed: pin.limits.max_wall_ms, settled_tokens: 0 }),
      )
      this.#driver.submit({
        tag: 'start',
        fence: this.run.fence,
        persona_version_id: pin.personaVersionId,
        profile_hash: pin.profileHash,
        bundle: pin.bundle,
        limits: pin.limits,
      })
      this.#background(this.pollCommands())
      return await this.#driver.run()
    } finally {
      this.#cancelTimer()
      this.#unsubscribe()
      this.abortModel()
    }
  }

  /** The lease is gone, or the process leaves without time to say so. */
  fence(): void {
    this.#driver.fence()
  }

  drain(): void {
    this.#cutOff({ tag: 'drain', settled_tokens: 0 })
  }

  /** Takes in what was accepted for this run and not seen yet (decision 16). */
  async pollCommands(): Promise<void> {
    const { runs, contents } = this.#deps
    const open = (await runs.openCommands(this.run.id)).filter((command) => !this.#seenCommands.has(command.id))
    const found = await contents.get(open.flatMap((command) => command.content_id ?? []))
    for (const command of open) {
      this.#seenCommands.add(command.id)
      if (command.kind === 'cancel') this.#cutOff({ tag: 'cancel', settled_tokens: 0 })
      const content = command.content_id === null ? undefined : found.get(command.content_id)
      if (command.kind !== 'steer' || !content) continue
      const digest = Buffer.from(content.digest).toString('hex')
      this.#steerTexts.set(content.id, content.body ?? '')
      this.#steerDigests.set(content.id, digest)
      this.#driver.submit({ tag: 'steer', command_id: command.id, content_id: content.id, digest })
    }
  }

  /** What was already said is kept, then the run ends. */
  #cutOff(command: Extract<RunCommand, { settled_tokens: number }>): void {
    this.#deltas.flushNow()
    // Nobody knows what a request that is cut off will be charged: its whole reservation is (decision 39).
    this.#driver.submit({ ...command, settled_tokens: this.#driver.state.effect?.reserved_tokens ?? 0 })
  }

  #background(work: Promise<void>): void {
    work.catch((error: unknown) => {
      this.#deps.report(error, this.run.id)
      this.#driver.submit({ tag: 'fail', code: 'harness_error' })
    })
  }

  // ------------------------------------------------------------ recording

  #handOver(segments: Segment[]): void {
    this.#handedOver.push(...segments)
    this.#driver.submit({
      tag: 'segments',
      content_id: this.run.candidate_id ?? this.run.id,
      segments: segments.map((segment) => ({ kind: segment.kind, digest: Buffer.from(segment.digest).toString('hex') })),
    })
  }

  async record(action: Extract<RunAction, { type: 'record' }>, command: RunCommand): Promise<Performed> {
    const segments = this.#handedOver.splice(0, action.segments?.length ?? 0)
    const rows: SegmentRow[] = (action.segments ?? []).map((placed, index) => ({
      run_id: this.run.id,
      ordinal: placed.ordinal,
      part: placed.part,
      kind: placed.kind,
      body: segments[index]?.body ?? '',
      salt: segments[index]?.salt ?? new Uint8Array(32),
    }))
    const { chained, head } = chainEvents({
      stream: `run:${this.run.id}`,
      ownerId: this.run.owner_id,
      head: this.#head,
      events: envelopEvents(this.run, action.events, { at: this.#deps.clock.now().toISOString(), cause: causeOf(command), actor: 'kernel' }),
    })
    const written = await this.#write(chained, rows)
    if (!written) return this.#lost()
    this.#head = head
    this.#segments.push(...segments.map((segment, index) => ({ ...segment, part: rows[index]?.part ?? 0 })))
    for (const event of action.events) {
      if (event.type !== 'steer.received') continue
      const { content_id, after_segments, command_id, used } = event.payload
      if (used) {
        const digest = this.#steerDigests.get(content_id) ?? ''
        this.#steers.push({ content_id, digest, after_segments, text: this.#steerTexts.get(content_id) ?? '' })
      }
      await this.#deps.runs.recordCommands([command_id], used)
    }
    this.#publish(chained)
    if (rows.length > 0) this.#deltas.acknowledge()
    return 'done'
  }

  /** Most appends join those of other runs; what also changes state is a transaction of its own. */
  async #write(events: readonly ChainedEvent[], rows: readonly SegmentRow[]): Promise<boolean> {
    const { unitOfWork, log, runs, contents, sprouts, appender } = this.#deps
    const opensSprout = rows.length > 0 && !this.#sproutOpen
    if (this.#pendingContents.length === 0 && !opensSprout) {
      return appender.append({ runId: this.run.id, fence: this.run.fence, events, segments: rows })
    }
    const written = await unitOfWork.run(async () => {
      if (!(await runs.holdFence(this.run.id, this.run.fence)) || (await runs.isKilled(this.run))) return false
      for (const content of this.#pendingContents) await contents.put(content)
      if (opensSprout) await sprouts.open(this.run, this.#request?.command.projection.trust ?? 'untrusted')
      await runs.insertSegments(rows)
      await log.write(events)
      return true
    })
    if (written) {
      this.#pendingContents = []
      this.#sproutOpen ||= opensSprout
    }
    return written
  }

  /** The append was refused: killed, or somebody else's run by now. */
  async #lost(): Promise<Performed> {
    const { runs } = this.#deps
    const current = await runs.get(this.run.id)
    if (current?.fence !== this.run.fence || current.state !== 'running' || !(await runs.isKilled(this.run))) return 'fenced'
    this.#driver.submit({ tag: 'fail', code: 'killed' })
    return 'refused'
  }

  #publish(events: readonly ChainedEvent[]): void {
    for (const event of events) {
      if (event.visibility !== 'public') continue
      const message = this.#streamEvent(event)
      if (message) this.#deps.fanout.publish(runChannel(this.run.id), JSON.stringify(message))
      this.#lastPublicSeq = event.seq
    }
  }

  #streamEvent(event: ChainedEvent): RunStreamEvent | null {
    return toStreamEvent({
      runId: this.run.id,
      record: EventRecord.parse(JSON.parse(event.canonical)),
      prevSeq: this.#lastPublicSeq,
      texts: {
        segment: (ordinal) => {
          const segment = this.#segments[ordinal]
          return { kind: segment?.kind ?? 'text', part: segment?.part ?? 0, text: segment?.body ?? null }
        },
        steer: (contentId) => this.#steerTexts.get(contentId) ?? null,
      },
    })
  }

  // ------------------------------------------------------------ the model

  projectContext(turn: number): void {
    this.#background(this.#project(turn))
  }

  async #project(turn: number): Promise<void> {
    if (!this.#pin) throw new Error('the run was not pinned')
    const result = await this.#deps.projector.project({
      run: this.run,
      pin: this.#pin,
      turn,
      continuation: { segments: this.#segments, steers: this.#steers, trust: this.#request?.command.projection.trust ?? 'untrusted' },
    })
    if ('bodyText' in result) {
      this.#request = result
      this.#pendingContents = [...this.#pendingContents, ...result.contents]
    }
    this.#driver.submit(result.command)
  }

  requestModel(): void {
    this.#background(this.#stream())
  }

  async #stream(): Promise<void> {
    const request = this.#request
    if (!request) throw new Error('there is no request to send')
    const abort = new AbortController()
    this.#abort = abort
    const usage = { prompt_tokens: request.promptTokens, completion_tokens: 0, estimated: true }
    for await (const event of this.#deps.gateway.stream({ body: request.body, bodyText: request.bodyText, purpose: request.command.purpose, signal: abort.signal })) {
      if (abort.signal.aborted) return
      await this.#take(event, usage)
    }
  }

  async #take(event: ModelStreamEvent, usage: { prompt_tokens: number; completion_tokens: number; estimated: boolean }): Promise<void> {
    const { projector, retryDelay } = this.#deps
    switch (event.type) {
      case 'opened':
      case 'tool_call':
        return
      case 'text':
      case 'reasoning':
        if (usage.estimated) usage.completion_tokens += projector.countTokens(event.text)
        this.#deltas.push(event.type, event.text)
        return
      case 'usage':
        usage.prompt_tokens = event.promptTokens
        usage.completion_tokens = event.completionTokens
        usage.estimated = event.estimated
        return
      case 'finished':
        this.#deltas.flushNow()
        await this.pollCommands()
        this.#driver.submit({ tag: 'model_finished', finish_reason: event.finishReason, usage })
        return
      case 'interrupted':
        this.#deltas.flushNow()
        this.#driver.submit({
          tag: 'model_interrupted',
          reason: interruptReason(event.code),
          code: event.code,
          provider_code: event.providerCode ?? null,
          settled_tokens: usage.estimated ? (this.#driver.state.effect?.reserved_tokens ?? 0) : usage.prompt_tokens + usage.completion_tokens,
        })
        return
      case 'failed':
        this.#driver.submit({
          tag: 'model_failed',
          code: event.code,
          provider_code: event.providerCode ?? null,
          status: event.status ?? null,
          retry_in_ms: retryDelay({ retryable: event.retryable, retryAfterMs: event.retryAfterMs, tries: this.#driver.state.tries }),
        })
        return
    }
  }

  abortModel(): void {
    this.#abort?.abort()
    this.#abort = null
  }

  waitRetry(milliseconds: number): void {
    this.#deps.scheduler.after(milliseconds, () =>
      this.#driver.submit({ tag: 'retry_due', effect_id: this.#deps.ids.next(), model: this.#request?.command.model ?? 'other' }),
    )
  }

  // ------------------------------------------------------------ the end

  acceptAnswer(): void {
    const { body } = foldAnswer(this.#segments, this.#steers)
    this.#answerSalt = this.#deps.ids.bytes(32)
    this.#driver.submit({
      tag: 'accepted',
      content_id: this.run.candidate_id ?? this.run.id,
      digest: Buffer.from(saltedDigest(this.#answerSalt, body)).toString('hex'),
    })
  }

  async seal(action: Extract<RunAction, { type: 'seal' }>, command: RunCommand): Promise<Performed> {
    const sealed = await this.#deps.sealer.seal({
      run: this.run,
      head: this.#head,
      action,
      cause: causeOf(command) satisfies Cause,
      segments: this.#segments,
      steers: this.#steers,
      ...(action.outcome === 'finished' && this.#answerSalt ? { answerSalt: this.#answerSalt } : {}),
    })
    if (!sealed) return 'fenced'
    this.#publish(sealed)
    return 'done'
  }
}

function interruptReason(code: string): 'network' | 'timeout' | 'provider_error' | 'no_finish_reason' {
  switch (code) {
    case 'connection_lost':
      return 'network'
    case 'stalled':
    case 'response_timeout':
      return 'timeout'
    case 'ended_early':
      return 'no_finish_reason'
    default:
      return 'provider_error'
  }
}
