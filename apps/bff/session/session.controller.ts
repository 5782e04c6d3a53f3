import { Controller, Res } from '@nestjs/common'
import type { Request, Response } from 'express'
import { LingtaiError, RedeemSigninLink, SessionView } from '#contracts'
import type { OwnerView } from '#contracts'
import type { Principal } from '#domains/identity/principal'
import { SigninService } from '#domains/identity/signin.service'
import type { Clock } from '#kernel/ports/clock'
import { ApiRoute, Input } from '../http/api-route.ts'
import { noContent } from '../http/route-shapes.ts'
import { endedSessionCookie, sessionCookie } from '../http/session-cookie.ts'

/** What the signed-in see of the instance, and the time a cookie's age is counted from. */
export class Instance {
  readonly view: SessionView['instance']
  readonly clock: Clock

  constructor({ view, clock }: { view: SessionView['instance']; clock: Clock }) {
    this.view = view
    this.clock = clock
  }
}

@Controller()
export class SessionController {
  constructor(
    private readonly signin: SigninService,
    private readonly instance: Instance,
  ) {}

  @ApiRoute({
    method: 'POST',
    path: '/v1/session',
    summary: 'Sign in with the secret of a sign-in link',
    description: 'The secret works once, within 15 minutes. The answer sets the session cookie.',
    access: 'public',
    body: RedeemSigninLink,
    answer: SessionView,
  })
  async redeem(
    @Input() { body, request }: { body: RedeemSigninLink; request: Request },
    @Res({ passthrough: true }) response: Response,
  ): Promise<SessionView> {
    const session = await this.signin.redeem(body.secret)
    const maxAgeSeconds = Math.floor((session.expiresAt.getTime() - this.instance.clock.now().getTime()) / 1000)
    response.setHeader('Set-Cookie', sessionCookie(request, { secret: session.secret, maxAgeSeconds }))
    return this.#view(session.owner)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/session',
    summary: 'Who is signed in, and what the instance runs on',
    access: 'read',
    answer: SessionView,
  })
  async read(@Input() { principal }: { principal: Principal }): Promise<SessionView> {
    return this.#view({ id: principal.ownerId, name: principal.ownerName, role: principal.role })
  }

  @ApiRoute({ method: 'DELETE', path: '/v1/session', summary: 'Sign out', access: 'read', answer: noContent, idempotent: false })
  async end(
    @Input() { principal, request }: { principal: Principal; request: Request },
    @Res({ passthrough: true }) response: Response,
  ): Promise<void> {
    if (principal.credential.kind === 'token')
      throw new LingtaiError('wrong_state', 'This is a token, not a session: revoke it by DELETE /v1/tokens/{id}.')
    await this.signin.close(principal.credential.id)
    response.setHeader('Set-Cookie', endedSessionCookie(request))
  }

  #view(owner: OwnerView): SessionView {
    return { owner, instance: this.instance.view }
  }
}
