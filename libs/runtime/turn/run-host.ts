import type { Cause } from '#contracts'
import { RunDriver, SubmissionRefusedError } from '#kernel/driver/driver'
import type { DriverOutcome, Performed, RunEffects } from '#kernel/driver/driver'
import type { SegmentRow } from '#kernel/ports/event-log'
import type { RunRow } from '#kernel/ports/run-store'
import type { StreamHead } from '#kernel/record/chain'
import type { RunAction } from '#kernel/reducer/actions'
import type { RunCommand } from '#kernel/reducer/commands'
import { initialState, REDUCER_VERSION } from '#kernel/reducer/state'
import { acceptAnswer } from './accept-answer.ts'
import { causeOf } from './cause.ts'
import { DeltaWriter } from './delta-writer.ts'
import type { Segment } from './delta-writer.ts'
import type { RunPin } from './ports.ts'
import { RunActing } from './run-acting.ts'
import type { RunActingDeps } from './run-acting.ts'
import { RunActions } from './run-actions.ts'
import type { Inheritance } from './inheritance.ts'
import type { RunHostDeps, RunResumption } from './run-deps.ts'
import { commandChannel, RunInbox } from './run-inbox.ts'
import { RunModel } from './run-model.ts'
import { RunPublisher } from './run-publisher.ts'
import { RunRecorder } from './run-recorder.ts'
import { RunSoFar } from './run-so-far.ts'
import { canBeTakenOn, commandUndriven } from './undriven-run.ts'

/** How long a process that leaves waits for an action that is out. Milliseconds. */
export const DRAIN_MS = 20_000

/**
 * One run, from the granted seat to its end: the effects that the driver asks for (spec/1 "The life of a turn", 3–8). Lives in one process
 * and writes only under its fence.
 */
export class RunHost implements RunEffects {
  readonly run: RunRow
  readonly #deps: RunHostDeps
  readonly #driver: RunDriver
  readonly #deltas: DeltaWriter
  readonly #resumption: RunResumption | null
  readonly #inheritance: Inheritance | null
  readonly #soFar: RunSoFar
  readonly #acting: RunActing
  readonly #model: RunModel
  readonly #inbox: RunInbox
  readonly #recorder: RunRecorder
  readonly #publisher: RunPublisher
  #handedOver: Segment[] = []
  #pin: RunPin | null = null
  #began = 0
  #answerSalt: Uint8Array | undefined
  #cancelTimer: () => void = () => undefined
  #cancelDrain: () => void = () => undefined

