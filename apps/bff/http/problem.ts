import { STATUS_CODES } from 'node:http'
import { errorCodes, LingtaiError } from '#contracts'
import type { ErrorCode, Problem } from '#contracts'
import { StreamQuarantinedError } from '#kernel/ports/event-log'

/** An error as an RFC 9457 problem. `data` and field errors only from our own refusals, so that nothing of the inside leaks. */
export function problemOf(error: LingtaiError, traceId: string): Problem {
  const { status, title, action } = errorCodes[error.code]
  return {
    type: `urn:lingtai:problem:${error.code}`,
    title,
    status,
    code: error.code,
    detail: error.message,
    action,
    trace_id: traceId,
    ...(error.errors.length > 0 ? { errors: [...error.errors] } : {}),
    ...(Object.keys(error.data).length > 0 ? { data: { ...error.data } } : {}),
  }
}

/** Database answers that mean "try again shortly": no connection, no free one, serialisation, deadlock, shutting down. */
const passingPrismaCodes: ReadonlySet<string> = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028', 'P2034', 'P2037'])
const passingSqlStates: ReadonlySet<string> = new Set([
  '40001',
  '40P01',
  '53300',
  '57P01',
  '57P02',
  '57P03',
  '08000',
  '08003',
  '08006',
  '08001',
])
const passingSystemCodes: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOENT'])

/** What the triggers of the schema refuse, where a service did not see it coming (prisma/migrations, LT0xx). */
const triggerStates: Readonly<Record<string, ErrorCode>> = {
  LT003: 'invariant_refused',
  LT004: 'candidate_open',
  LT005: 'invariant_refused',
  LT009: 'invariant_refused',
  LT010: 'wrong_state',
}

/**
 * Any error as one of ours: refusals stay, what the database knows better becomes a conflict or a refusal, what will pass becomes
 * `unavailable`, the rest is `internal_error` with no word of its cause.
 */
export function asLingtaiError(error: unknown): LingtaiError {
  if (error instanceof LingtaiError) return error
  if (error instanceof StreamQuarantinedError) return new LingtaiError('chain_broken', undefined, { cause: error })
  const status = statusOf(error)
  if (status !== undefined && status < 500) return fromStatus(status, error)
  const state = sqlStateOf(error)
  const prismaCode = codeOf(error)
  if (prismaCode === 'P2002' || state === '23505')
    return new LingtaiError('conflict', undefined, { errors: [{ path: 'body', message: 'exists already' }], cause: error })
  const refusal = state === undefined ? undefined : triggerStates[state]
  if (refusal !== undefined) return new LingtaiError(refusal, undefined, { cause: error })
  if (isPassing({ state, code: prismaCode })) return new LingtaiError('unavailable', undefined, { cause: error })
  return new LingtaiError('internal_error', undefined, { cause: error })
}

function isPassing({ state, code }: { state: string | undefined; code: string | undefined }): boolean {
  if (state !== undefined && passingSqlStates.has(state)) return true
  return code !== undefined && (passingPrismaCodes.has(code) || passingSystemCodes.has(code))
}

function codeOf(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** The SQLSTATE of a database error, wherever Prisma's adapter has put it. */
function sqlStateOf(error: unknown): string | undefined {
  for (let at: unknown = error, depth = 0; typeof at === 'object' && at !== null && depth < 5; depth++) {
    for (const name of ['originalCode', 'code'] as const) {
      const value = (at as Record<string, unknown>)[name]
      if (typeof value === 'string' && /^[0-9A-Z]{5}$/.test(value) && !/^P\d{4}$/.test(value)) return value
    }
    const inner = at as { cause?: unknown; meta?: { driverAdapterError?: unknown } }
    at = inner.cause ?? inner.meta?.driverAdapterError
  }
  return undefined
}

/** The HTTP status of an error of the framework or its parts (an unknown route, a path that cannot be decoded). */
function statusOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('getStatus' in error && typeof error.getStatus === 'function') return Number(error.getStatus())
  if ('status' in error && typeof error.status === 'number' && STATUS_CODES[error.status] !== undefined) return error.status
  return error instanceof URIError ? 400 : undefined
}

function fromStatus(status: number, cause: unknown): LingtaiError {
  if (status === 404) return new LingtaiError('not_found', undefined, { cause })
  if (status === 405) return new LingtaiError('method_not_allowed', undefined, { cause })
  if (status === 413) return new LingtaiError('payload_too_large', undefined, { cause })
  if (status === 415) return new LingtaiError('unsupported_media_type', undefined, { cause })
  return new LingtaiError('validation_failed', undefined, { errors: [{ path: 'path', message: 'cannot be read' }], cause })
}
