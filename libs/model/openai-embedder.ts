import OpenAI, { APIError } from 'openai'
import { EMBEDDING_TEXTS_MAX, EMBEDDING_TIMEOUT_MS } from '#kernel/ports/embedder'
import type { EmbeddingEndpoint, EmbeddingOutcome } from '#kernel/ports/embedder'
import { BodyTooLargeError, createHttpTransport, TransportError } from './http-transport.ts'
import { isDegenerate } from './lexical-embedder.ts'
import type { ModelEndpoint } from './openai-gateway.ts'
import { failureBeforeDispatch, failureOfStatus, isRecord, readProviderError, retryAfterOf } from './provider-fault.ts'

export type OpenAiEmbeddingOptions = {
  endpoint: ModelEndpoint
  model: string
  timeoutMs?: number
}

export type OpenAiEmbeddingEndpoint = EmbeddingEndpoint & { close(): void }

const normalised = (values: number[]): Float32Array => {
  const norm = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0))
  return Float32Array.from(values, (value) => (norm === 0 ? 0 : value / norm))
}

/** Vectors in the order of the inputs; undefined where the answer is not what was asked for. */
const readVectors = (answer: unknown, count: number): number[][] | undefined => {
  const items: unknown[] = isRecord(answer) && Array.isArray(answer.data) ? answer.data : []
  if (items.length !== count) return undefined
  const vectors: number[][] = []
  for (const [at, item] of items.entries()) {
    if (!isRecord(item) || !Array.isArray(item.embedding) || item.embedding.length === 0) return undefined
    const index = item.index ?? at
    const values: unknown[] = item.embedding
    if (typeof index !== 'number' || !values.every((value) => typeof value === 'number' && Number.isFinite(value))) return undefined
    vectors[index] = values as number[]
  }
  return vectors.length === count && Object.keys(vectors).length === count ? vectors : undefined
}

/** Tokens as the provider counted them, or null. */
const readTokens = (answer: unknown): number | null => {
  const usage = isRecord(answer) && isRecord(answer.usage) ? answer.usage : {}
  const tokens = usage.total_tokens ?? usage.prompt_tokens
  return typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens >= 0 ? tokens : null
}

const unknown = (code: string, retryable: boolean): EmbeddingOutcome => ({ type: 'unknown', code, retryable })

/**
 * Any OpenAI-compatible `/embeddings` (LINGTAI_EMBEDDING_MODEL). Its SDK tries once. For the effect broker alone: whoever wants vectors asks
 * an Embedder (K3).
 */
export const createOpenAiEmbeddingEndpoint = (options: OpenAiEmbeddingOptions): OpenAiEmbeddingEndpoint => {
  const { endpoint, model } = options
  const secrets = endpoint.apiKey === undefined ? [] : [endpoint.apiKey]
  const timeoutMs = options.timeoutMs ?? EMBEDDING_TIMEOUT_MS
  const transport = createHttpTransport({
    body: 'buffered',
    sendAuthorization: endpoint.apiKey !== undefined,
    headers: endpoint.headers,
    lookup: endpoint.lookup,
    connectTimeoutMs: endpoint.connectTimeoutMs,
  })
  const client = new OpenAI({
    baseURL: endpoint.baseUrl,
    apiKey: endpoint.apiKey ?? 'none',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    maxRetries: 0,
    logLevel: 'off',
    fetch: transport.fetch,
  })

  /** Null: a fault of ours. */
  const outcomeOf = (error: unknown): EmbeddingOutcome | null => {
    if (error instanceof APIError && typeof error.status === 'number') {
      const { code, providerCode, status, retryable } = failureOfStatus({
        status: error.status,
        error: readProviderError({ error: error.error }) ?? { code: undefined, status: undefined, message: error.message },
        retryAfterMs: retryAfterOf(error.headers ?? new Headers()),
        secrets,
      })
      return { type: 'failed', code, providerCode: providerCode ?? null, status: status ?? null, retryable }
    }
    const cause = error instanceof APIError ? error.cause : error
    if (cause instanceof TransportError) {
      const failure = failureBeforeDispatch(cause, cause.connected)
      if (!failure) return unknown('connection_lost', true)
      return { type: 'failed', code: failure.code, providerCode: failure.providerCode ?? null, status: null, retryable: failure.retryable }
    }
    return cause instanceof BodyTooLargeError || error instanceof SyntaxError ? unknown('bad_answer', false) : null
  }

  return {
    model,
    isDegenerate,
    request: async (texts, { signal }) => {
      if (texts.length > EMBEDDING_TEXTS_MAX) throw new RangeError(`${texts.length} texts in one request, over ${EMBEDDING_TEXTS_MAX}`)
      const timeout = AbortSignal.timeout(timeoutMs)
      // Some endpoints refuse an empty string; a space means as little.
      const input = texts.map((text) => (text === '' ? ' ' : text))
      try {
        const answer: unknown = await client.embeddings.create(
          { model, input, encoding_format: 'float' },
          { signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]), timeout: timeoutMs + 1_000 },
        )
        const vectors = readVectors(answer, input.length)
        if (vectors === undefined) return unknown('bad_answer', false)
        return { type: 'done', vectors: vectors.map(normalised), tokens: readTokens(answer) }
      } catch (error) {
        if (signal?.aborted) return unknown('aborted', true)
        if (timeout.aborted) return unknown('timeout', true)
        const outcome = outcomeOf(error)
        if (!outcome) throw error
        return outcome
      }
    },
    close: () => transport.close(),
  }
}