  constructor({
    run,
    head,
    lastPublicSeq,
    deps,
    resumption = null,
    inheritance = null,
  }: {
    run: RunRow
    head: StreamHead
    lastPublicSeq: number
    deps: RunHostDeps
    resumption?: RunResumption | null
    /** Of a run that goes on with another one and has not begun yet. */
    inheritance?: Inheritance | null
  }) {
    this.run = run
    this.#deps = deps
    this.#resumption = resumption
    this.#inheritance = inheritance
    this.#pin = resumption?.pin ?? null
    this.#soFar = new RunSoFar(resumption ?? inheritance)
    const actions = new RunActions({
      run,
      deps: { ...deps, ...deps.actions },
      profileHash: () => this.#pin?.profileHash ?? '',
      bundle: () => this.#pin?.bundle ?? null,
    })
    this.#recorder = new RunRecorder({ run, head, sproutOpen: (resumption?.checkpoint.state.deltas ?? 0) > 0, deps })
    this.#publisher = new RunPublisher({
      runId: run.id,
      lastPublicSeq,
      fanout: deps.fanout,
      texts: {
        segment: (ordinal) => {
          const segment = this.#soFar.segments[ordinal]
          return { kind: segment?.kind ?? 'text', part: segment?.part ?? 0, text: segment?.body ?? null }
        },
        content: (contentId) => this.#soFar.textOf(contentId),
      },
    })
    this.#driver = new RunDriver({ state: resumption?.checkpoint.state ?? initialState(run.candidate_id), effects: this })
    this.#deltas = new DeltaWriter({ ids: deps.ids, scheduler: deps.scheduler, flush: (segments) => this.#handOver(segments) })
    const submit = (command: RunCommand): void => this.#submit(command)
    const hold: RunActingDeps['hold'] = (contents) => this.#recorder.hold(contents)
    this.#acting = new RunActing({ runId: run.id, actions, soFar: this.#soFar, state: () => this.#driver.state, submit, hold })
    this.#inbox = new RunInbox({
      runId: run.id,
      runs: deps.runs,
      contents: deps.contents,
      soFar: this.#soFar,
      submit,
      cancel: () => this.#cutOff({ tag: 'cancel', settled_tokens: 0 }),
    })
    this.#model = new RunModel({
      ...deps,
      run,
      soFar: this.#soFar,
      deltas: this.#deltas,
      proposals: actions,
      state: () => this.#driver.state,
      submit,
      hold,
      pollCommands: () => this.pollCommands(),
    })
  }

  async drive(): Promise<DriverOutcome> {
    const { projector, fanout, scheduler, report } = this.#deps
    // Not waited for: commands are looked for with each heartbeat and at each turn's end too (case Q5).
    const subscription = fanout.subscribe(commandChannel(this.run.id), () => this.#background(this.pollCommands()))
    subscription.catch((error: unknown) => report(error, this.run.id))
    let outcome: DriverOutcome | null = null
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
      this.#submit(this.#firstCommand(pin))
      // A run that was taken up to be cancelled hears of it before it asks for anything.
      if (this.#resumption) await this.pollCommands()
      else this.#background(this.pollCommands())
      outcome = await this.#driver.run()
      return outcome
    } catch (error) {
      report(error, this.run.id)
      return await this.#endBroken()
    } finally {
      this.#cancelTimer()
      this.#cancelDrain()
      this.abortModel()
      this.abortEffect()
      if (outcome !== 'suspended') this.#deps.leaveRun(this.run.id)
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
      inherited: this.#inheritance && { segments: this.#inheritance.segments.length, parts: this.#inheritance.parts },
    }
  }

  /** Something of ours broke: the run ends now, with what its record shows, and not when its lease does. */
  async #endBroken(): Promise<DriverOutcome> {
    this.abortModel()
    this.abortEffect()
    const outcome = await commandUndriven({ run: this.run, command: { tag: 'fail', code: 'harness_error' }, deps: this.#deps })
    return outcome ?? 'fenced'
  }

  /** The lease is gone, or the process leaves without time to say so. */
  fence(): void {
    this.#driver.fence()
  }

  /** Words that come in are cut off; an action that is out is waited for, and left to whoever takes the run on where that takes too long. */
  drain(): void {
    this.#cancelDrain = this.#deps.scheduler.after(DRAIN_MS, () => this.#driver.fence())
    this.#cutOff({ tag: 'drain', settled_tokens: 0, checkpoint_id: canBeTakenOn(this.run) ? this.#deps.ids.next() : null })
  }

  /** The kill switch is set: nothing more is written but the end. */
  kill(): void {
    this.#submit({ tag: 'fail', code: 'killed' })
  }

  /** Takes in what was accepted for this run and not seen yet (decision 16). */
  pollCommands(): Promise<void> {
    return this.#inbox.poll()
  }

  /** What was already said is kept, then the run ends. */
  #cutOff(command: Extract<RunCommand, { settled_tokens: number }>): void {
    this.#deltas.flushNow()
    // Nobody knows what a request that is cut off will be charged: its whole reservation is (decision 39).
    this.#submit({ ...command, settled_tokens: this.#driver.state.effect?.reserved_tokens ?? 0 })
  }

  /** Nothing that was submitted is lost in silence: what the driver cannot take breaks the run, with what its record shows (K9). */
  #submit(command: RunCommand): void {
    if (!this.#driver.submit(command)) this.#driver.breakOff(new SubmissionRefusedError(command.tag))
  }

  #background(work: Promise<void>): void {
    work.catch((error: unknown) => {
      this.#deps.report(error, this.run.id)
      this.#submit({ tag: 'fail', code: 'harness_error' })
    })
  }

  // ------------------------------------------------------------ recording

  #handOver(segments: Segment[]): void {
    this.#handedOver.push(...segments)
    this.#submit({
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
      trust: this.#soFar.trust,
      pin: command.tag === 'start' ? this.#pin : null,
      inherited: command.tag === 'start' ? this.#inheritedRows() : [],
    })
    if (written === 'fenced') return 'fenced'
    if (written === 'killed') {
      this.kill()
      return 'refused'
    }
    this.#soFar.say(segments.map((segment, index) => ({ ...segment, part: rows[index]?.part ?? 0 })))
    this.#soFar.insert(action.events)
    this.#publisher.publish(written.chained)
    if (rows.length > 0) this.#deltas.acknowledge()
    return 'done'
  }

  #inheritedRows(): SegmentRow[] {
    return (this.#inheritance?.segments ?? []).map((segment, ordinal) => ({ run_id: this.run.id, ordinal, ...segment }))
  }

  // ------------------------------------------------------------ the model

  projectContext(turn: number): void {
    if (!this.#pin) throw new Error('the run was not pinned')
    this.#background(this.#model.project(turn, this.#pin))
  }

  requestModel(): void {
    this.#background(this.#model.stream())
  }

  abortModel(): void {
    this.#model.abort()
  }

  waitRetry(milliseconds: number): void {
    this.#deps.scheduler.after(milliseconds, () =>
      this.#submit({ tag: 'retry_due', effect_id: this.#deps.ids.next(), model: this.#model.model }),
    )
  }

  // ------------------------------------------------------------ acting

  assessCall(actionId: string): void {
    this.#background(this.#acting.assess(actionId))
  }

  dispatchEffect(action: Extract<RunAction, { type: 'dispatch_effect' }>): void {
    this.#background(this.#acting.dispatch(action))
  }

  reconcileEffect(action: Extract<RunAction, { type: 'reconcile_effect' }>): void {
    this.#background(this.#acting.reconcile(action))
  }

  abortEffect(): void {
    this.#acting.abort()
  }

  async suspend(action: Extract<RunAction, { type: 'suspend' }>, command: RunCommand): Promise<Performed> {
    const { clock, suspender } = this.#deps
    const written = await suspender.suspend({
      run: this.run,
      head: this.#recorder.head,
      action,
      cause: causeOf(command),
      contents: this.#recorder.held,
      question: await this.#acting.question(action, command),
      spentWallMs: (this.#resumption?.checkpoint.spent_wall_ms ?? 0) + clock.now().getTime() - this.#began,
    })
    if (!written) return 'fenced'
    if (written === 'cancelled') {
      this.#cutOff({ tag: 'cancel', settled_tokens: 0 })
      return 'refused'
    }
    this.#publisher.publish(written)
    return 'done'
  }

  // ------------------------------------------------------------ the end

  acceptAnswer(): void {
    this.#background(this.#accept())
  }

  async #accept(): Promise<void> {
    const { actions, ids } = this.#deps
    const guards = await actions.guards(this.#pin?.bundle ?? null)
    const { command, salt } = await acceptAnswer({ run: this.run, soFar: this.#soFar, guards, ids })
    this.#answerSalt = salt
    this.#submit(command)
  }

  async seal(action: Extract<RunAction, { type: 'seal' }>, command: RunCommand): Promise<Performed> {
    const sealed = await this.#deps.sealer.seal({
      run: this.run,
      head: this.#recorder.head,
      action,
      cause: causeOf(command) satisfies Cause,
      segments: this.#soFar.segments,
      inserts: this.#soFar.inserts,
      trust: this.#soFar.seenTrust,
      contents: this.#recorder.held,
      ...(action.outcome === 'finished' && this.#answerSalt ? { answerSalt: this.#answerSalt } : {}),
    })
    if (!sealed) return 'fenced'
    this.#publisher.publish(sealed)
    return 'done'
  }
}
