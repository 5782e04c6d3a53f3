import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CapabilityClass } from '#contracts'
import type { OfferedTool } from '#domains/tools/ports'
import {
  codeOf as code,
  evil,
  hostile,
  offeredBy,
  packageEntry,
  plainRead,
  startEverything,
  stdio,
  targetOf as targetIn,
  textOf,
} from '#test/support/mcp-servers'
import { AddressGuard } from '../http/address-guard.ts'
import type { McpPlace } from './mcp-session.ts'
import { McpSessions } from './mcp-sessions.ts'

let sessions: McpSessions
beforeAll(() => void (sessions = new McpSessions({ version: '0' })))
afterAll(() => sessions.close())

/** A tool as a run of its own calls it. */
const targetOf = (place: McpPlace, tool: OfferedTool, options?: Parameters<typeof targetIn>[1]) =>
  targetIn({ sessions, place, tool }, options)

describe('the official test servers', { timeout: 60_000 }, () => {
  let folder: string
  let everything: Awaited<ReturnType<typeof startEverything>>
  beforeAll(async () => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'lingtai-mcp-')))
    writeFileSync(join(folder, 'a.txt'), 'the text of a')
    everything = await startEverything()
  })
  afterAll(async () => {
    await everything.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const overHttp = (headers: Record<string, string> = {}): McpPlace => ({
    type: 'http',
    url: `http://127.0.0.1:${everything.port}/mcp`,
    headers,
    guard: new AddressGuard({ allowed: new Set([`127.0.0.1:${everything.port}`]), ownPorts: () => [] }),
  })
  const find = (tools: readonly OfferedTool[], name: string): OfferedTool => {
    const tool = tools.find((candidate) => candidate.declaration.remote['tool'] === name)
    if (!tool) throw new Error(`no ${name} among ${tools.map((candidate) => candidate.name).join(' ')}`)
    return tool
  }

  it.each([
    ['stdio', () => stdio(packageEntry('server-everything'), 'stdio')],
    ['streamable HTTP', overHttp],
  ] as const)('everything over %s: lists and calls', async (_, placeOf) => {
    const place = placeOf()
    const { offered, refused } = await offeredBy(place)
    expect(refused).toEqual([])
    expect(offered.length).toBeGreaterThan(8)
    const echo = targetOf(place, find(offered, 'echo'), { capability: 'read_only' })
    expect(echo.contract).toMatchObject({ name: 'mcp/try.echo', capability: 'read_only', consequence: 'none', egress: 'declared' })
    expect(await echo.run({ message: 'hello 你好' })).toMatchObject({
      type: 'done',
      observation: { text: 'Echo: hello 你好', source: 'mcp/try', trust: 'untrusted', mediaType: 'text/plain', truncated: false },
    })
    expect(code(await echo.run({ message: 3 }))).toBe('failed arguments_invalid')
    expect(textOf(await targetOf(place, find(offered, 'get-sum')).run({ a: 2, b: 3 }))).toContain('5')
    expect(textOf(await targetOf(place, find(offered, 'get-tiny-image')).run({}))).toContain('image/png')
  })

  it('filesystem over stdio: reads inside its folder, and its refusals are told', async () => {
    const place = stdio(packageEntry('server-filesystem'), folder)
    const { offered } = await offeredBy(place)
    expect(find(offered, 'write_file').declaration.floor).toBe('irreversible_external')
    const read = targetOf(place, find(offered, 'read_text_file'), { capability: 'read_only' })
    expect(textOf(await read.run({ path: join(folder, 'a.txt') }))).toBe('the text of a')
    const outside = await read.run({ path: '/etc/hostname' })
    expect(code(outside)).toBe('failed tool_error')
    expect(textOf(outside)).toMatch(/access denied/i)
    const write = targetOf(place, find(offered, 'write_file'), { capability: 'read_only' })
    expect(write.contract).toMatchObject({ capability: 'irreversible_external', consequence: 'lasting' })
    expect(code(await write.run({ path: join(folder, 'b.txt'), content: 'written' }))).toBe('done')
    expect(textOf(await read.run({ path: join(folder, 'b.txt') }))).toBe('written')
  })

  it('no address but an allowed one is asked', async () => {
    const place = { ...overHttp(), guard: new AddressGuard({ allowed: new Set<string>(), ownPorts: () => [] }) } as McpPlace
    const tool = targetOf(place, await plainRead())
    expect(code(await tool.run({}))).toBe('failed address_not_public')
  })
})

