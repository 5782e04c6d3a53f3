import OpenAI, { APIError } from 'openai'
import type { Embedder } from '#kernel/ports/embedder'
import type { ModelFailureCode } from '#kernel/ports/model-gateway'
import { BodyTooLargeError, createHttpTransport, TransportError } from './http-transport.ts'
import { isDegenerate } from './lexical-embedder.ts'
import type { ModelEndpoint } from './openai-gateway.ts'
import { failureBeforeDispatch, failureOfStatus, isRecord, readProviderError, retryAfterOf } from './provider-fault.ts'

/** An embeddings call that gave no vectors. `retryable`: nothing was wrong with the request; `detail` is content, masked. */
export class EmbeddingFailedError extends Error {
  readonly code: ModelFailureCode | 'bad_answer' | 'connection_lost' | 'timeout' | 'dimensions_changed'
  readonly retryable: boolean
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined
  readonly detail: string | undefined
  constructor(
    fields: Pick<EmbeddingFailedError, 'code' | 'retryable'> & Partial<Pick<EmbeddingFailedError, 'status' | 'retryAfterMs' | 'detail'>>,
  ) {
    super(`The embeddings endpoint gave no vectors: ${fields.code}`)
    this.name = 'EmbeddingFailedError'
    this.code = fields.code
    this.retryable = fields.retryable
    this.status = fields.status
    this.retryAfterMs = fields.retryAfterMs
    this.detail = fields.detail
  }
}

export type OpenAiEmbedderOptions = {
  endpoint: ModelEndpoint
  model: string
  /** What the space is known to have; without it one short text is embedded to find out. At most 4,000 (the index's limit, decision 31). */
  dimensions?: number
  /** Texts per request. */
  batchSize?: number
  timeoutMs?: number
  signal?: AbortSignal
}

export type OpenAiEmbedder = Embedder & { close(): void }

const MAX_DIMENSIONS = 4_000
const slug = (text: string): string => text.replace(/[^A-Za-z0-9_.:/-]+/g, '-').slice(0, 48)

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

/**
 * The embedder behind any OpenAI-compatible `/embeddings` (LINGTAI_EMBEDDING_MODEL). Rejects with EmbeddingFailedError. Its SDK tries once:
 * trying again is the job's affair.
 */
export const createOpenAiEmbedder = async (options: OpenAiEmbedderOptions): Promise<OpenAiEmbedder> => {
  const { endpoint, model } = options
  const secrets = endpoint.apiKey === undefined ? [] : [endpoint.apiKey]
  const timeoutMs = options.timeoutMs ?? 60_000
  const batchSize = options.batchSize ?? 64
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

  const failureOf = (error: unknown): EmbeddingFailedError | undefined => {
    if (error instanceof APIError && typeof error.status === 'number') {
      const failure = failureOfStatus({
        status: error.status,
        error: readProviderError({ error: error.error }) ?? { code: undefined, status: undefined, message: error.message },
        retryAfterMs: retryAfterOf(error.headers ?? new Headers()),
        secrets,
      })
      return new EmbeddingFailedError(failure)
    }
    const cause = error instanceof APIError ? error.cause : error
    // Embedding the same texts twice harms nothing, so that an unknown outcome may be tried again (decision 20: consequence none).
    if (cause instanceof TransportError) {
      return new EmbeddingFailedError(failureBeforeDispatch(cause, cause.connected) ?? { code: 'connection_lost', retryable: true })
    }
    if (cause instanceof BodyTooLargeError || error instanceof SyntaxError)
      return new EmbeddingFailedError({ code: 'bad_answer', retryable: false })
    return undefined
  }

  const request = async (input: string[], signal: AbortSignal | undefined): Promise<number[][]> => {
    const timeout = AbortSignal.timeout(timeoutMs)
    try {
      const answer: unknown = await client.embeddings.create(
        { model, input, encoding_format: 'float' },
        { signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]), timeout: timeoutMs + 1_000 },
      )
      const vectors = readVectors(answer, input.length)
      if (vectors === undefined) throw new EmbeddingFailedError({ code: 'bad_answer', retryable: false })
      return vectors
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      if (timeout.aborted) throw new EmbeddingFailedError({ code: 'timeout', retryable: true })
      throw failureOf(error) ?? error
    }
  }

  const dimensions = options.dimensions ?? (await request(['dimensions'], options.signal))[0]?.length ?? 0
  if (dimensions < 1 || dimensions > MAX_DIMENSIONS) throw new EmbeddingFailedError({ code: 'bad_answer', retryable: false })

  return {
    space: { id: `${slug(model)}-${dimensions}`, model, version: 'v1', dimensions },
    isDegenerate,
    embed: async (texts, { signal } = {}) => {
      const vectors: Float32Array[] = []
      for (let from = 0; from < texts.length; from += batchSize) {
        // Some endpoints refuse an empty string; a space means as little.
        const batch = texts.slice(from, from + batchSize).map((text) => (text === '' ? ' ' : text))
        for (const values of await request(batch, signal)) {
          if (values.length !== dimensions) throw new EmbeddingFailedError({ code: 'dimensions_changed', retryable: false })
          vectors.push(normalised(values))
        }
      }
      return vectors
    },
    close: () => transport.close(),
  }
}
