import { createServer } from 'node:http'
import type { Server, ServerResponse } from 'node:http'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import type { Problem, ToolSourceView } from '#contracts'
import { call } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'

/* A source whose server cannot be asked is its owner's to put right: told with the place, and no fault of this server, whose log stays empty. */

const json = { 'content-type': 'application/json' }

/** What the far side does, by path. */
const faults: Record<string, (response: ServerResponse) => void> = {
  '/error': (response) => response.writeHead(500).end('no'),
  '/missing': (response) => response.writeHead(404).end(),
  '/page': (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Hello</h1>'),
  '/broken': (response) => response.writeHead(200, json).end('{"jsonrpc":'),
  '/other': (response) => response.writeHead(200, json).end('[1,null,{"jsonrpc":"2.0","id":0,"result":7}]'),
  '/moved': (response) => response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end(),
  '/cut': (response) => response.socket?.destroy(),
}

let folder: string
let far: Server
let farPort: number
let closedPort: number
let system: TestSystem
let made = 0

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lingtai-away-'))
  far = createServer((request, response) => faults[request.url ?? '']?.(response))
  farPort = await listening(far)
  const closed = createServer()
  closedPort = await listening(closed)
  await new Promise((resolve) => closed.close(resolve))
  const servers = {
    absent: { command: join(folder, 'no-such-program'), args: [] },
    silent: { command: process.execPath, args: ['-e', '0'] },
  }
  writeFileSync(join(folder, 'servers.json'), JSON.stringify(servers))
  system = await startTestSystem({
    environment: {
      LINGTAI_TOOL_HOSTS: `127.0.0.1:${farPort},127.0.0.1:${closedPort},localhost:1`,
      LINGTAI_MCP_STDIO: join(folder, 'servers.json'),
    },
  })
})
afterAll(async () => {
  await system.close()
  far.closeAllConnections()
  await new Promise((resolve) => far.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => vi.restoreAllMocks())

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

async function sourceAt(mcp: { url: string } | { server: string }): Promise<ToolSourceView> {
  return call<ToolSourceView>(system, 'POST', '/v1/tool-sources', { name: `away-${++made}`, mcp }, { status: 201 })
}

/** What a refresh of the source is answered; nothing of it may stand in the log as a fault of ours. */
async function refreshed({ id }: ToolSourceView): Promise<Problem> {
  const logged = vi.spyOn(system.system.logger, 'error')
  const answer = await system.call('POST', `/v1/tool-sources/${id}/refresh`)
  expect(answer.headers.get('content-type')).toContain('application/problem+json')
  expect(logged.mock.calls).toEqual([])
  const problem = answer.json() as Problem
  expect(problem.status).toBe(answer.status)
  // It is there as before, and listing asks nobody.
  expect(await call<ToolSourceView>(system, 'GET', `/v1/tool-sources/${id}`)).toMatchObject({ id, tools: [] })
  return problem
}

it.each([
  ['a name that stands for an address inside', () => 'http://localhost:2/mcp', 'address_not_public'],
  ['a name that stands for this server itself', () => `http://localhost:${new URL(system.baseUrl).port}/mcp`, 'own_port'],
  // No name may have a part this long: nobody needs to be asked.
  ['a name that stands for nothing', () => `http://${'a'.repeat(64)}.invalid/mcp`, 'name_not_resolved'],
])('refuses %s, with the field', async (_, url, code) => {
  expect(await refreshed(await sourceAt({ url: url() }))).toMatchObject({
    status: 400,
    code: 'validation_failed',
    errors: [{ path: 'mcp.url', message: `may not be reached: ${code}` }],
  })
})

it('refuses an address that was allowed when the source was made, and is no longer', async () => {
  const source = await sourceAt({ url: `http://127.0.0.1:${farPort}/error` })
  await system.system.database.execute(
    `UPDATE tool_sources SET settings = jsonb_set(settings, '{url}', '"http://169.254.169.254/mcp"') WHERE id = $1::uuid`,
    [source.id],
  )
  expect(await refreshed(source)).toMatchObject({
    status: 400,
    code: 'validation_failed',
    errors: [{ path: 'mcp.url', message: 'may not be reached: address_link_local' }],
  })
})

it.each([
  ['is not there', () => `http://127.0.0.1:${closedPort}/mcp`, 'connection_refused'],
  ['speaks no TLS', () => `https://127.0.0.1:${farPort}/mcp`, 'tls_failed'],
  ['fails', () => at('/error'), 'http_500'],
  ['has nothing there', () => at('/missing'), 'http_404'],
  ['answers with a page', () => at('/page'), expect.stringMatching(/^[a-z_0-9]+$/)],
  ['answers with half an answer', () => at('/broken'), expect.stringMatching(/^[a-z_0-9]+$/)],
  ['answers something else', () => at('/other'), expect.stringMatching(/^[a-z_0-9]+$/)],
  ['sends us elsewhere', () => at('/moved'), 'redirect_refused'],
  ['hangs up', () => at('/cut'), 'connection_lost'],
])('tells that a server %s', async (_, url, code) => {
  const problem = await refreshed(await sourceAt({ url: url() }))
  expect(problem).toMatchObject({ status: 424, code: 'remote_failed', errors: [{ path: 'mcp.url' }], data: { code } })
})

const at = (path: string): string => `http://127.0.0.1:${farPort}${path}`

it.each([
  ['absent', 'server_not_started'],
  ['silent', 'connection_closed'],
])('tells that the listed server "%s" does not run', async (server, code) => {
  const problem = await refreshed(await sourceAt({ server }))
  expect(problem).toMatchObject({ status: 424, code: 'remote_failed', errors: [{ path: 'mcp.server' }], data: { code } })
})

it('tells that the operator took a server off the list', async () => {
  const source = await sourceAt({ server: 'absent' })
  await system.system.database.execute(`UPDATE tool_sources SET settings = jsonb_set(settings, '{server}', '"gone"') WHERE id = $1::uuid`, [
    source.id,
  ])
  expect(await refreshed(source)).toMatchObject({ status: 409, code: 'wrong_state', errors: [{ path: 'mcp.server' }] })
})
