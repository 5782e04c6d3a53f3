import type { ModelFailure, ModelFailureCode } from '#kernel/ports/model-gateway'
import { cleanText } from './text-channel.ts'
import { maskSecrets } from './secret-mask.ts'

/** What a provider said was wrong, whatever the shape it said it in. */
export type ProviderError = { code: string | undefined; status: number | undefined; message: string }

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : undefined

/** A provider's code as events may hold it (decision 10). */
export const providerSlug = (code: string | undefined): string | undefined =>
  code === undefined ? undefined : /^[A-Za-z0-9_.:/-]{1,64}$/.test(code) ? code : 'other'

/** Reads `{error: {...}}`, `{error: "..."}`, or, where `bare`, the object itself; undefined where it tells of no error. */
export const readProviderError = (value: unknown, { bare = false } = {}): ProviderError | undefined => {
  if (!isRecord(value)) return undefined
  const error = value.error ?? (bare ? value : undefined)
  if (error === undefined || error === null || error === false || error === '') return undefined
  if (isRecord(error) && Object.keys(error).length === 0) return undefined
  if (!isRecord(error)) return { code: undefined, status: undefined, message: typeof error === 'string' ? error : JSON.stringify(error) }
  const numeric = [error.code, error.status, value.status, value.code].map(Number).find((code) => code >= 400 && code <= 599)
  return {
    code: textOf(error.code) ?? textOf(error.type) ?? textOf(value.code),
    status: numeric,
    message: textOf(error.message) ?? textOf(error.detail) ?? '',
  }
}

const CONTEXT_TOO_LONG = /context_length|context_window|maximum context|context length|too many tokens|prompt is too long/i
const QUOTA = /insufficient_quota|billing|credit/i
const BUSY = /rate.?limit|too_many_requests|overloaded|capacity|unavailable|server_error|internal_error|timeout/i

const codeOfStatus = (status: number, error: ProviderError): ModelFailureCode => {
  if (status === 429) return QUOTA.test(error.code ?? '') ? 'quota_exhausted' : 'rate_limited'
  if (status >= 500) return 'provider_unavailable'
  if (status >= 300 && status < 400) return 'redirect_refused'
  if (status === 401) return 'unauthorized'
  if (status === 402) return 'quota_exhausted'
  if (status === 403) return 'forbidden'
  if (status === 404) return 'model_not_found'
  if (status === 413 || CONTEXT_TOO_LONG.test(`${error.code} ${error.message}`)) return 'context_too_long'
  return 'bad_request'
}

/** A provider's own words, safe to keep as content: masked, well-formed, at most 1,000 characters. */
export const failureDetail = (message: string, secrets: readonly string[]): string | undefined =>
  message === '' ? undefined : maskSecrets(cleanText(message.slice(0, 1_000)).toWellFormed(), secrets)

/** An answer whose status is no 2xx: an authoritative no (K3). 429 and 5xx may be tried again as a new effect. */
export const failureOfStatus = (args: {
  status: number
  error: ProviderError | undefined
  retryAfterMs: number | undefined
  secrets: readonly string[]
}): ModelFailure => {
  const error = args.error ?? { code: undefined, status: undefined, message: '' }
  const code = codeOfStatus(args.status, error)
  return {
    type: 'failed',
    code,
    retryable: code === 'rate_limited' || code === 'provider_unavailable',
    status: args.status,
    providerCode: providerSlug(error.code),
    retryAfterMs: args.retryAfterMs,
    detail: failureDetail(error.message, args.secrets),
  }
}

/**
 * An error object instead of an answer under status 200 (case S5): failed with the provider's code. It may be tried again only where
 * the provider says in its own code that it was busy, since nothing was generated.
 */
export const failureOfErrorObject = (error: ProviderError, secrets: readonly string[]): ModelFailure => {
  const busy = error.status === undefined ? BUSY.test(error.code ?? '') : error.status === 429 || error.status >= 500
  return {
    type: 'failed',
    code: 'provider_error',
    retryable: busy && !QUOTA.test(error.code ?? ''),
    status: error.status,
    providerCode: providerSlug(error.code) ?? 'other',
    detail: failureDetail(error.message, secrets),
  }
}

const NOT_SENT: Record<string, ModelFailureCode> = {
  ECONNREFUSED: 'connection_refused',
  ENOTFOUND: 'name_not_resolved',
  EAI_AGAIN: 'name_not_resolved',
  EHOSTUNREACH: 'connect_failed',
  ENETUNREACH: 'connect_failed',
  EADDRNOTAVAIL: 'connect_failed',
  EMFILE: 'connect_failed',
  EPROTO: 'tls_failed',
}

/**
 * Classifies a socket error before any header came. Where the connection never stood the request was not sent: failed. Otherwise the
 * provider may be working on it: undefined, the caller says interrupted (K3). `connected` = the socket was ready for our bytes.
 */
export const failureBeforeDispatch = (error: unknown, connected: boolean): ModelFailure | undefined => {
  if (connected) return undefined
  const code = isRecord(error) && typeof error.code === 'string' ? error.code : ''
  const failure: ModelFailureCode = NOT_SENT[code] ?? (/CERT|TLS|SSL|SELF_SIGNED|ISSUER/.test(code) ? 'tls_failed' : 'connect_failed')
  return { type: 'failed', code: failure, retryable: failure !== 'tls_failed', providerCode: providerSlug(code === '' ? undefined : code) }
}

/** Retry-After in milliseconds: seconds, or a date measured against the provider's own clock; undefined where absent or unreadable. */
export const retryAfterOf = (headers: Headers): number | undefined => {
  const milliseconds = Number(headers.get('retry-after-ms') ?? Number.NaN)
  if (Number.isFinite(milliseconds) && milliseconds >= 0) return Math.ceil(milliseconds)
  const value = headers.get('retry-after')
  if (value === null || value.trim() === '') return undefined
  const seconds = Number(value)
  if (Number.isFinite(seconds)) return seconds >= 0 ? Math.ceil(seconds * 1_000) : undefined
  const until = Date.parse(value)
  const now = Date.parse(headers.get('date') ?? '')
  return Number.isNaN(until) ? undefined : Math.max(0, until - (Number.isNaN(now) ? Date.now() : now))
}
