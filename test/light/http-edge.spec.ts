import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Problem } from '#contracts'
import { MovedClock } from '#test/support/moved-clock'
import { sendBytes, sendHttp } from '#test/support/raw-http'
import { startTestSystem } from '#test/support/system'
import type { TestSystem } from '#test/support/system'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const clock = new MovedClock()
const INDEX = '<!doctype html><title>page</title>'
let lingtai: TestSystem
let pageFolder: string
beforeAll(async () => {
  // Below a hidden folder, where file servers that look at whole paths find nothing.
  pageFolder = mkdtempSync(join(tmpdir(), '.lingtai-page-'))
  mkdirSync(join(pageFolder, 'assets'))
  writeFileSync(join(pageFolder, 'index.html'), INDEX)
  writeFileSync(join(pageFolder, 'assets/index-Ab12Cd34.js'), 'export {}')
  writeFileSync(join(pageFolder, 'seal.svg'), '<svg/>')
  lingtai = await startTestSystem({ http: { pageFolder }, overrides: { clock } })
})
afterAll(async () => {
  await lingtai.close()
  rmSync(pageFolder, { recursive: true, force: true })
})

const authorization = (): string => `Bearer ${lingtai.token}`

describe('who may name this server', () => {
  it.each(['evil.example', 'evil.example:3000', '127.0.0.1.evil.example', '192.168.1.5'])(
    'refuses the host %s on every path',
    async (host) => {
      for (const path of ['/', '/v1/session', '/health/live', '/docs', '/assets/index-Ab12Cd34.js']) {
        const answer = await sendHttp(lingtai.baseUrl + path, { headers: { host, authorization: authorization() } })
        expect(answer.status, path).toBe(421)
        expect(Problem.parse(JSON.parse(answer.text))).toMatchObject({ code: 'host_refused', errors: [{ path: 'headers.host' }] })
      }
    },
  )

  it.each(['localhost', '127.0.0.1:1', '[::1]:3000', 'LOCALHOST'])('takes the host %s', async (host) => {
    expect((await sendHttp(`${lingtai.baseUrl}/v1/session`, { headers: { host, authorization: authorization() } })).status).toBe(200)
  })
})