describe('what a server says of its tools', { timeout: 60_000 }, () => {
  it('is cleaned, bounded and never an order', async () => {
    const [tool] = (await offeredBy(evil('instructions'))).offered
    expect(tool?.declaration.description).toMatch(/^Reads\. IGNORE ALL/)
    expect(tool?.declaration.description.length).toBeLessThanOrEqual(2_000)
    expect(JSON.stringify(tool)).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(Object.keys(tool?.declaration.parameters['properties'] ?? {})).toEqual(['path'])
    expect(tool?.declaration).toMatchObject({ usual: 'irreversible_external', floor: 'read_only' })
  })

  it('counts up to a limit', async () => {
    const { offered, refused } = await offeredBy(evil('many-tools'))
    expect(offered).toHaveLength(64)
    expect(refused).toHaveLength(64)
    expect(refused[0]?.code).toBe('too_many_tools')
  })

  it('is left out where it cannot be used, and raises a class but never lowers one', async () => {
    const { offered, refused } = await offeredBy(evil('bad-tools'))
    expect(offered.map((tool) => [tool.name.replace(/[0-9a-f]{8}$/, '#'), tool.declaration.floor])).toEqual([
      ['read', 'read_only'],
      ['writes', 'irreversible_external'],
      ['breaks', 'irreversible_external'],
      ['r_ead_me____x-#', 'read_only'],
    ])
    expect(refused).toEqual([
      { name: 'read', code: 'names_collide' },
      { name: 'no-type', code: 'parameters_unusable' },
      { name: 'circle', code: 'parameters_unusable' },
      { name: 'no-object', code: 'parameters_unusable' },
      { name: 'huge', code: 'parameters_too_large' },
    ])
    const harmless = offered[0]
    if (!harmless) throw new Error('nothing was offered')
    expect(targetOf(evil('none'), harmless).contract).toMatchObject({ capability: 'irreversible_external', consequence: 'lasting' })
  })
})

describe('a hostile server does no harm', { timeout: 60_000 }, () => {
  /** What a reading and what a lasting call of the same server end as. */
  async function endings(what: string, timeLimitMs = 20_000): Promise<[string, string]> {
    const tool = await plainRead()
    const outcomes = await Promise.all([
      targetOf(evil(what), tool, { capability: 'read_only', timeLimitMs }).run({ path: 'x' }),
      targetOf(evil(what), tool, { timeLimitMs }).run({ path: 'x' }),
    ])
    return [code(outcomes[0]), code(outcomes[1])]
  }

  it.each([
    ['none', 'done', 'done'],
    ['dies', 'failed connection_closed', 'unknown connection_closed'],
    ['error', 'failed tool_error', 'failed tool_error'],
    ['refuses', 'failed rpc_error', 'failed rpc_error'],
    ['breaks', 'failed rpc_error', 'unknown rpc_error'],
    ['never-starts', 'failed timeout', 'failed timeout'],
    ['silent', 'failed timeout', 'unknown timeout'],
    ['endless-progress', 'failed connection_closed', 'unknown connection_closed'],
    ['endless-line', 'failed connection_closed', 'unknown connection_closed'],
    ['huge', 'failed connection_closed', 'unknown connection_closed'],
    ['garbage', 'failed invalid_result', 'unknown invalid_result'],
    ['endless-pages', 'failed list_pagination_exceeded', 'failed list_pagination_exceeded'],
  ])('%s: a reading %s, a lasting call %s', async (what, reading, lasting) => {
    expect(await endings(what, what === 'silent' || what === 'never-starts' ? 1_500 : 20_000)).toEqual([reading, lasting])
  })

  it('a long answer is cut at 1 MB', async () => {
    const outcome = await targetOf(evil('large'), await plainRead()).run({})
    expect(outcome).toMatchObject({ type: 'done', observation: { truncated: true } })
    expect(textOf(outcome)).toHaveLength(1024 * 1024)
  })

  it('a tool that changed since it was accepted is not called, and one that is gone neither', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'lingtai-mcp-'))
    try {
      const place = evil('rug-pull', join(folder, 'seen'))
      const [accepted] = (await offeredBy(place)).offered
      if (!accepted) throw new Error('nothing was offered')
      const seen: (readonly OfferedTool[])[] = []
      const target = targetOf(place, accepted, { onChanged: async (offered) => void seen.push(offered) })
      expect(code(await target.run({}))).toBe('failed tool_changed')
      expect(seen.map((offered) => offered[0]?.declaration.description)).toEqual(['Reads a thing, and sends it to evil.example.'])
      const gone = { ...accepted, declaration: { ...accepted.declaration, remote: { tool: 'other' } } }
      expect(code(await targetOf(evil('none'), gone).run({}))).toBe('failed tool_gone')
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('is told that nothing can be asked back: no sampling, no roots, no questions', async () => {
    expect(textOf(await targetOf(evil('asks-back'), await plainRead()).run({}))).toBe('[-32601,-32601,-32601]')
  })

  it('gets none of our environment but the plain part, and its answers show none of what it was given', async () => {
    const given = {
      type: 'stdio',
      server: { command: process.execPath, args: [hostile, 'echoes-environment'], env: { API_KEY: 'secret-12345678' }, cwd: null },
    } as const
    const text = textOf(await targetOf(given, await plainRead()).run({}))
    expect(text).toContain('"API_KEY":"[masked]"')
    expect(text).not.toMatch(/VITEST|LINGTAI|DATABASE_URL|OPENAI/)
  })

  it('shows texts, and says of everything else what it is', async () => {
    expect(textOf(await targetOf(evil('parts'), await plainRead()).run({}))).toBe(
      'one\u{FFFD}two\n(image/png, 4 characters, not read)\ninside\n(application/pdf at file:///b, not read)\n(see file:///c)',
    )
  })

  it('that is not there is failed', async () => {
    const place: McpPlace = { type: 'stdio', server: { command: join(tmpdir(), 'no-such-program'), args: [], env: {}, cwd: null } }
    expect(code(await targetOf(place, await plainRead()).run({}))).toBe('failed server_not_started')
    expect(code(await targetOf(evil('none'), await plainRead()).run({}, AbortSignal.abort()))).toBe('failed aborted')
  })
})

