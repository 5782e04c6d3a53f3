import type { FinishReason, ModelPurpose } from '#contracts/enums'

/** JSON as it travels to a model: schemas of tools and response formats. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }
export type JsonObject = { [key: string]: JsonValue }

/** A tool call as a provider writes it; the id is correlation only (K3). */
export type ChatToolCall = { id: string; type: 'function'; function: { name: string; arguments: string } }

export type ChatMessage =
  | { role: 'system' | 'developer' | 'user'; content: string; name?: string }
  | { role: 'assistant'; content: string | null; name?: string; reasoning_content?: string; tool_calls?: ChatToolCall[] }
  | { role: 'tool'; content: string; tool_call_id: string }

export type ChatTool = { type: 'function'; function: { name: string; description?: string; parameters?: JsonObject; strict?: boolean } }

export type ChatResponseFormat =
  | { type: 'text' | 'json_object' }
  | { type: 'json_schema'; json_schema: { name: string; schema: JsonObject; strict?: boolean; description?: string } }

/** The JSON object that is sent, in the provider's own names. Token limits in tokens. */
export type ChatRequestBody = {
  model: string
  messages: ChatMessage[]
  stream: boolean
  stream_options?: { include_usage: boolean }
  temperature?: number
  top_p?: number
  presence_penalty?: number
  frequency_penalty?: number
  max_tokens?: number
  max_completion_tokens?: number
  reasoning_effort?: string
  seed?: number
  stop?: string[]
  user?: string
  tools?: ChatTool[]
  tool_choice?: 'none' | 'auto' | 'required' | { type: 'function'; function: { name: string } }
  parallel_tool_calls?: boolean
  response_format?: ChatResponseFormat
}

/**
 * One try of one model call. `bodyText` is what goes over the wire, byte for byte (UTF-8), and must parse to `body`.
 * `bodyDigest` is the rebuild's own SHA-256 of that text (lower-case hex); without it the digest of `bodyText` is used. The adapter
 * compares it with the bytes that are about to leave (decision 20).
 */
export type ModelRequest = {
  body: ChatRequestBody
  bodyText: string
  bodyDigest?: string
  purpose: ModelPurpose
  signal: AbortSignal
}

/** An authoritative no, or a request that never left: recorded as llm.failed (K3). */
export type ModelFailureCode =
  | 'aborted'
  | 'bad_request'
  | 'connect_failed'
  | 'connection_refused'
  | 'context_too_long'
  | 'forbidden'
  | 'model_not_found'
  | 'name_not_resolved'
  | 'provider_error'
  | 'provider_unavailable'
  | 'quota_exhausted'
  | 'rate_limited'
  | 'redirect_refused'
  | 'tls_failed'
  | 'unauthorized'
  | 'unexpected_content'

/** The request may have been served, in part or whole; it is never replayed: recorded as llm.unknown (K3). */
export type ModelInterruptionCode =
  'aborted' | 'connection_lost' | 'ended_early' | 'garbage' | 'oversize' | 'provider_error' | 'response_timeout' | 'stalled'

export type ModelUsage = {
  promptTokens: number
  completionTokens: number
  cachedPromptTokens?: number
  reasoningTokens?: number
  /** True where our own upper bound stands in for the provider's count (decision 39). */
  estimated: boolean
}

/**
 * A failure. `providerCode` is a slug, else `other`; `detail` is the provider's own words, masked and cut to 1,000 characters: content,
 * never an event payload (decision 10). `retryAfterMs` only where the provider said so.
 */
export type ModelFailure = {
  type: 'failed'
  code: ModelFailureCode
  retryable: boolean
  status?: number
  providerCode?: string
  retryAfterMs?: number
  detail?: string
}

export type ModelInterruption = { type: 'interrupted'; code: ModelInterruptionCode; providerCode?: string; detail?: string }

/**
 * What one try yields, in order: `opened`? (`text` | `reasoning`)* `tool_call`* `usage`? then exactly one of
 * - `finished`: a finish_reason was seen (decision 40); `droppedToolCalls` counts calls cut off by a length or content limit, which are not published;
 * - `interrupted`: the outcome is unknown or partial, the text so far stands;
 * - `failed`: nothing was generated and no `text`, `reasoning` or `tool_call` was yielded.
 * Text never holds a lone surrogate, a NUL or a known secret. A tool call appears only when complete (decision 11).
 */
export type ModelStreamEvent =
  | { type: 'opened' }
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'tool_call'; index: number; providerId: string; name: string; argumentsText: string }
  | ({ type: 'usage' } & ModelUsage)
  | { type: 'finished'; finishReason: FinishReason; droppedToolCalls: number }
  | ModelInterruption
  | ModelFailure

/**
 * The only exit to a model. The iterator never throws for a provider's fault; it throws where our own request is not what was asserted
 * (decision 20). Leaving the loop early, or aborting the signal, closes the upstream connection.
 */
export interface ModelGateway {
  stream(request: ModelRequest): AsyncIterable<ModelStreamEvent>
}
