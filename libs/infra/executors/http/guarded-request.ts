import http from 'node:http'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import type { LookupFunction } from 'node:net'
import { AddressRefusedError, hostOf } from './address-guard.ts'
import type { AddressGuard, PinnedAddress } from './address-guard.ts'

/** Nothing left this machine for certain; `code` is a slug. */
export class RequestNotSentError extends Error {
  override readonly name = 'RequestNotSentError'
  readonly code: string

  constructor(code: string, options?: ErrorOptions) {
    super(`the request was not sent: ${code}`, options)
    this.code = code
  }
}

/** The request may have arrived, and no answer came; `code` is a slug. */
export class RequestLostError extends Error {
  override readonly name = 'RequestLostError'
  readonly code: string

  constructor(code: string, options?: ErrorOptions) {
    super(`no answer came: ${code}`, options)
    this.code = code
  }
}

export type GuardedRequest = {
  url: URL
  method: string
  /** Lower-case names. `host`, `content-length` and `accept-encoding` are ours. */
  headers: Readonly<Record<string, string>>
  body: Uint8Array | null
  /** Covers everything up to the answer's head; the body's reader listens to it as well. */
  signal: AbortSignal
}

/** Passing codes of sockets as slugs of ours. */
const socketCodes: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_lost',
  EPIPE: 'connection_lost',
  ETIMEDOUT: 'connect_failed',
  EHOSTUNREACH: 'connect_failed',
  ENETUNREACH: 'connect_failed',
}

/**
 * Sends one request to the one address that the guard allows, and answers with the head of whatever came back: no redirect is followed, no
 * connection is kept or shared, no proxy setting is read. Throws RequestNotSentError or RequestLostError.
 */
export async function sendGuarded(guard: AddressGuard, request: GuardedRequest): Promise<IncomingMessage> {
  const address = await pin(guard, request)
  return dispatch(request, address)
}

async function pin(guard: AddressGuard, { url, signal }: GuardedRequest): Promise<PinnedAddress> {
  try {
    return await unlessAborted(guard.pin(url), signal)
  } catch (error) {
    if (error instanceof AddressRefusedError) throw new RequestNotSentError(error.code, { cause: error })
    if (signal.aborted) throw new RequestNotSentError(abortCode(signal), { cause: error })
    throw error
  }
}

/** The promise, or RequestNotSentError the moment the signal aborts: for what comes before a request and cannot be taken back. */
export function unlessAborted<Result>(promise: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(new RequestNotSentError(abortCode(signal)))
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

function dispatch(request: GuardedRequest, pinned: PinnedAddress): Promise<IncomingMessage> {
  const { url, method, headers, body, signal } = request
  const secure = url.protocol === 'https:'
  return new Promise((resolve, reject) => {
    let connected = false
    const sent = (secure ? https : http).request(
      url,
      {
        method,
        agent: false,
        lookup: only(pinned),
        signal,
        headers: {
          ...headers,
          'accept-encoding': 'identity',
          ...(body === null ? {} : { 'content-length': String(body.byteLength) }),
        },
        // The name in the certificate is the URL's; an address has none to send.
        ...(secure && !/^[\d.]+$|:/.test(hostOf(url)) ? { servername: hostOf(url) } : {}),
      },
      resolve,
    )
    // Nobody here asked for another protocol: it is an answer like any other status that nobody understands.
    sent.on('upgrade', (_message, socket) => {
      socket.destroy()
      reject(new RequestLostError('http_101'))
    })
    // A connection that ends in a way that is told by nothing else still ends the request.
    sent.on('close', () => reject(connected ? new RequestLostError('connection_lost') : new RequestNotSentError('connect_failed')))
    // From here on the other side may have read something.
    sent.on('socket', (socket) => socket.once(secure ? 'secureConnect' : 'connect', () => (connected = true)))
    sent.on('error', (error: NodeJS.ErrnoException) => {
      const code = signal.aborted ? abortCode(signal) : codeOf(error, connected)
      reject(connected ? new RequestLostError(code, { cause: error }) : new RequestNotSentError(code, { cause: error }))
    })
    sent.end(body ?? undefined)
  })
}

/** Answers every question for an address with the one that was judged. */
function only({ address, family }: PinnedAddress): LookupFunction {
  return (_hostname, options, answer) => {
    if (options.all) answer(null, [{ address, family }])
    else answer(null, address, family)
  }
}

function abortCode(signal: AbortSignal): string {
  return signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError' ? 'timeout' : 'aborted'
}

function codeOf(error: NodeJS.ErrnoException, connected: boolean): string {
  const code = error.code ?? ''
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|UNABLE_|SELF_SIGNED|EPROTO|HOSTNAME)/.test(code)) return 'tls_failed'
  if (code.startsWith('HPE_')) return 'answer_malformed'
  return socketCodes[code] ?? (connected ? 'connection_lost' : 'connect_failed')
}

export type BoundedBody = {
  bytes: Uint8Array
  /** The body went on beyond the limit, or ended before its end: `bytes` is its beginning. */
  cut: 'limit' | 'lost' | 'timeout' | 'aborted' | null
}

/** Reads a body up to a limit in bytes and lets go of the connection. Never throws: what came is told, and why it is not all. */
export async function readBounded(message: IncomingMessage, limit: number, signal: AbortSignal): Promise<BoundedBody> {
  const chunks: Buffer[] = []
  let size = 0
  let cut: BoundedBody['cut'] = null
  const stop = (): void => void message.destroy()
  signal.addEventListener('abort', stop, { once: true })
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.byteLength
      if (size > limit) {
        cut = 'limit'
        break
      }
    }
    if (cut === null && !message.complete) cut = 'lost'
  } catch {
    cut = 'lost' // whatever broke the stream, what matters is that the rest is missing
  } finally {
    signal.removeEventListener('abort', stop)
    message.destroy()
  }
  if (cut === 'lost' && signal.aborted) cut = abortCode(signal) === 'timeout' ? 'timeout' : 'aborted'
  return { bytes: Buffer.concat(chunks).subarray(0, limit), cut }
}
