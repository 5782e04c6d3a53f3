import type { NextFunction, Request, Response } from 'express'
import { LingtaiError } from '#contracts'
import type { Bind } from '#infra/config/config'
import type { Ids } from '#kernel/ports/clock'
import type { HttpMetrics } from '../operations/http-metrics.ts'
import { isKnownHost } from './host-check.ts'
import { beginRequest } from './request-state.ts'

/**
 * What the page may do: run and load what comes from here, and nothing else. Pictures may also come out of the page itself (previews).
 */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const securityHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': PAGE_POLICY,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=()',
  'Cache-Control': 'no-store',
}

/** The first thing a request meets: it gets its trace id and the answer its headers, and a foreign host goes no further. */
export function edgeMiddleware({ ids, bind, metrics }: { ids: Ids; bind: Bind; metrics: HttpMetrics }) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const state = beginRequest(request, ids.next())
    const end = metrics.begin()
    response.once('close', () => end({ method: request.method, route: state.route ?? 'none', status: response.statusCode }))
    for (const [name, value] of Object.entries(securityHeaders)) response.setHeader(name, value)
    response.setHeader('X-Trace-Id', state.traceId)
    if (isKnownHost(request.headers.host, bind)) next()
    else next(new LingtaiError('host_refused', undefined, { errors: [{ path: 'headers.host', message: 'is no name of this server' }] }))
  }
}