describe('signing in and mutating by cookie', () => {
  const signIn = async (headers: Record<string, string> = {}) => {
    const secret = await lingtai.system.identity.signin.mintLink(lingtai.ownerId)
    const answer = await sendHttp(`${lingtai.baseUrl}/v1/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ secret }),
    })
    return { secret, answer, cookie: answer.headers['set-cookie']?.[0]?.split(';')[0] ?? '' }
  }
  const rename = (cookie: string, headers: Record<string, string> = {}) =>
    sendHttp(`${lingtai.baseUrl}/v1/realms`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie, ...headers },
      body: JSON.stringify({ kind: 'fiction', name: 'By cookie' }),
    })

  it('sets a cookie that scripts and other sites cannot use, named by the port', async () => {
    const { answer } = await signIn()
    expect(answer.status).toBe(200)
    const { port } = new URL(lingtai.baseUrl)
    expect(answer.headers['set-cookie']?.[0]).toMatch(
      new RegExp(`^lingtai_session_${port}=[\\w-]{43}; Path=/; Max-Age=25\\d{5}; HttpOnly; SameSite=Strict$`),
    )
    expect(JSON.parse(answer.text)).toMatchObject({
      owner: { id: lingtai.ownerId, role: 'admin' },
      instance: { tier: lingtai.tier, model: { demo: true } },
    })
  })

  it('uses a link up, even for twins, and refuses an unknown one', async () => {
    const { secret } = await signIn()
    const redeem = (body: unknown) => lingtai.call('POST', '/v1/session', { token: null, body })
    expect((await redeem({ secret })).json()).toMatchObject({ code: 'signin_link_invalid', status: 401 })
    const fresh = await lingtai.system.identity.signin.mintLink(lingtai.ownerId)
    const statuses = (await Promise.all([1, 2, 3, 4].map(() => redeem({ secret: fresh })))).map((answer) => answer.status)
    expect(statuses.toSorted()).toEqual([200, 401, 401, 401])
    expect((await redeem({ secret: 'x'.repeat(43) })).status).toBe(401)
  })

  it('lets a link lapse after 15 minutes and a session after 30 days', async () => {
    const secret = await lingtai.system.identity.signin.mintLink(lingtai.ownerId)
    clock.ahead = 15 * MINUTE_MS
    expect((await lingtai.call('POST', '/v1/session', { token: null, body: { secret } })).status).toBe(401)
    const { cookie } = await signIn()
    const read = async (): Promise<number> => (await sendHttp(`${lingtai.baseUrl}/v1/session`, { headers: { cookie } })).status
    clock.ahead += 30 * DAY_MS - MINUTE_MS
    expect([await read(), await lingtai.system.identity.signin.isAnybodySignedIn()]).toEqual([200, true])
    clock.ahead += MINUTE_MS
    expect([await read(), await lingtai.system.identity.signin.isAnybodySignedIn()]).toEqual([401, false])
    clock.ahead += 2 * DAY_MS
    await lingtai.system.identity.signin.tidy()
    const left = await lingtai.system.database.query('SELECT id FROM sessions UNION ALL SELECT id FROM signin_links')
    expect(left).toEqual([])
    clock.ahead = 0
  })

  it('takes mutations from its own page and from nowhere else', async () => {
    const { cookie } = await signIn()
    expect((await sendHttp(`${lingtai.baseUrl}/v1/session`, { headers: { cookie } })).status).toBe(200)
    expect((await rename(cookie, { origin: lingtai.baseUrl })).status).toBe(201)
    const foreign = ['http://evil.example', 'null', 'http://127.0.0.1:1', `${lingtai.baseUrl}.evil.example`, 'garbage']
    for (const origin of foreign) {
      const answer = await rename(cookie, { origin })
      expect(answer.status, origin).toBe(403)
      expect(Problem.parse(JSON.parse(answer.text)).code).toBe('origin_refused')
    }
    expect((await rename(cookie)).status).toBe(403)
  })

  it('does not let another site sign a browser in', async () => {
    expect((await signIn({ origin: 'http://evil.example' })).answer.status).toBe(403)
    expect((await signIn({ origin: lingtai.baseUrl })).answer.status).toBe(200)
  })

  it('asks no origin of a token, which no browser sends by itself', async () => {
    expect((await rename('', { authorization: authorization(), origin: 'http://evil.example' })).status).toBe(201)
  })

  it('ends a session for good', async () => {
    const { cookie } = await signIn()
    const ended = await sendHttp(`${lingtai.baseUrl}/v1/session`, { method: 'DELETE', headers: { cookie, origin: lingtai.baseUrl } })
    expect(ended.status).toBe(204)
    expect(ended.headers['set-cookie']?.[0]).toMatch(/Max-Age=0/)
    expect((await sendHttp(`${lingtai.baseUrl}/v1/session`, { headers: { cookie } })).status).toBe(401)
  })

  it('writes down that a session was opened', async () => {
    const events = (await lingtai.call('GET', `/v1/admin/events?type=session.opened&stream=admin:${lingtai.ownerId}`)).json() as {
      items: unknown[]
    }
    expect(events.items.length).toBeGreaterThan(0)
  })
})

describe('what every answer carries', () => {
  it.each(['/', '/v1/session', '/v1/nothing', '/health/live', '/docs'])('protects %s', async (path) => {
    const { headers } = await lingtai.call('GET', path)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('content-security-policy')).toMatch(/default-src 'none'/)
    expect(headers.get('content-security-policy')).not.toMatch(/unsafe-eval|http/)
    expect(headers.get('x-trace-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(headers.get('x-powered-by')).toBeNull()
    expect(headers.get('access-control-allow-origin')).toBeNull()
  })

  it('keeps the API out of caches', async () => {
    expect((await lingtai.call('GET', '/v1/characters')).headers.get('cache-control')).toBe('no-store')
  })
})

describe('requests that are none of the documented', () => {
  it('answers unknown routes with 404 and known ones with another method with 405', async () => {
    for (const path of [
      '/v1',
      '/v1/nothing',
      '/v1/characters/01a22968-84d7-71a4-bf1f-6eeb557de500/nothing',
      '/health',
      '/docs/nothing/at/all',
    ]) {
      const answer = await lingtai.call('GET', path)
      expect(answer.status, path).toBe(404)
      expect(Problem.parse(answer.json()).code).toBe('not_found')
    }
    const wrong = await lingtai.call('PUT', '/v1/characters', { body: {} })
    expect(wrong.status).toBe(405)
    expect(wrong.headers.get('allow')).toBe('GET, POST')
    expect(Problem.parse(wrong.json()).code).toBe('method_not_allowed')
    expect((await lingtai.call('DELETE', '/health/live')).headers.get('allow')).toBe('GET')
    expect((await lingtai.call('OPTIONS', '/v1/characters')).status).toBe(405)
    expect((await lingtai.call('HEAD', '/v1/characters')).status).toBe(200)
  })

  it.each([
    ['garbage', 'garbage\r\n\r\n', 400],
    ['a wrong length', 'POST /v1/realms HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n', 400],
    ['two lengths', 'POST /v1/realms HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
    ['length and chunks', 'POST /v1/realms HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 400],
    ['headers without end', `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, 431],
  ])('answers %s with a problem and hangs up', async (_, bytes, status) => {
    const answer = await sendBytes(lingtai.baseUrl, bytes)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    const body = answer.slice(answer.indexOf('\r\n\r\n') + 4)
    expect(Problem.parse(JSON.parse(body)).status).toBe(status)
  })

  it('leaks nothing of what goes wrong inside', async () => {
    const { database } = lingtai.system
    const broken = lingtai.system.governance.audit
    const original = broken.outbox.bind(broken)
    broken.outbox = () => database.query('SELECT secret FROM nowhere').then(() => ({ items: [], next_cursor: null }))
    try {
      const answer = await lingtai.call('GET', '/v1/admin/outbox')
      expect(answer.status).toBe(500)
      const problem = Problem.parse(answer.json())
      expect(problem).toMatchObject({ code: 'internal_error', trace_id: answer.headers.get('x-trace-id') })
      expect(answer.text).not.toMatch(/nowhere|SELECT|prisma|at .*\.ts/i)
    } finally {
      broken.outbox = original
    }
  })
})

