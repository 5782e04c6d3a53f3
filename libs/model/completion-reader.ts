import type { FinishReason } from '#contracts/enums'
import type { ModelStreamEvent, ModelUsage } from '#kernel/ports/model-gateway'
import { isRecord } from './provider-fault.ts'
import { cleanText, createTextChannel, type TextChannel } from './text-channel.ts'
import { maskSecrets } from './secret-mask.ts'

type CallParts = { providerId: string; name: string; argumentsText: string }

const FINISH_REASONS: Record<string, FinishReason> = {
  stop: 'stop',
  eos: 'stop',
  end_turn: 'stop',
  length: 'length',
  max_tokens: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'content_filter',
}

/** Reasons by which a provider says that it broke off: no end of an answer. */
const BROKEN_OFF = new Set(['error', 'abort', 'aborted', 'insufficient_system_resource'])

/** More parallel calls than any provider makes: an index beyond is ignored rather than trusted with memory. */
const MAX_TOOL_CALLS = 128

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined

const readUsage = (value: unknown): ModelUsage | undefined => {
  if (!isRecord(value)) return undefined
  const promptTokens = count(value.prompt_tokens)
  const completionTokens = count(value.completion_tokens)
  if (promptTokens === undefined || completionTokens === undefined) return undefined
  const cached = isRecord(value.prompt_tokens_details) ? count(value.prompt_tokens_details.cached_tokens) : undefined
  const reasoning = isRecord(value.completion_tokens_details) ? count(value.completion_tokens_details.reasoning_tokens) : undefined
  return { promptTokens, completionTokens, cachedPromptTokens: cached, reasoningTokens: reasoning, estimated: false }
}

/** Some providers send content as typed parts. */
const contentText = (content: unknown): unknown =>
  Array.isArray(content) ? content.map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : '')).join('') : content

/**
 * Reads chat completion chunks (or one whole completion) into events. Keeps what only the end decides: tool calls, usage, the finish
 * reason. Choices other than the first are ignored: we never ask for them.
 */
export class CompletionReader {
  finishReason: FinishReason | undefined
  /** Set where the provider itself says that it broke off. */
  brokenOff: string | undefined
  usage: ModelUsage | undefined
  /** Everything generated so far, for the fallback count: text, reasoning and arguments. */
  generated = ''
  readonly #secrets: readonly string[]
  readonly #channels: { text: TextChannel; reasoning: TextChannel }
  readonly #calls = new Map<number, CallParts>()

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets
    this.#channels = { text: createTextChannel(secrets), reasoning: createTextChannel(secrets) }
  }

  /** Whether anything was generated, shown or still held back. */
  get hasOutput(): boolean {
    return this.generated !== '' || this.#calls.size > 0
  }

  /** False where the value is no completion chunk at all. */
  read(value: unknown, emit: (event: ModelStreamEvent) => void): boolean {
    if (!isRecord(value)) return false
    this.usage = readUsage(value.usage) ?? this.usage
    // A chunk without choices carries usage, a filter's notes or nothing (case T10).
    if (value.choices === undefined || value.choices === null) return true
    if (!Array.isArray(value.choices)) return false
    for (const choice of value.choices) {
      if (!isRecord(choice) || (choice.index !== undefined && choice.index !== 0 && choice.index !== null)) continue
      const delta = isRecord(choice.delta) ? choice.delta : isRecord(choice.message) ? choice.message : {}
      this.#readDelta('reasoning', delta.reasoning_content ?? delta.reasoning, emit)
      this.#readDelta('text', contentText(delta.content), emit)
      this.#readDelta('text', delta.refusal, emit)
      if (Array.isArray(delta.tool_calls)) delta.tool_calls.forEach((part, at) => this.#readCall(part, at))
      // An empty string or null is no end (case S6).
      if (typeof choice.finish_reason !== 'string' || choice.finish_reason === '') continue
      if (BROKEN_OFF.has(choice.finish_reason)) this.brokenOff = choice.finish_reason
      else this.finishReason = FINISH_REASONS[choice.finish_reason] ?? 'other'
    }
    return true
  }

  /** Yields what was held back in the text channels. Call once, when the stream is over. */
  flushText(emit: (event: ModelStreamEvent) => void): void {
    for (const channel of ['reasoning', 'text'] as const) {
      const rest = this.#channels[channel].flush()
      if (rest !== '') emit({ type: channel, text: rest })
    }
  }

  /** Publishes the complete tool calls; returns how many were dropped because a limit cut the message (case E21). */
  finishCalls(emit: (event: ModelStreamEvent) => void): number {
    if (this.finishReason === 'length' || this.finishReason === 'content_filter') return this.#calls.size
    for (const [index, call] of [...this.#calls].sort(([a], [b]) => a - b)) {
      emit({
        type: 'tool_call',
        index,
        providerId: cleanText(call.providerId),
        name: cleanText(call.name),
        argumentsText: maskSecrets(cleanText(call.argumentsText), this.#secrets),
      })
    }
    return 0
  }

  #readDelta(channel: 'text' | 'reasoning', value: unknown, emit: (event: ModelStreamEvent) => void): void {
    if (typeof value !== 'string' || value === '') return
    this.generated += value
    const text = this.#channels[channel].push(value)
    if (text !== '') emit({ type: channel, text })
  }

  #readCall(part: unknown, at: number): void {
    if (!isRecord(part)) return
    const index = count(part.index) ?? at
    if (index >= MAX_TOOL_CALLS) return
    const call = this.#calls.get(index) ?? { providerId: '', name: '', argumentsText: '' }
    const made = isRecord(part.function) ? part.function : {}
    if (typeof part.id === 'string' && part.id !== '') call.providerId = part.id
    if (typeof made.name === 'string' && call.name === '') call.name = made.name
    if (typeof made.arguments === 'string') {
      call.argumentsText += made.arguments
      this.generated += made.arguments
    }
    this.#calls.set(index, call)
  }
}
