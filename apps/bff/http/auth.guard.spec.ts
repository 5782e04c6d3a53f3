import 'reflect-metadata'
import { EventEmitter } from 'node:events'
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { LingtaiError } from '#contracts'
import type { Authenticator } from '#domains/identity/authenticator'
import type { Principal } from '#domains/identity/principal'
import { ApiRoute } from './api-route.ts'
import { AuthGuard } from './auth.guard.ts'
import type { Limits } from './auth.guard.ts'
import { beginRequest } from './request-state.ts'

const Ok = z.object({ ok: z.boolean() })

class Things {
  @ApiRoute({ method: 'GET', path: '/v1/things', summary: 'Things', access: 'read', answer: Ok })
  async list(): Promise<{ ok: boolean }> {
    return { ok: true }
  }

  @ApiRoute({ method: 'POST', path: '/v1/open', summary: 'Open to all', access: 'public', answer: Ok })
  async open(): Promise<{ ok: boolean }> {
    return { ok: true }
  }
}

const principal: Principal = {
  ownerId: 'owner',
  ownerName: 'owner',
  role: 'user',
  scopes: new Set(['read']),
  credential: { kind: 'token', id: 't' },
}

/** A guard on a clock that stands still, and a way to ask it. */
function guarded(limits: Partial<Limits>) {
  let now = 0
  const authenticator = { byToken: async (token: string) => (token === 'good' ? principal : null) } as unknown as Authenticator
  const guard = new AuthGuard({
    authenticator,
    clock: { now: () => new Date(now) },
    limits: { owner: { perSecond: 1, burst: 100 }, stranger: { perSecond: 1, burst: 100 }, inFlight: 100, ...limits },
  })
  const ask = async (token: string, handler: 'list' | 'open' = 'list') => {
    const request = { headers: { authorization: `Bearer ${token}` }, socket: { remoteAddress: '127.0.0.1' } }
    const response = Object.assign(new EventEmitter(), { setHeader: () => undefined })
    beginRequest(request as never, 'trace')
    const context = new ExecutionContextHost([request, response], Things, Things.prototype[handler])
    try {
      await guard.canActivate(context)
      return { response, code: 'ok', data: {} }
    } catch (error) {
      if (error instanceof LingtaiError) return { response, code: error.code, data: error.data }
      throw error
    }
  }
  return { ask, wait: (seconds: number) => (now += seconds * 1000) }
}

describe('limits of the guard', () => {
  it('lets an owner have a burst, then tells when to come again', async () => {
    const { ask, wait } = guarded({ owner: { perSecond: 1, burst: 2 } })
    expect((await ask('good')).code).toBe('ok')
    expect((await ask('good')).code).toBe('ok')
    expect(await ask('good')).toMatchObject({ code: 'rate_limited', data: { retry_after_seconds: 1 } })
    wait(1)
    expect((await ask('good')).code).toBe('ok')
  })

  it('bounds an owner’s requests in flight, streams among them', async () => {
    const { ask } = guarded({ inFlight: 2 })
    const first = await ask('good')
    await ask('good')
    expect((await ask('good')).code).toBe('rate_limited')
    first.response.emit('close')
    expect((await ask('good')).code).toBe('ok')
  })

  it('bounds those who guess, and keeps that apart from owners', async () => {
    const { ask } = guarded({ stranger: { perSecond: 1, burst: 2 } })
    expect((await ask('bad')).code).toBe('not_signed_in')
    expect((await ask('bad')).code).toBe('not_signed_in')
    expect((await ask('bad')).code).toBe('rate_limited')
    expect((await ask('any', 'open')).code).toBe('rate_limited')
    expect((await ask('good')).code).toBe('ok')
  })
})