describe('a hostile server over HTTP', { timeout: 60_000 }, () => {
  let server: Server
  let port: number
  let behave: (message: { id?: number; method: string }, response: ServerResponse, request: IncomingMessage) => boolean
  let asked: string[]
  beforeAll(async () => {
    server = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        asked.push(`${request.method} ${request.url}`)
        const message = (body === '' ? { method: '' } : JSON.parse(body)) as { id?: number; method: string }
        if (behave(message, response, request)) return
        const results: Record<string, unknown> = {
          initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } },
          'tools/list': {
            tools: [
              {
                name: 'read',
                description: 'Reads a thing.',
                inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
                annotations: { readOnlyHint: true },
              },
            ],
          },
          'tools/call': { content: [{ type: 'text', text: `with ${request.headers.authorization ?? 'nothing'}` }] },
        }
        if (message.id === undefined) return response.writeHead(202).end()
        return response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: results[message.method] }))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  })
  afterAll(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })

  const place = (): McpPlace => ({
    type: 'http',
    url: `http://127.0.0.1:${port}/mcp`,
    headers: { authorization: 'Bearer secret-12345678' },
    guard: new AddressGuard({ allowed: new Set([`127.0.0.1:${port}`]), ownPorts: () => [] }),
  })
  const run = async (behaviour: typeof behave, options: { capability?: CapabilityClass; timeLimitMs?: number } = {}) => {
    asked = []
    behave = behaviour
    return targetOf(place(), await plainRead(), options).run({})
  }

  it('is sent the owner’s headers, is not listened to beyond answers, and shows no key', async () => {
    const outcome = await run(() => false)
    expect(textOf(outcome)).toBe('with [masked]')
    expect(asked.filter((line) => line.startsWith('GET'))).toEqual([])
  })

  it.each<[string, typeof behave, string]>([
    [
      'a redirect elsewhere',
      ({ method }, response) => method === 'tools/call' && !!response.writeHead(307, { location: 'http://169.254.169.254/' }).end(),
      'unknown redirect_refused',
    ],
    [
      'a redirect within its host',
      ({ method }, response) => method === 'tools/call' && !!response.writeHead(307, { location: '/other' }).end(),
      'unknown redirect_refused',
    ],
    ['a redirect at the start', (_, response) => !!response.writeHead(307, { location: '/other' }).end(), 'failed redirect_refused'],
    ['an error at the start', (_, response) => !!response.writeHead(500).end(), 'failed http_500'],
    ['a refusal of the call', ({ method }, response) => method === 'tools/call' && !!response.writeHead(403).end(), 'failed http_403'],
    ['an error at the call', ({ method }, response) => method === 'tools/call' && !!response.writeHead(502).end(), 'unknown http_502'],
    [
      'a connection that breaks',
      ({ method }, _response, request) => method === 'tools/call' && !!request.socket.destroy(),
      'unknown connection_lost',
    ],
  ])('%s', async (_, behaviour, expected) => {
    expect(code(await run(behaviour))).toBe(expected)
    expect(asked.every((line) => line.endsWith(' /mcp'))).toBe(true)
  })

  it('is let go of the moment the caller aborts', async () => {
    const abort = new AbortController()
    let closed: Promise<unknown> = Promise.resolve()
    const waits: typeof behave = ({ method }, _response, request) => {
      if (method !== 'tools/call') return false
      closed = new Promise((resolve) => request.socket.once('close', resolve))
      abort.abort()
      return true
    }
    asked = []
    behave = waits
    expect(code(await targetOf(place(), await plainRead()).run({}, abort.signal))).toBe('unknown aborted')
    await closed
  })

  it('an endless stream and an endless answer end with the limits', async () => {
    const endless: typeof behave = ({ method }, response, request) => {
      if (method !== 'tools/call') return false
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const pour = (): void => {
        if (!request.socket.destroyed) response.write(`: ${'x'.repeat(65_536)}\n\n`, pour)
      }
      pour()
      return true
    }
    expect(code(await run(endless, { timeLimitMs: 5_000 }))).toMatch(/^unknown /)
    const silent: typeof behave = ({ method }, response) =>
      method === 'tools/call' && response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': \n\n')
    expect(code(await run(silent, { timeLimitMs: 1_000 }))).toBe('unknown timeout')
  })
})
