import { Readable } from 'node:stream'
import type { AddressGuard } from '../http/address-guard.ts'
import { RequestLostError, sendGuarded } from '../http/guarded-request.ts'

/** Most bytes that one answer of a server may have. */
export const MCP_ANSWER_MAX_BYTES = 4 * 1024 * 1024

/**
 * A fetch for the MCP transport that goes through the address guard, follows nothing and bounds what comes back. A server's own stream of
 * messages (GET) is not opened: nothing here listens to it. `now` is the signal of whatever is under way when a request begins.
 */
export function guardedFetch(guard: AddressGuard, now: () => AbortSignal): (url: string | URL, init?: RequestInit) => Promise<Response> {
  return async (address, init = {}) => {
    const method = init.method ?? 'GET'
    if (method === 'GET') return new Response(null, { status: 405 })
    const url = guard.read(String(address))
    const headers = Object.fromEntries(new Headers(init.headers))
    const body = typeof init.body === 'string' ? Buffer.from(init.body) : null
    const signal = now()
    const limited = init.signal ? AbortSignal.any([signal, init.signal]) : signal
    const message = await sendGuarded(guard, { url, method, headers, body, signal: limited })
    const status = message.statusCode ?? 502
    if (status >= 300 && status < 400) {
      message.destroy()
      throw new RequestLostError('redirect_refused')
    }
    const answer = new Headers()
    for (const [name, value] of Object.entries(message.headers)) if (value !== undefined) answer.set(name, String(value))
    const hasBody = ![204, 205, 304].includes(status) && status >= 200
    if (!hasBody) message.resume()
    return new Response(hasBody ? bounded(Readable.toWeb(message) as ReadableStream<Uint8Array>) : null, {
      status: Math.max(200, status),
      headers: answer,
    })
  }
}

function bounded(stream: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  let size = 0
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      size += chunk.byteLength
      if (size > MCP_ANSWER_MAX_BYTES) controller.error(new RequestLostError('answer_too_large'))
      else controller.enqueue(chunk)
    },
  })
  return stream.pipeThrough(counter)
}
