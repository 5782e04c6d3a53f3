import type { ToolContract } from '#kernel/ports/effect-target'
import type { ModelFailure, ModelStreamEvent } from '#kernel/ports/model-gateway'
import type { RunRow } from '#kernel/ports/run-store'
import type { ProposedCall, RunCommand, Usage } from '#kernel/reducer/commands'
import type { RunLoopState } from '#kernel/reducer/state'
import type { DeltaWriter } from './delta-writer.ts'
import { interruptReason } from './interrupt-reason.ts'
import type { PendingContent, ReadyRequest, RunPin } from './ports.ts'
import { shownTools } from './granted-tools.ts'
import type { RunActions } from './run-actions.ts'
import type { RunHostDeps } from './run-deps.ts'
import type { RunSoFar } from './run-so-far.ts'
import { UsageOption } from './usage-option.ts'

/** What the model's side of a run shares with the rest of it. */
export type RunModelDeps = Pick<RunHostDeps, 'projector' | 'contents' | 'gateway' | 'quirks' | 'actions' | 'retryDelay' | 'report'> & {
  run: RunRow
  soFar: RunSoFar
  deltas: DeltaWriter
  proposals: Pick<RunActions, 'propose'>
  state(): RunLoopState
  submit(command: RunCommand): void
  /** Stores contents with the next events, which refer to them. */
  hold(contents: readonly PendingContent[]): void
  /** Whatever was accepted for the run comes before its turn ends. */
  pollCommands(): Promise<void>
}

/** Who answers acts. A job's run is shown no tools, and what its model calls all the same is no action (K2). */
function mayAct({ kind }: Pick<RunRow, 'kind'>): boolean {
  return kind !== 'maintenance'
}

/** The model's side of a run: a request is made, asserted and sent, and what comes back is told to the loop (spec/1, steps 4–7). */
export class RunModel {
  readonly #deps: RunModelDeps
  readonly #usageOption: UsageOption
  #request: ReadyRequest | null = null
  #shown: readonly ToolContract[] = []
  #proposals: { name: string; argumentsText: string }[] = []
  #abort: AbortController | null = null

  constructor(deps: RunModelDeps) {
    this.#deps = deps
    this.#usageOption = new UsageOption(deps.quirks)
  }

  /** The model that the current request names, for its next try. */
  get model(): string {
    return this.#request?.command.model ?? 'other'
  }

  async project(turn: number, pin: RunPin): Promise<void> {
    const { run, actions, projector, soFar, submit } = this.#deps
    await this.#forgetErased()
    this.#shown = mayAct(run) ? await shownTools(run, actions) : []
    const result = await projector.project({
      run,
      pin,
      turn,
      continuation: { segments: soFar.segments, inserts: soFar.inserts, trust: soFar.trust },
      asksUsage: await this.#usageOption.isAskedFor(),
      tools: this.#shown,
      guards: await actions.guards(pin.bundle),
    })
    if ('contents' in result) this.#deps.hold(result.contents)
    if ('bodyText' in result) {
      this.#request = result
      soFar.see(result.command.projection.trust)
    }
    submit(result.command)
  }

  /** What was erased since the run saw it is shown to no later turn. */
  async #forgetErased(): Promise<void> {
    const { contents, soFar } = this.#deps
    const shown = soFar.shownContents
    const found = await contents.get(shown)
    soFar.forget(new Set(shown.filter((id) => found.get(id)?.erased !== false)))
  }

  async stream(): Promise<void> {
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

  abort(): void {
    this.#abort?.abort()
    this.#abort = null
  }

  async #take(event: ModelStreamEvent, request: ReadyRequest, usage: Usage): Promise<void> {
    const { projector, deltas, submit, state } = this.#deps
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
        deltas.push(event.type, event.text)
        // The provider is read no faster than its words become durable.
        await deltas.room()
        return
      case 'usage':
        usage.prompt_tokens = event.promptTokens
        usage.completion_tokens = event.completionTokens
        usage.estimated = event.estimated
        return
      case 'finished':
        deltas.flushNow()
        await this.#keepQuirks(request)
        await this.#deps.pollCommands()
        submit({
          tag: 'model_finished',
          finish_reason: event.finishReason,
          usage,
          cost_micros: projector.costMicros({ prompt: usage.prompt_tokens, completion: usage.completion_tokens }),
          calls: this.#proposed(event, request),
        })
        return
      case 'interrupted':
        deltas.flushNow()
        submit({
          tag: 'model_interrupted',
          reason: interruptReason(event.code),
          code: event.code,
          provider_code: event.providerCode ?? null,
          settled_tokens: usage.estimated ? (state().effect?.reserved_tokens ?? 0) : usage.prompt_tokens + usage.completion_tokens,
        })
        return
      case 'failed':
        submit(this.#failureOf(event, request))
        return
    }
  }

  /** A message that was cut short proposes nothing: what is missing may be what matters (case E21). */
  #proposed({ finishReason, droppedToolCalls }: Extract<ModelStreamEvent, { type: 'finished' }>, request: ReadyRequest): ProposedCall[] {
    const isWhole = droppedToolCalls === 0 && finishReason !== 'length' && finishReason !== 'content_filter'
    const { calls, contents } = this.#deps.proposals.propose(isWhole && mayAct(this.#deps.run) ? this.#proposals : [], {
      tools: this.#shown,
      contents: request.shown,
    })
    this.#deps.hold(contents)
    this.#deps.soFar.keepTexts(contents)
    return calls
  }

  #failureOf(failure: ModelFailure, request: ReadyRequest): RunCommand {
    const { code, providerCode, status, retryable, retryAfterMs } = failure
    const rebuild = this.#usageOption.isRefusedBy(failure, request.body)
    const retryInMs = rebuild ? 0 : this.#deps.retryDelay({ retryable, retryAfterMs, tries: this.#deps.state().tries })
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
    const { report, run } = this.#deps
    await this.#usageOption.learnFrom(request.body).catch((error: unknown) => report(error, run.id))
  }
}