describe('the page', () => {
  it('is served for every path without a dot that is not the API’s', async () => {
    for (const path of ['/', '/characters/x/trees/y', '/设置']) {
      const answer = await lingtai.call('GET', path, { token: null })
      expect(answer.text, path).toBe(INDEX)
      expect(answer.headers.get('cache-control')).toBe('no-cache')
      expect(answer.headers.get('content-type')).toMatch(/^text\/html/)
    }
  })

  it('serves its files, those named by their content for a year', async () => {
    const asset = await lingtai.call('GET', '/assets/index-Ab12Cd34.js', { token: null })
    expect([asset.text, asset.headers.get('cache-control')]).toEqual(['export {}', 'public, max-age=31536000, immutable'])
    const seal = await lingtai.call('GET', '/seal.svg', { token: null })
    expect([seal.text, seal.headers.get('cache-control')]).toEqual(['<svg/>', 'no-cache'])
  })

  it('serves nothing beside its folder', async () => {
    for (const path of ['/nothing.js', '/../package.json', '/%2e%2e/package.json', '/..%2fpackage.json', '/assets/%00.js', '/.env']) {
      const answer = await sendHttp(lingtai.baseUrl + path)
      expect(answer.status, path).toBeGreaterThanOrEqual(400)
      expect(answer.status, path).toBeLessThan(500)
      expect(answer.headers['content-type'], path).toMatch(/problem\+json/)
    }
  })
})

describe('what operators ask', () => {
  it('tells health and counts, without signing in', async () => {
    expect((await lingtai.call('GET', '/health/live', { token: null })).json()).toEqual({ status: 'ok' })
    expect((await lingtai.call('GET', '/health/ready', { token: null })).json()).toEqual({ status: 'ok' })
    const metrics = await lingtai.call('GET', '/metrics', { token: null })
    expect(metrics.text).toMatch(/lingtai_http_requests_total\{method="GET",route="\/health\/live",status="200"\} \d+/)
    expect(metrics.text).not.toContain(lingtai.ownerId)
  })

  it('is not ready while something it needs is not', async () => {
    const check = { name: 'something', check: () => Promise.reject(new Error('down')) }
    lingtai.system.lifecycle.readiness.push(check)
    const answer = await lingtai.call('GET', '/health/ready', { token: null })
    lingtai.system.lifecycle.readiness.splice(lingtai.system.lifecycle.readiness.indexOf(check), 1)
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(answer.text).toContain('something')
    expect(answer.text).not.toContain('down')
  })

  it('serves the document and a page for it that needs nothing from elsewhere', async () => {
    const document = (await lingtai.call('GET', '/docs/openapi.json', { token: null })).json() as { openapi: string; paths: object }
    expect(document.openapi).toBe('3.1.0')
    const page = await lingtai.call('GET', '/docs', { token: null })
    const files = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '')
    expect(files.length).toBeGreaterThan(3)
    for (const file of files) {
      expect(file).toMatch(/^\/docs\//)
      expect((await lingtai.call('GET', file, { token: null })).status, file).toBe(200)
    }
    expect((await lingtai.call('GET', '/docs/assets/package.json', { token: null })).status).toBe(400)
    expect((await lingtai.call('GET', '/docs/assets/toString.js', { token: null })).status).toBe(404)
  })
})
