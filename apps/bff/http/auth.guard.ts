import type { CanActivate, ExecutionContext } from '@nestjs/common'
import type { Request, Response } from 'express'
import { LingtaiError } from '#contracts'
import type { Authenticator } from '#domains/identity/authenticator'
import { allows } from '#domains/identity/principal'
import type { Principal } from '#domains/identity/principal'
import type { Clock } from '#kernel/ports/clock'
import { routeOf } from './api-route.ts'
import { checkOrigin, checkOriginIfAny } from './origin-check.ts'
import { ConcurrencyLimiter, RateLimiter } from './rate-limiter.ts'
import type { Rate } from './rate-limiter.ts'
import { stateOf } from './request-state.ts'
import { sessionSecretOf } from './session-cookie.ts'

export type Limits = {
  /** Per owner. */
  owner: Rate
  /** Per address, for requests without valid credentials. */
  stranger: Rate
  /** Requests of one owner in flight, streams among them. */
  inFlight: number
}

export const DEFAULT_LIMITS: Limits = { owner: { perSecond: 200, burst: 1000 }, stranger: { perSecond: 20, burst: 200 }, inFlight: 512 }

/** Who asks, whether they may, and whether it is not too much at once. */
export class AuthGuard implements CanActivate {
  readonly #authenticator: Authenticator
  readonly #clock: Clock
  readonly #owners: RateLimiter
  readonly #strangers: RateLimiter
  readonly #inFlight: ConcurrencyLimiter

  constructor({ authenticator, clock, limits }: { authenticator: Authenticator; clock: Clock; limits: Limits }) {
    this.#authenticator = authenticator
    this.#clock = clock
    this.#owners = new RateLimiter(limits.owner)
    this.#strangers = new RateLimiter(limits.stranger)
    this.#inFlight = new ConcurrencyLimiter(limits.inFlight)
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>()
    const response = context.switchToHttp().getResponse<Response>()
    const route = routeOf(context.getHandler())
    if (!route) throw new Error('a handler without ApiRoute')
    const state = stateOf(request)
    state.route = route.path
    if (route.access === 'public') {
      if (!route.isMutation) return true
      checkOriginIfAny(request)
      this.#limitStranger(request)
      return true
    }
    const principal = await this.#identify(request)
    if (!principal) {
      this.#limitStranger(request)
      response.setHeader('WWW-Authenticate', 'Bearer realm="lingtai"')
      throw new LingtaiError('not_signed_in')
    }
    state.principal = principal
    if (route.isMutation && principal.credential.kind === 'session') checkOrigin(request)
    this.#limitOwner(principal, response)
    if (!allows(principal, route.access)) {
      throw new LingtaiError(
        'forbidden_scope',
        `This needs the scope ${route.access}${route.access === 'admin' ? ' and the role admin' : ''}.`,
        {
          data: { scope: route.access },
        },
      )
    }
    return true
  }

  async #identify(request: Request): Promise<Principal | null> {
    const { authorization } = request.headers
    if (authorization !== undefined) {
      const token = /^Bearer +([!-~]{1,512})$/i.exec(authorization)?.[1]
      return token === undefined ? null : this.#authenticator.byToken(token)
    }
    const secret = sessionSecretOf(request)
    return secret === null || secret === '' ? null : this.#authenticator.bySession(secret)
  }

  #limitStranger(request: Request): void {
    refuseIfLate(this.#strangers.take(request.socket.remoteAddress ?? '', this.#clock.now().getTime()))
  }

  #limitOwner(principal: Principal, response: Response): void {
    refuseIfLate(this.#owners.take(principal.ownerId, this.#clock.now().getTime()))
    const release = this.#inFlight.enter(principal.ownerId)
    if (!release) throw tooMany(1)
    response.once('close', release)
  }
}

function refuseIfLate(milliseconds: number): void {
  if (milliseconds > 0) throw tooMany(Math.ceil(milliseconds / 1000))
}

function tooMany(seconds: number): LingtaiError {
  return new LingtaiError('rate_limited', `Try again in ${seconds} s.`, { data: { retry_after_seconds: seconds } })
}
