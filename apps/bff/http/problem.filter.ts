import { Catch } from '@nestjs/common'
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common'
import type { Request, Response } from 'express'
import type { Logger } from 'pino'
import { LingtaiError } from '#contracts'
import type { RouteDefinition } from './api-route.ts'
import { asLingtaiError, problemOf } from './problem.ts'
import { stateOf } from './request-state.ts'

/** Every error, from wherever, as problem+json; what is our fault goes to the log with its cause and the same trace id. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  readonly #logger: Logger
  readonly #routes: readonly { matches: RegExp; method: string }[]

  constructor(parts: { logger: Logger; routes: readonly RouteDefinition[] }) {
    this.#logger = parts.logger
    this.#routes = parts.routes.map((route) => ({ matches: pathPattern(route.path), method: route.method }))
  }

  catch(caught: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>()
    const response = host.switchToHttp().getResponse<Response>()
    const state = stateOf(request)
    const known = asLingtaiError(caught)
    const allowed = known.code === 'not_found' && state.route === null ? this.#methodsOf(request.path) : []
    const error =
      allowed.length > 0
        ? new LingtaiError('method_not_allowed', `${request.method} is not allowed here; ${allowed.join(', ')} is.`)
        : known
    const problem = problemOf(error, state.traceId)
    if (problem.status >= 500) {
      this.#logger.error(
        { trace_id: state.traceId, method: request.method, route: state.route, code: error.code, err: error.cause ?? caught },
        'request failed',
      )
    }
    if (response.headersSent) {
      // A stream that has begun cannot turn into a problem: it is cut, and its reader resumes.
      response.destroy()
      return
    }
    if (allowed.length > 0) response.setHeader('Allow', allowed.join(', '))
    const retryAfter = error.code === 'unavailable' ? 1 : error.data['retry_after_seconds']
    if (typeof retryAfter === 'number') response.setHeader('Retry-After', String(retryAfter))
    if (hasUnreadBody(request)) {
      // What is left of the body is thrown away, and the connection ends with the answer.
      response.setHeader('Connection', 'close')
      request.resume()
    }
    response.status(problem.status).type('application/problem+json').send(JSON.stringify(problem))
  }

  #methodsOf(path: string): string[] {
    return [...new Set(this.#routes.filter((route) => route.matches.test(path)).map((route) => route.method))].sort()
  }
}

function hasUnreadBody(request: Request): boolean {
  const announced = request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
  return announced && !request.readableEnded
}

/** The paths of a documented path: `/v1/runs/{id}` matches `/v1/runs/x`. */
export function pathPattern(path: string): RegExp {
  const pieces = path.split(/\{\w+\}/).map((piece) => piece.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${pieces.join('[^/]+')}/?$`)
}
