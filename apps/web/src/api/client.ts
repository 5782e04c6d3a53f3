import type { ErrorCode, Problem } from '#contracts'

/** A refusal by the server in its own words (RFC 9457). */
export class ApiProblem extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.name = 'ApiProblem'
    this.problem = problem
  }

  get code(): ErrorCode {
    return this.problem.code
  }
}

/** The server did not answer at all; nothing is known about what it did. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('the server did not answer', { cause })
    this.name = 'Unreachable'
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>

type RequestOptions = {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  query?: Query
  /** Sent as JSON. */
  json?: unknown
  /** Sent as it is, with its own media type. */
  raw?: { body: Blob; type: string }
  signal?: AbortSignal
}

const retryDelays = [400, 1500]
let onSessionLost: () => void = () => undefined

/** Calls back when the server no longer knows this browser. */
export function listenForLostSession(listener: () => void): void {
  onSessionLost = listener
}

/** A random key; `crypto.randomUUID` is missing on plain-http addresses other than loopback. */
export function randomKey(): string {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export function withQuery(path: string, query: Query = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value))
  }
  const text = search.toString()
  return text === '' ? path : `${path}?${text}`
}

/**
 * One call to the API. A mutation carries an Idempotency-Key, so that a try repeated after a network fault acts once (decision 30).
 * Throws ApiProblem, Unreachable, or the signal's abort reason.
 */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const method = options.method ?? 'GET'
  const headers: Record<string, string> = { accept: 'application/json' }
  if (method !== 'GET') headers['idempotency-key'] = randomKey()
  if (options.json !== undefined) headers['content-type'] = 'application/json'
  if (options.raw !== undefined) headers['content-type'] = options.raw.type
  const body = options.raw?.body ?? (options.json === undefined ? undefined : JSON.stringify(options.json))

  for (let attempt = 0; ; attempt += 1) {
    const delay = retryDelays[attempt]
    try {
      const response = await fetch(withQuery(path, options.query), {
        method,
        headers,
        body,
        signal: options.signal,
        credentials: 'same-origin',
      })
      if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T
      const problem = await problemOf(response)
      if (problem.status === 503 && delay !== undefined) {
        await pause(delay, options.signal)
        continue
      }
      if (problem.code === 'not_signed_in') onSessionLost()
      throw new ApiProblem(problem)
    } catch (error) {
      if (error instanceof ApiProblem || options.signal?.aborted === true) throw error
      if (delay === undefined) throw new Unreachable(error)
      await pause(delay, options.signal)
    }
  }
}

/** The problem in a refused response; a body that is none (a proxy's page) becomes one. */
export async function problemOf(response: Response): Promise<Problem> {
  const type = response.headers.get('content-type') ?? ''
  if (type.includes('json')) {
    const body: unknown = await response.json().catch(() => null) // a broken body falls through to the problem made below
    if (typeof body === 'object' && body !== null && 'code' in body && 'status' in body) return body as Problem
  }
  const code: ErrorCode =
    response.status === 503 || response.status === 502 ? 'unavailable' : response.status === 404 ? 'not_found' : 'internal_error'
  return {
    type: 'about:blank',
    title: response.statusText,
    status: response.status,
    code,
    detail: `${response.status} ${response.statusText}`,
    action: '',
    trace_id: '',
  }
}

function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
}
