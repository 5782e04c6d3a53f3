import http from 'node:http'
import https from 'node:https'
import type { IncomingMessage } from 'node:http'
import type { LookupFunction } from 'node:net'

/** A socket error. `connected` = the connection stood, so that the other side may have read our bytes. */
export class TransportError extends Error {
  readonly connected: boolean
  readonly code: string
  constructor(cause: NodeJS.ErrnoException, connected: boolean) {
    super('The connection to the endpoint failed', { cause })
    this.name = 'TransportError'
    this.connected = connected
    this.code = cause.code ?? 'other'
  }
}

/** A body beyond the limit in bytes. */
export class BodyTooLargeError extends Error {
  readonly limit: number
  constructor(limit: number) {
    super(`The answer passes the limit of ${limit} bytes`)
    this.name = 'BodyTooLargeError'
    this.limit = limit
  }
}

export type HttpTransportOptions = {
  /** Headers that go out beside content type and authorization. The SDK's own (and any that the environment gave it) stay behind. */
  headers?: Record<string, string>
  sendAuthorization: boolean
  /** Pins addresses: resolve once, connect to that (decision 34). Redirects are never followed. */
  lookup?: LookupFunction
  maxSockets?: number
  /** Time for name, TCP and TLS together. */
  connectTimeoutMs?: number
  /** `raw`: a 2xx body is handed over unread by `bodyOf`; `buffered`: it is read into the Response, up to `maxBodyBytes`. */
  body: 'raw' | 'buffered'
  maxBodyBytes?: number
  /** Sees the exact bytes just before they leave, with the SDK's headers; throws to refuse. */
  beforeSend?: (bytes: Buffer, headers: Headers) => void
}

export type HttpTransport = {
  /** For the SDK. Rejects with TransportError, BodyTooLargeError, the abort reason, or what beforeSend threw. */
  fetch: typeof globalThis.fetch
  /** The unread body behind a Response of `raw` mode. */
  bodyOf(response: Response): IncomingMessage | undefined
  close(): void
}

/** Idle connections are given up early: a server that closes one while we write to it leaves an outcome nobody knows. */
const IDLE_SOCKET_MS = 4_000
const ERROR_BODY_BYTES = 65_536
const NULL_BODY_STATUS = new Set([204, 205, 304])

const bytesOf = (body: unknown): Buffer => {
  if (body === undefined || body === null) return Buffer.alloc(0)
  if (typeof body === 'string') return Buffer.from(body, 'utf8')
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  throw new TypeError('Only text and bytes can be sent to a model')
}

const headersOf = (message: IncomingMessage): Headers => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(message.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  }
  return headers
}

const readBounded = async (message: IncomingMessage, limit: number, cut: boolean): Promise<Uint8Array<ArrayBuffer>> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of message as AsyncIterable<Buffer>) {
    size += chunk.length
    chunks.push(chunk)
    if (size <= limit) continue
    if (!cut) throw new BodyTooLargeError(limit)
    break
  }
  return new Uint8Array(Buffer.concat(chunks).subarray(0, limit))
}

/**
 * HTTP for the SDK over node:http: addresses can be pinned, no redirect is followed, no environment is read, a stream's bytes come
 * without a detour (about a fifth less CPU a stream than the global fetch), and destroying the message closes the socket.
 */
export const createHttpTransport = (options: HttpTransportOptions): HttpTransport => {
  const agentOptions = { keepAlive: true, maxSockets: options.maxSockets ?? 512, timeout: IDLE_SOCKET_MS }
  const agents = { 'http:': new http.Agent(agentOptions), 'https:': new https.Agent(agentOptions) }
  const bodies = new WeakMap<Response, IncomingMessage>()

  const dispatch = (url: URL, init: { method: string; headers: Record<string, string>; bytes: Buffer; signal: AbortSignal | undefined }) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const secure = url.protocol === 'https:'
      let connected = false
      const request = (secure ? https : http).request(
        url,
        {
          method: init.method,
          headers: init.headers,
          agent: agents[secure ? 'https:' : 'http:'],
          lookup: options.lookup,
          signal: init.signal,
        },
        resolve,
      )
      const connecting = setTimeout(() => {
        request.destroy(Object.assign(new Error('No connection in time'), { code: 'ETIMEDOUT' }))
      }, options.connectTimeoutMs ?? 15_000)
      const onConnected = (): void => {
        connected = true
        clearTimeout(connecting)
      }
      request.on('socket', (socket) => {
        if (request.reusedSocket || socket.readyState === 'open') onConnected()
        else socket.once(secure ? 'secureConnect' : 'connect', onConnected)
      })
      request.on('upgrade', (_message, socket) => {
        socket.destroy()
        reject(new TransportError(Object.assign(new Error('Another protocol was answered with'), { code: 'HTTP_101' }), true))
      })
      request.on('close', () => {
        clearTimeout(connecting)
        // Without effect where the answer or an error came: no ending of a connection may leave its request open.
        reject(new TransportError(Object.assign(new Error('The connection closed'), { code: 'ECONNRESET' }), connected))
      })
      request.on('error', (error) => reject(init.signal?.aborted ? init.signal.reason : new TransportError(error, connected)))
      request.end(init.bytes)
    })

  const transportFetch: typeof globalThis.fetch = async (input, init) => {
    const given = new Headers(init?.headers)
    const bytes = bytesOf(init?.body)
    options.beforeSend?.(bytes, given)
    const headers: Record<string, string> = { accept: given.get('accept') ?? '*/*', 'user-agent': 'lingtai', ...options.headers }
    const authorization = given.get('authorization')
    if (options.sendAuthorization && authorization !== null) headers.authorization = authorization
    if (bytes.length > 0) {
      headers['content-type'] = 'application/json'
      headers['content-length'] = String(bytes.length)
    }
    const url = new URL(input instanceof Request ? input.url : input)
    const message = await dispatch(url, { method: init?.method ?? 'GET', headers, bytes, signal: init?.signal ?? undefined })
    const status = message.statusCode ?? 502
    const isSuccess = status >= 200 && status < 300
    const responseInit = { status: Math.max(200, status), headers: headersOf(message) }
    if (isSuccess && options.body === 'raw') {
      const response = new Response(null, responseInit)
      bodies.set(response, message)
      return response
    }
    try {
      const limit = isSuccess ? (options.maxBodyBytes ?? 64 * 1024 * 1024) : ERROR_BODY_BYTES
      const body = await readBounded(message, limit, !isSuccess)
      return new Response(NULL_BODY_STATUS.has(status) ? null : body, responseInit)
    } catch (error) {
      if (init?.signal?.aborted) throw init.signal.reason
      throw error instanceof BodyTooLargeError ? error : new TransportError(error as NodeJS.ErrnoException, true)
    }
  }

  return {
    fetch: transportFetch,
    bodyOf: (response) => bodies.get(response),
    close: () => {
      agents['http:'].destroy()
      agents['https:'].destroy()
    },
  }
}
