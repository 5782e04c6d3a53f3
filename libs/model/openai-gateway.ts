import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { LookupFunction } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import OpenAI, { APIError } from 'openai'
import type { ModelFailure, ModelGateway, ModelInterruptionCode, ModelRequest } from '#kernel/ports/model-gateway'
import { estimateTokens } from './estimate-tokens.ts'
import { createHttpTransport, TransportError } from './http-transport.ts'
import { failureBeforeDispatch, failureOfStatus, readProviderError, retryAfterOf } from './provider-fault.ts'
import { readCompletion, type StreamLimits } from './read-completion.ts'

/** The bytes that were about to leave are not the request that was asserted (decision 20). Nothing was sent. */
export class RequestMismatchError extends Error {
  readonly expected: string
  readonly actual: string
  constructor(digests: { expected: string; actual: string }) {
    super('The request that was about to be sent is not the one that was rebuilt')
    this.name = 'RequestMismatchError'
    this.expected = digests.expected
    this.actual = digests.actual
  }
}

/** Where a model lives. `apiKey` undefined = no authorization header (a local endpoint). */
export type ModelEndpoint = {
  /** With its `/v1`. */
  baseUrl: string
  apiKey?: string
  headers?: Record<string, string>
  /** Pins addresses (decision 34). */
  lookup?: LookupFunction
  connectTimeoutMs?: number
}

export type OpenAiGatewayOptions = {
  endpoint: ModelEndpoint
  /** Known secrets to mask in output (decision 37); the endpoint's own key is always among them. */
  secrets?: readonly string[]
  limits?: Partial<StreamLimits>
  /** Counts for the fallback usage; an upper bound. Default: estimateTokens. */
  countTokens?: (text: string) => number
}

export type OpenAiGateway = ModelGateway & {
  /** Gives idle connections back. Running streams go on. */
  close(): void
}

/**
 * Times in ms, sizes in characters. `firstByteTimeoutMs`: from dispatch to the first byte of the body; `idleTimeoutMs`: between bytes
 * afterwards; `finishGraceMs`: how long a usage chunk is waited for once a finish_reason was seen.
 */
export const DEFAULT_STREAM_LIMITS: StreamLimits = {
  firstByteTimeoutMs: 180_000,
  idleTimeoutMs: 60_000,
  finishGraceMs: 2_000,
  maxEventChars: 1_048_576,
  maxTotalChars: 33_554_432,
}

/** Carries the asserted digest from the call to the fetch; it never leaves the process. */
const DIGEST_HEADER = 'x-lingtai-request-digest'

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

const refuseOtherBytes = (bytes: Buffer, headers: Headers): void => {
  const expected = headers.get(DIGEST_HEADER) ?? 'none'
  const actual = sha256(bytes)
  if (expected !== actual) throw new RequestMismatchError({ expected, actual })
}

const assertTextIsBody = (request: ModelRequest, expected: string): void => {
  const serialised = JSON.stringify(request.body)
  if (serialised === request.bodyText) return
  let parsed: unknown
  try {
    parsed = JSON.parse(request.bodyText)
  } catch {
    parsed = undefined
  }
  if (isDeepStrictEqual(parsed, JSON.parse(serialised))) return
  throw new RequestMismatchError({ expected, actual: sha256(Buffer.from(serialised)) })
}

const rootCause = (error: unknown): unknown => (error instanceof APIError && error.cause !== undefined ? error.cause : error)

/**
 * The gateway to one OpenAI-compatible endpoint. One call = one dispatch: retries are the caller's, since each is an effect of its own.
 */
export const createOpenAiGateway = (options: OpenAiGatewayOptions): OpenAiGateway => {
  const { endpoint } = options
  const limits: StreamLimits = { ...DEFAULT_STREAM_LIMITS, ...options.limits }
  const secrets = endpoint.apiKey === undefined ? [...(options.secrets ?? [])] : [endpoint.apiKey, ...(options.secrets ?? [])]
  const transport = createHttpTransport({
    body: 'raw',
    sendAuthorization: endpoint.apiKey !== undefined,
    headers: endpoint.headers,
    lookup: endpoint.lookup,
    connectTimeoutMs: endpoint.connectTimeoutMs,
    beforeSend: refuseOtherBytes,
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

  /** Sends the request; answers with the open message, or with why there is none. Throws RequestMismatchError. */
  const open = async (
    request: ModelRequest,
    signal: AbortSignal,
  ): Promise<{ message: IncomingMessage; contentType: string } | ModelFailure | { unknown: true }> => {
    const bytes = Buffer.from(request.bodyText, 'utf8')
    const digest = request.bodyDigest ?? sha256(bytes)
    assertTextIsBody(request, digest)
    try {
      // The SDK passes bytes on as they are; its own serialisation of an object would be a second one to assert.
      const response = await client
        .post('/chat/completions', {
          body: bytes,
          headers: {
            'content-type': 'application/json',
            accept: request.body.stream ? 'text/event-stream' : 'application/json',
            [DIGEST_HEADER]: digest,
          },
          signal,
          timeout: limits.firstByteTimeoutMs + 60_000,
        })
        .asResponse()
      const message = transport.bodyOf(response)
      return message === undefined ? { unknown: true } : { message, contentType: response.headers.get('content-type') ?? '' }
    } catch (error) {
      const cause = rootCause(error)
      if (cause instanceof RequestMismatchError) throw cause
      if (error instanceof APIError && typeof error.status === 'number') {
        return failureOfStatus({
          status: error.status,
          error: readProviderError({ error: error.error }) ?? { code: undefined, status: undefined, message: error.message },
          retryAfterMs: retryAfterOf(error.headers ?? new Headers()),
          secrets,
        })
      }
      if (cause instanceof TransportError) return failureBeforeDispatch(cause, cause.connected) ?? { unknown: true }
      if (signal.aborted) return { unknown: true }
      throw error
    }
  }

  return {
    close: () => transport.close(),
    async *stream(request) {
      if (request.signal.aborted) {
        yield { type: 'failed', code: 'aborted', retryable: false }
        return
      }
      const exchange = new AbortController()
      let stopped: ModelInterruptionCode | undefined
      let message: IncomingMessage | undefined
      let endsByItself = false
      const stop = (code: ModelInterruptionCode): void => {
        stopped ??= code
        exchange.abort()
        message?.destroy()
      }
      const onAbort = (): void => stop('aborted')
      request.signal.addEventListener('abort', onAbort, { once: true })
      const opening = setTimeout(() => stop('response_timeout'), limits.firstByteTimeoutMs)
      const startedAt = performance.now()
      try {
        const opened = await open(request, exchange.signal)
        clearTimeout(opening)
        if ('type' in opened) yield opened
        else if ('unknown' in opened) yield { type: 'interrupted', code: stopped ?? 'connection_lost' }
        else {
          message = opened.message
          const firstByteMs = Math.max(1, limits.firstByteTimeoutMs - (performance.now() - startedAt))
          endsByItself = yield* readCompletion({
            message,
            contentType: opened.contentType,
            limits: { ...limits, firstByteTimeoutMs: firstByteMs },
            secrets,
            bodyText: request.bodyText,
            countTokens: options.countTokens ?? estimateTokens,
            stop,
            stopped: () => stopped,
          })
        }
      } finally {
        clearTimeout(opening)
        request.signal.removeEventListener('abort', onAbort)
        if (!endsByItself && message?.complete === false) message.destroy()
      }
    },
  }
}
