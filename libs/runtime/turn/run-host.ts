import type { Cause, Trust } from '#contracts'
import { meetTrust } from '#contracts'
import { RunDriver } from '#kernel/driver/driver'
import type { DriverOutcome, Performed, RunEffects } from '#kernel/driver/driver'
import type { Clock, Ids, Scheduler } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog, SegmentRow } from '#kernel/ports/event-log'
import type { Fanout } from '#kernel/ports/fanout'
import type { ModelFailure, ModelGateway, ModelStreamEvent } from '#kernel/ports/model-gateway'
import type { Checkpoint } from '#kernel/ports/approval-store'
import type { ToolContract } from '#kernel/ports/effect-target'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { saltedDigest } from '#kernel/record/chain'
import type { StreamHead } from '#kernel/record/chain'
import { ADMISSION_POLICY_VERSION } from '#kernel/admission/admit'
import type { RunAction, RunEvent } from '#kernel/reducer/actions'
import type { RunCommand, Usage } from '#kernel/reducer/commands'
import { initialState, REDUCER_VERSION } from '#kernel/reducer/state'
import type { ToolCall } from '#kernel/reducer/state'
import { causeOf } from './cause.ts'
import { DeltaWriter } from './delta-writer.ts'
import type { Segment } from './delta-writer.ts'
import { endFromRecord } from './end-from-record.ts'
import { foldAnswer } from './fold-answer.ts'
import type { FoldInsert } from './fold-answer.ts'
import { insertOf } from './inserts.ts'
import { interruptReason } from './interrupt-reason.ts'
import type { ContextProjector, EndpointQuirks, PendingContent, ReadyRequest, RunPin, SproutKeeper } from './ports.ts'
import { RunActions, shownTools } from './run-actions.ts'
import type { ActionDeps } from './run-actions.ts'
import type { RunAppender } from './run-appender.ts'
import { RunPublisher } from './run-publisher.ts'
import { RunRecorder } from './run-recorder.ts'
import type { RunSealer } from './run-sealer.ts'
import type { RunSuspender } from './run-suspender.ts'
import { UsageOption } from './usage-option.ts'

/** Everything that running runs needs from outside. */
export type RunHostDeps = {
  unitOfWork: UnitOfWork
  log: EventLog
  runs: RunStore
  contents: ContentStore
  sprouts: SproutKeeper
  appender: RunAppender
  sealer: RunSealer
  suspender: RunSuspender
  actions: ActionDeps
  projector: ContextProjector
  gateway: ModelGateway
  quirks: EndpointQuirks
  fanout: Fanout
  clock: Clock
  ids: Ids
  scheduler: Scheduler
  /** Milliseconds before try number `tries` + 1, or null when it is not worth it. */
  retryDelay(failure: { retryable: boolean; retryAfterMs?: number; tries: number }): number | null
  report(error: unknown, runId: string): void
}

/** A durable piece of the answer, and its part in it. */
type SaidSegment = Omit<Segment, 'digest'> & { part: number }

/** Where a run that waited goes on: the loop's state, and what its record shows of what was said and done. */
export type RunResumption = {
  checkpoint: Checkpoint
  pin: RunPin
  segments: readonly SaidSegment[]
  inserts: readonly FoldInsert[]
  /** The meet of everything that the model saw so far (K1). */
  trust: Trust
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
  readonly #segments: SaidSegment[]
  readonly #inserts: FoldInsert[]
  readonly #resumption: RunResumption | null
  readonly #actions: RunActions
  /** Texts that this run's events refer to and that are not read back: interjections, arguments, observations. */
  readonly #texts = new Map<string, string>()
  readonly #steerDigests = new Map<string, string>()
  readonly #seenCommands = new Set<string>()
  readonly #usageOption: UsageOption
  readonly #recorder: RunRecorder
  readonly #publisher: RunPublisher
  #handedOver: Segment[] = []
  #pin: RunPin | null = null
  #request: ReadyRequest | null = null
  #shown: readonly ToolContract[] = []
  /** The meet of everything that the model saw so far; null before it saw anything (K1). */
  #contextTrust: Trust | null
  #proposals: { name: string; argumentsText: string }[] = []
  #began = 0
  #abort: AbortController | null = null
  #answerSalt: Uint8Array | undefined
  #cancelTimer: () => void = () => undefined

  constructor({
    run,
    head,
    lastPublicSeq,
    deps,
    resumption = null,
  }: {
    run: RunRow
    head: StreamHead
    lastPublicSeq: number
    deps: RunHostDeps
    resumption?: RunResumption | null
  }) {
    this.run = run
    this.#deps = deps
    this.#resumption = resumption
    this.#segments = [...(resumption?.segments ?? [])]
    this.#inserts = [...(resumption?.inserts ?? [])]
    this.#contextTrust = resumption?.trust ?? null
    this.#pin = resumption?.pin ?? null
    this.#actions = new RunActions({ run, deps: { ...deps, ...deps.actions }, profileHash: () => this.#pin?.profileHash ?? '' })
    this.#usageOption = new UsageOption(deps.quirks)
    this.#recorder = new RunRecorder({ run, head, sproutOpen: this.#segments.length > 0, deps })
    this.#publisher = new RunPublisher({
      runId: run.id,
      lastPublicSeq,
      fanout: deps.fanout,
      texts: {
        segment: (ordinal) => {
          const segment = this.#segments[ordinal]
          return { kind: segment?.kind ?? 'text', part: segment?.part ?? 0, text: segment?.body ?? null }
        },
        content: (contentId) => this.#texts.get(contentId) ?? null,
      },
    })
    this.#driver = new RunDriver({ state: resumption?.checkpoint.state ?? initialState(run.candidate_id), effects: this })
    this.#deltas = new DeltaWriter({ ids: deps.ids, scheduler: deps.scheduler, flush: (segments) => this.#handOver(segments) })
  }

  async drive(): Promise<DriverOutcome> {
    const { projector, fanout, scheduler, report } = this.#deps
    // Not waited for: commands are looked for with each heartbeat and at each turn's end too (case Q5).
    const subscription = fanout.subscribe(commandChannel(this.run.id), () => this.#background(this.pollCommands()))
    subscription.catch((error: unknown) => report(error, this.run.id))
    try {
      const pin = this.#pin ?? (await projector.pin(this.run))
      this.#pin = pin
      this.#began = this.#deps.clock.now().getTime()
      const wallMs = Math.max(0, pin.limits.max_wall_ms - (this.#resumption?.checkpoint.spent_wall_ms ?? 0))
      this.#cancelTimer = scheduler.after(wallMs, () =>
        this.#cutOff({
          tag: 'limit_reached',
          which: 'max_wall_ms',
          limit: pin.limits.max_wall_ms,
          needed: pin.limits.max_wall_ms,
          settled_tokens: 0,
        }),
      )
      this.#driver.submit(this.#firstCommand(pin))
      this.#background(this.pollCommands())
      return await this.#driver.run()
    } catch (error) {
      report(error, this.run.id)
      return await this.#endBroken()
    } finally {
      this.#cancelTimer()
      this.abortModel()
      this.abortEffect()
      void subscription.then(
        (unsubscribe) => unsubscribe(),
        () => undefined, // told above
      )
    }
  }

  /** A suspended run goes on only under the loop that suspended it (decision 15). */
  #firstCommand(pin: RunPin): RunCommand {
    if (this.#resumption && this.#resumption.checkpoint.reducer_version !== REDUCER_VERSION) return { tag: 'fail', code: 'upgraded' }
    if (this.#resumption) return { tag: 'resume', fence: this.run.fence }
    return {
      tag: 'start',
      fence: this.run.fence,
      persona_version_id: pin.personaVersionId,
      profile_hash: pin.profileHash,
      bundle: pin.bundle,
      limits: pin.limits,
    }
  }

  /** Something of ours broke: the run ends now, with what its record shows, and not when its lease does. */
  async #endBroken(): Promise<DriverOutcome> {
    this.abortModel()
    this.abortEffect()
    const sealed = await endFromRecord({ run: this.run, command: { tag: 'fail', code: 'harness_error' }, deps: this.#deps })
    return sealed ? 'sealed' : 'fenced'
  }

  /** The lease is gone, or the process leaves without time to say so. */
  fence(): void {
    this.#driver.fence()
  }

  drain(): void {
    this.#cutOff({ tag: 'drain', settled_tokens: 0, checkpoint_id: this.#deps.ids.next() })
  }

  /** The kill switch is set: nothing more is written but the end. */
  kill(): void {
    this.#driver.submit({ tag: 'fail', code: 'killed' })
  }

  /** Takes in what was accepted for this run and not seen yet (decision 16). */
  async pollCommands(): Promise<void> {
    const { runs, contents } = this.#deps
    const open = (await runs.openCommands(this.run.id)).filter((command) => !this.#seenCommands.has(command.id))
    const found = await contents.get(open.flatMap((command) => command.content_id ?? []))
    for (const command of open) {
      // Another look may have taken it in while this one waited for the texts.
      if (this.#seenCommands.has(command.id)) continue
      this.#seenCommands.add(command.id)
      if (command.kind === 'cancel') this.#cutOff({ tag: 'cancel', settled_tokens: 0 })
      else if (command.kind !== 'steer') this.#driver.submit({ tag: 'unknown' })
      const content = command.content_id === null ? undefined : found.get(command.content_id)
      if (command.kind !== 'steer' || !content) continue
      const digest = Buffer.from(content.digest).toString('hex')
      this.#texts.set(content.id, content.body ?? '')
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
    const written = await this.#recorder.write({
      events: action.events,
      cause: causeOf(command),
      rows,
      trust: this.#contextTrust ?? 'untrusted',
      pin: command.tag === 'start' ? this.#pin : null,
    })
    if (written === 'fenced') return 'fenced'
    if (written === 'killed') {
      this.kill()
      return 'refused'
    }
    this.#segments.push(...segments.map((segment, index) => ({ ...segment, part: rows[index]?.part ?? 0 })))
    for (const event of action.events) {
      const insert = insertOf(event, (contentId) => this.#texts.get(contentId) ?? null)
      if (insert) this.#inserts.push(insert)
    }
    this.#publisher.publish(written.chained)
    if (rows.length > 0) this.#deltas.acknowledge()
    return 'done'
  }

  // ------------------------------------------------------------ the model

  projectContext(turn: number): void {
    this.#background(this.#project(turn))
  }

  async #project(turn: number): Promise<void> {
    if (!this.#pin) throw new Error('the run was not pinned')
    this.#shown = await shownTools(this.run, this.#deps.actions)
    const result = await this.#deps.projector.project({
      run: this.run,
      pin: this.#pin,
      turn,
      continuation: { segments: this.#segments, inserts: this.#inserts, trust: this.#contextTrust ?? 'untrusted' },
      asksUsage: await this.#usageOption.isAskedFor(),
      tools: this.#shown,
    })
    if ('bodyText' in result) {
      this.#request = result
      this.#recorder.hold(result.contents)
      const { trust } = result.command.projection
      this.#contextTrust = meetTrust([trust, this.#contextTrust ?? trust])
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
    this.#proposals = []
    const usage: Usage = { prompt_tokens: request.promptTokens, completion_tokens: 0, estimated: true }
    for await (const event of this.#deps.gateway.stream({
      body: request.body,
      bodyText: request.bodyText,
      purpose: request.command.purpose,
      signal: abort.signal,
    })) {
      if (abort.signal.aborted) return
      await this.#take(event, request, usage)
    }
  }

  async #take(event: ModelStreamEvent, request: ReadyRequest, usage: Usage): Promise<void> {
    const { projector } = this.#deps
    switch (event.type) {
      case 'opened':
        return
      case 'tool_call':
        if (usage.estimated) usage.completion_tokens += projector.countTokens(event.argumentsText)
        this.#proposals.push({ name: event.name, argumentsText: event.argumentsText })
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
        await this.#keepQuirks(request)
        await this.pollCommands()
        this.#driver.submit({
          tag: 'model_finished',
          finish_reason: event.finishReason,
          usage,
          cost_micros: projector.costMicros({ prompt: usage.prompt_tokens, completion: usage.completion_tokens }),
          calls: this.#proposed(event),
        })
        return
      case 'interrupted':
        this.#deltas.flushNow()
        this.#driver.submit({
          tag: 'model_interrupted',
          reason: interruptReason(event.code),
          code: event.code,
          provider_code: event.providerCode ?? null,
          settled_tokens: usage.estimated
            ? (this.#driver.state.effect?.reserved_tokens ?? 0)
            : usage.prompt_tokens + usage.completion_tokens,
        })
        return
      case 'failed':
        this.#driver.submit(this.#failureOf(event, request))
        return
    }
  }

  /** A message that was cut short proposes nothing: what is missing may be what matters (case E21). */
  #proposed({ finishReason, droppedToolCalls }: Extract<ModelStreamEvent, { type: 'finished' }>) {
    const isWhole = droppedToolCalls === 0 && finishReason !== 'length' && finishReason !== 'content_filter'
    const { calls, contents } = this.#actions.propose(isWhole ? this.#proposals : [], this.#shown)
    this.#hold(contents)
    return calls
  }

  #hold(contents: readonly PendingContent[]): void {
    this.#recorder.hold(contents)
    for (const { id, content } of contents) if (typeof content === 'string') this.#texts.set(id, content)
  }

  #failureOf(failure: ModelFailure, request: ReadyRequest): RunCommand {
    const { code, providerCode, status, retryable, retryAfterMs } = failure
    const rebuild = this.#usageOption.isRefusedBy(failure, request.body)
    const retryInMs = rebuild ? 0 : this.#deps.retryDelay({ retryable, retryAfterMs, tries: this.#driver.state.tries })
    return {
      tag: 'model_failed',
      code,
      provider_code: providerCode ?? null,
      status: status ?? null,
      retry_in_ms: retryInMs,
      rebuild,
    }
  }

  /** An answer is no worse for what could not be noted of its endpoint: the next one shows it again. */
  async #keepQuirks(request: ReadyRequest): Promise<void> {
    await this.#usageOption.learnFrom(request.body).catch((error: unknown) => this.#deps.report(error, this.run.id))
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

  // ------------------------------------------------------------ acting

  #call(actionId: string): ToolCall {
    const call = this.#driver.state.calls.find(({ action_id: id }) => id === actionId)
    if (!call) throw new Error(`run ${this.run.id} proposed no action ${actionId}`)
    return call
  }

  assessCall(actionId: string): void {
    this.#background(
      this.#actions.assess(this.#call(actionId), this.#contextTrust ?? 'untrusted').then((command) => void this.#driver.submit(command)),
    )
  }

  dispatchEffect({ effect_id: effectId, action_id, constraints }: Extract<RunAction, { type: 'dispatch_effect' }>): void {
    const contextTrust = this.#contextTrust ?? 'untrusted'
    this.#background(this.#submitActed(this.#actions.dispatch({ call: this.#call(action_id), effectId, constraints, contextTrust })))
  }

  reconcileEffect({ effect_id: effectId, action_id }: Extract<RunAction, { type: 'reconcile_effect' }>): void {
    this.#background(this.#submitActed(this.#actions.reconcile(this.#call(action_id), effectId)))
  }

  async #submitActed(acted: Promise<{ command: RunCommand; contents: PendingContent[] }>): Promise<void> {
    const { command, contents } = await acted
    this.#hold(contents)
    this.#driver.submit(command)
  }

  abortEffect(): void {
    this.#actions.abort()
  }

  async suspend(action: Extract<RunAction, { type: 'suspend' }>, command: RunCommand): Promise<Performed> {
    const { clock, suspender } = this.#deps
    const asked = action.approval ? action.state.calls.find(({ action_id: id }) => id === action.approval?.action_id) : undefined
    const question =
      action.approval && asked && command.tag === 'call_assessed'
        ? await this.#actions.question(asked, {
            approvalId: action.approval.approval_id,
            reason: reasonOf(action.events),
            policyVersion: ADMISSION_POLICY_VERSION,
            expiresAt: new Date(command.expires_at),
          })
        : null
    const written = await suspender.suspend({
      run: this.run,
      head: this.#recorder.head,
      action,
      cause: causeOf(command),
      contents: this.#recorder.held,
      question,
      spentWallMs: (this.#resumption?.checkpoint.spent_wall_ms ?? 0) + clock.now().getTime() - this.#began,
    })
    if (!written) return 'fenced'
    this.#publisher.publish(written)
    return 'done'
  }

  // ------------------------------------------------------------ the end

  acceptAnswer(): void {
    const { body } = foldAnswer(this.#segments, this.#inserts)
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
      head: this.#recorder.head,
      action,
      cause: causeOf(command) satisfies Cause,
      segments: this.#segments,
      inserts: this.#inserts,
      trust: this.#contextTrust,
      contents: this.#recorder.held,
      ...(action.outcome === 'finished' && this.#answerSalt ? { answerSalt: this.#answerSalt } : {}),
    })
    if (!sealed) return 'fenced'
    this.#publisher.publish(sealed)
    return 'done'
  }
}

/** Why the owner is asked, as the verdict says. */
function reasonOf(events: readonly RunEvent[]): string {
  for (const event of events) if (event.type === 'policy.decided') return event.payload.reason ?? 'class_asks'
  return 'class_asks'
}
