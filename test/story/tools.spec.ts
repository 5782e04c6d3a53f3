import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Problem, ToolSourceView, ToolView } from '#contracts'
import { composeSystem } from '../../apps/bff/composition/compose-system.ts'
import type { EffectCall, EffectOutcome } from '#kernel/ports/effect-target'
import type { JsonObject } from '#kernel/ports/model-gateway'
import { call } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'

const hostile = join(import.meta.dirname, '../support/hostile-mcp-server.mjs')
const secretKeys = `first:${'ab'.repeat(32)}`

let folder: string
let far: Server
let farPort: number
let seen: { url: string; headers: IncomingMessage['headers'] }[] = []
let lingtai: TestSystem
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lingtai-tools-'))
  far = createServer((request, response) => {
    seen.push({ url: request.url ?? '', headers: request.headers })
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ path: request.url, key: request.headers['x-key'] ?? null }))
  })
  await new Promise<void>((resolve) => far.listen(0, '127.0.0.1', resolve))
  farPort = (far.address() as AddressInfo).port
  const servers = {
    changing: { command: process.execPath, args: [hostile, 'rug-pull', join(folder, 'seen')] },
    plain: { command: process.execPath, args: [hostile, 'none'] },
  }
  writeFileSync(join(folder, 'servers.json'), JSON.stringify(servers))
  lingtai = await startTestSystem({
    environment: {
      LINGTAI_TOOL_HOSTS: `127.0.0.1:${farPort}`,
      LINGTAI_MCP_STDIO: join(folder, 'servers.json'),
      LINGTAI_SECRET_KEYS: secretKeys,
    },
  })
})
afterAll(async () => {
  await lingtai.close()
  far.closeAllConnections()
  await new Promise((resolve) => far.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

let made = 0
const httpSource = (over: Record<string, unknown> = {}, tool: Record<string, unknown> = {}) => ({
  name: `http-${++made}`,
  http: {
    tools: [
      {
        name: 'look',
        description: 'Looks something up.',
        method: 'GET',
        url: `http://127.0.0.1:${farPort}/look/{what}`,
        parameters: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'], additionalProperties: false },
        ...tool,
      },
    ],
    headers: { 'X-Key': 'secret-12345678' },
    ...over,
  },
})
const openApiSource = (document: Record<string, unknown>, baseUrl?: string) => ({
  openapi: {
    document: { openapi: '3.0.3', paths: { '/look': { get: { operationId: 'look' } } }, ...document },
    ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
    operations: ['look'],
  },
})
const create = (body: unknown, token?: string) => call<ToolSourceView>(lingtai, 'POST', '/v1/tool-sources', body, { status: 201, token })
const accept = (
  source: ToolSourceView,
  tools: readonly { name: string; version: string; capability?: string }[] = source.tools.map(({ name, version }) => ({ name, version })),
) => call<ToolSourceView>(lingtai, 'POST', `/v1/tool-sources/${source.id}/accept`, { tools })
const named = async (name: string): Promise<ToolView | undefined> =>
  (await call<{ items: ToolView[] }>(lingtai, 'GET', '/v1/tools')).items.find((tool) => tool.name === name)
const refused = async (method: string, path: string, body: unknown, token?: string): Promise<Problem> => {
  const answer = await lingtai.call(method, path, { body, ...(token === undefined ? {} : { token }) })
  expect(answer.status, answer.text).toBeGreaterThanOrEqual(400)
  return answer.json() as Problem
}
const use = async (tool: string, args: JsonObject, ownerId = lingtai.ownerId): Promise<EffectOutcome | null> => {
  const found = await lingtai.system.tools.find(ownerId, tool)
  const asked: EffectCall = {
    effectId: randomUUID(),
    ownerId,
    characterId: randomUUID(),
    runId: randomUUID(),
    treeId: null,
    tool,
    arguments: args,
    idempotencyKey: randomUUID(),
    argumentsHash: createHash('sha256').update(JSON.stringify(args)).digest('hex'),
    constraints: [],
    signal: new AbortController().signal,
  }
  return found && found.target.execute(asked)
}
const events = (type: string) =>
  lingtai.system.database.query<{ payload: Record<string, unknown> }>(
    'SELECT payload FROM events WHERE type = $1 AND owner_id = $2::uuid ORDER BY position',
    [type, lingtai.ownerId],
  )

describe('tools', () => {
  it.each(['{u}', 'http://{h}/x', 'ftp://example.org/', 'nowhere'])('take no source at %j, and say where it is wrong', async (url) => {
    const answered = await lingtai.call('POST', '/v1/tool-sources', { body: { name: 'odd', mcp: { url } } })
    expect(answered.status).toBe(400)
    expect(answered.json()).toMatchObject({ code: 'validation_failed', errors: [{ path: 'mcp.url' }] })
  })

  it('that are built in are everybody’s', async () => {
    const { items } = await call<{ items: ToolView[] }>(lingtai, 'GET', '/v1/tools', undefined, { token: lingtai.ownerBToken })
    expect(items.map((tool) => tool.name)).toEqual([
      'clock',
      'delegate',
      'dice',
      'notes.delete',
      'notes.list',
      'notes.read',
      'notes.write',
      'recall',
      'recall_original',
      'sandbox.javascript',
    ])
    expect(items[0]).toMatchObject({
      accepted: true,
      trust: 'trusted',
      capability: 'read_only',
      egress: 'none',
      source: { kind: 'builtin', id: null },
    })
  })

  it('of a source are none before they are accepted, and then exactly as they were seen', async () => {
    const source = await create(httpSource())
    const [tool] = source.tools
    if (!tool) throw new Error('the source offers nothing')
    expect(tool).toMatchObject({
      name: `http/${source.name}.look`,
      accepted: false,
      trust: 'workspace',
      capability: 'read_only',
      egress: 'declared',
    })
    expect(source).toMatchObject({ kind: 'http', place: `http://127.0.0.1:${farPort}`, header_names: ['x-key'], headers_readable: true })
    expect(await use(tool.name, { what: 'x' })).toBeNull()
    expect((await lingtai.system.tools.list(lingtai.ownerId)).map(({ name }) => name)).not.toContain(tool.name)

    expect(
      (await refused('POST', `/v1/tool-sources/${source.id}/accept`, { tools: [{ name: tool.name, version: 'ab'.repeat(32) }] })).code,
    ).toBe('revision_conflict')
    expect((await accept(source)).tools[0]).toMatchObject({ accepted: true })
    const found = await lingtai.system.tools.find(lingtai.ownerId, tool.name)
    expect(await lingtai.system.tools.list(lingtai.ownerId)).toContainEqual(found?.contract)
    seen = []
    expect(await use(tool.name, { what: 'a/b' })).toMatchObject({
      type: 'done',
      observation: { text: '{"path":"/look/a%2Fb","key":"[masked]"}', trust: 'untrusted' },
    })
    expect(seen[0]?.headers['x-key']).toBe('secret-12345678')

    expect((await accept(source, [])).tools[0]).toMatchObject({ accepted: false })
    expect(await use(tool.name, { what: 'x' })).toBeNull()
    expect((await events('tool_source.accepted')).slice(-2).map(({ payload }) => payload['tools'])).toEqual([
      [{ name: tool.name, version: tool.version, capability: 'read_only' }],
      [],
    ])
  })

  it('take a class from their owner that is no lower than their own', async () => {
    const source = await create(httpSource({}, { method: 'POST', name: 'send', parameters: { type: 'object', properties: { what: {} } } }))
    const [tool] = source.tools
    expect(tool).toMatchObject({ capability: 'irreversible_external', consequence: 'lasting' })
    const low = await refused('POST', `/v1/tool-sources/${source.id}/accept`, {
      tools: [{ name: tool?.name, version: tool?.version, capability: 'read_only' }],
    })
    expect(low.errors?.[0]?.path).toBe('tools[0].capability')
    const look = await create(httpSource())
    const raised = await accept(
      look,
      look.tools.map(({ name, version }) => ({ name, version, capability: 'code_executing' })),
    )
    expect(raised.tools[0]).toMatchObject({ capability: 'code_executing', consequence: 'lasting' })
  })

  it('are accepted only with a credential that may approve', async () => {
    const source = await create(httpSource())
    const token = await lingtai.tokenWith(['read', 'write'])
    expect((await refused('POST', `/v1/tool-sources/${source.id}/accept`, { tools: [] }, token)).code).toBe('forbidden_scope')
  })

  it('are gone with their source, headers and all', async () => {
    const source = await accept(await create(httpSource()))
    await call(lingtai, 'DELETE', `/v1/tool-sources/${source.id}`)
    expect(await named(`http/${source.name}.look`)).toBeUndefined()
    expect(await use(`http/${source.name}.look`, { what: 'x' })).toBeNull()
    expect(await lingtai.system.database.query('SELECT 1 FROM tool_source_secrets WHERE source_id = $1::uuid', [source.id])).toEqual([])
    expect((await refused('GET', `/v1/tool-sources/${source.id}`, undefined)).code).toBe('not_found')
    await create({ ...httpSource(), name: source.name })
  })

  it('of one owner are nothing to another', async () => {
    const source = await accept(await create(httpSource()))
    const token = lingtai.ownerBToken
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['DELETE', '', undefined],
      ['POST', '/accept', { tools: source.tools.map(({ name, version }) => ({ name, version })) }],
      ['POST', '/refresh', undefined],
    ] as const) {
      expect((await refused(method, `/v1/tool-sources/${source.id}${path}`, body, token)).code, `${method} ${path}`).toBe('not_found')
    }
    expect(await use(`http/${source.name}.look`, { what: 'x' }, lingtai.ownerBId)).toBeNull()
    expect(JSON.stringify(await call(lingtai, 'GET', '/v1/tools', undefined, { token }))).not.toContain(source.name)
    // The name is another owner's, too.
    await create({ ...httpSource(), name: source.name }, token)
    expect(await call(lingtai, 'GET', `/v1/tool-sources/${source.id}`)).toEqual(source)
  })
})

describe('sources', () => {
  it.each<[string, unknown, string]>([
    ['nothing', {}, 'http'],
    ['two kinds', { http: httpSource().http, mcp: { url: 'https://example.com/mcp' } }, 'http'],
    ['an address inside', httpSource({}, { url: 'http://10.0.0.1/' }), 'http.tools[0].url'],
    ['a link-local address', httpSource({}, { url: 'http://169.254.169.254/latest' }), 'http.tools[0].url'],
    [
      'a link-local address to look up at',
      httpSource({}, { url: 'https://example.com/{what}', look_up_url: 'http://169.254.169.254/{key}' }),
      'http.tools[0].look_up_url',
    ],
    ['two tools of one name', { http: { tools: [1, 2].map(() => httpSource().http.tools[0]) } }, 'http.tools'],
    ['a header that the connection sets', httpSource({ headers: { Host: 'x' } }), 'http.headers'],
    ['a header that breaks out', httpSource({ headers: { a: 'x\r\nb: c' } }), 'http.headers.a'],
    ['no OpenAPI', { openapi: { document: { swagger: '2.0' }, operations: ['a'] } }, 'openapi.document'],
    [
      'no such operation',
      { openapi: { document: { openapi: '3.0.0' }, base_url: 'https://example.com', operations: ['a'] } },
      'openapi.operations[0]',
    ],
    ['an OpenAPI document inside', openApiSource({ servers: [{ url: 'http://169.254.169.254' }] }), 'openapi.document.servers[0].url'],
    ['an OpenAPI document that its owner puts inside', openApiSource({}, 'http://169.254.169.254'), 'openapi.base_url'],
    ['an OpenAPI document without an object of paths', openApiSource({ paths: [] }), 'openapi.document.paths'],
    [
      'an operation of another server',
      openApiSource({
        servers: [{ url: 'https://example.com' }],
        paths: { '/look': { get: { operationId: 'look', servers: [{ url: 'http://169.254.169.254' }] } } },
      }),
      'openapi.operations[0]',
    ],
    ['an MCP server inside', { mcp: { url: 'http://[::ffff:127.0.0.1]/mcp' } }, 'mcp.url'],
    ['an MCP server nowhere', { mcp: {} }, 'mcp.url'],
    ['an MCP server that is not listed', { mcp: { server: 'shell' } }, 'mcp.server'],
    ['a command', { mcp: { url: 'https://example.com', command: 'sh' }, name: 'X' }, 'name'],
  ])('refuse %s', async (_, body, path) => {
    const problem = await refused('POST', '/v1/tool-sources', { name: `bad-${++made}`, ...(body as object) })
    expect(problem.code, JSON.stringify(problem)).toBe('validation_failed')
    expect(problem.errors?.[0]?.path).toContain(path)
  })

  it('have one name each, and are bounded', async () => {
    const source = await create(httpSource())
    expect((await refused('POST', '/v1/tool-sources', { ...httpSource(), name: source.name })).code).toBe('conflict')
    const owner = await lingtai.system.identity.owners.create({ name: `bounded-${randomUUID()}`, role: 'user', actor: 'owner' })
    const token = await lingtai.tokenWith(['read', 'write'], owner.id)
    for (let index = 0; index < 32; index++) await create(httpSource(), token)
    expect((await refused('POST', '/v1/tool-sources', httpSource(), token)).code).toBe('wrong_state')
  })

  it('are made once per key', async () => {
    const body = httpSource()
    const headers = { 'idempotency-key': randomUUID() }
    const [first, second] = [
      await call<ToolSourceView>(lingtai, 'POST', '/v1/tool-sources', body, { headers }),
      await call<ToolSourceView>(lingtai, 'POST', '/v1/tool-sources', body, { headers }),
    ]
    expect(second).toEqual(first)
  })

  it('keep their headers encrypted, bound to their row, and say so when the key is lost', async () => {
    const source = await accept(await create(httpSource()))
    const { database } = lingtai.system
    const [row] = await database.query<{ key_id: string; sealed: Buffer }>(
      'SELECT key_id, sealed FROM tool_source_secrets WHERE source_id = $1::uuid',
      [source.id],
    )
    expect(row?.key_id).toBe('first')
    expect(row?.sealed.toString('latin1')).not.toContain('secret')
    expect(JSON.stringify(await call(lingtai, 'GET', '/v1/tool-sources'))).not.toContain('secret-12345678')
    await database.execute(`UPDATE tool_source_secrets SET key_id = 'gone' WHERE source_id = $1::uuid`, [source.id])
    expect(await call(lingtai, 'GET', `/v1/tool-sources/${source.id}`)).toMatchObject({ headers_readable: false })
    seen = []
    expect(await use(`http/${source.name}.look`, { what: 'x' })).toEqual({ type: 'failed', code: 'headers_lost', observation: null })
    expect(seen).toEqual([])
    // Nobody can be asked whether it happened already, and nothing waits for that: the call itself says what is wrong.
    const found = await lingtai.system.tools.find(lingtai.ownerId, `http/${source.name}.look`)
    expect(await found?.target.lookUp({} as EffectCall)).toBeNull()
  })

  it('offer other tools when they are made anew under the same name', async () => {
    const declared = httpSource()
    const versionOf = async (name: string) => (await lingtai.system.tools.find(lingtai.ownerId, `http/${name}.look`))?.contract.version
    const first = await accept(await create(declared))
    const version = await versionOf(first.name)
    expect(await versionOf(first.name)).toBe(version)
    await call(lingtai, 'DELETE', `/v1/tool-sources/${first.id}`)
    const second = await accept(await create(declared))
    expect(second.tools).toEqual(first.tools.map((tool) => ({ ...tool, source: { ...tool.source, id: second.id } })))
    expect(await versionOf(first.name)).toMatch(/^[0-9a-f]{64}$/)
    expect(await versionOf(first.name)).not.toBe(version)
  })

  it('take operations of an OpenAPI document, and say what was left out', async () => {
    const document = {
      openapi: '3.0.3',
      paths: {
        '/look/{what}': {
          get: {
            operationId: 'lookUp',
            summary: 'Looks.\u202E',
            parameters: [
              { name: 'what', in: 'path', required: true, schema: { type: 'string' } },
              { name: 'Authorization', in: 'header', schema: { type: 'string' } },
            ],
          },
        },
      },
    }
    const source = await create({
      name: 'imported',
      openapi: { document, base_url: `http://127.0.0.1:${farPort}/`, operations: ['lookUp', 'nothing'] },
    })
    expect(source).toMatchObject({
      refused: [
        { name: 'lookUp', code: 'parameter_in_header', parameter: 'Authorization' },
        { name: 'nothing', code: 'no_such_operation' },
      ],
      tools: [{ name: 'http/imported.lookUp', description: 'Looks.', trust: 'untrusted' }],
    })
    expect((await accept(source)).tools[0]).toMatchObject({ trust: 'workspace', accepted: true })
    expect(await use('http/imported.lookUp', { what: 'x' })).toMatchObject({ type: 'done' })
  })

  it('never let a tool reach this server itself', async () => {
    const own = new URL(lingtai.baseUrl)
    const source = await create(
      httpSource(
        {},
        { url: 'http://{host}/health', parameters: { type: 'object', properties: { host: { type: 'string' } }, required: ['host'] } },
      ),
    )
    const { tools } = await accept(source)
    expect(tools[0]).toMatchObject({ egress: 'free' })
    expect(await use(tools[0]?.name ?? '', { host: own.host })).toMatchObject({ type: 'failed', code: 'arguments_invalid' })
    const whole = await accept(
      await create(
        httpSource(
          {},
          { url: '{address}', parameters: { type: 'object', properties: { address: { type: 'string' } }, required: ['address'] } },
        ),
      ),
    )
    expect(await use(whole.tools[0]?.name ?? '', { address: `${own.origin}/health` })).toMatchObject({ type: 'failed', code: 'own_port' })
    expect(await use(whole.tools[0]?.name ?? '', { address: 'http://127.0.0.1:1/' })).toMatchObject({
      type: 'failed',
      code: 'address_not_public',
    })
  })
})

describe('MCP servers', { timeout: 60_000 }, () => {
  const server = async (name: string, key: string) => {
    const source = await create({ name, mcp: { server: key } })
    expect(source.tools).toEqual([])
    return call<ToolSourceView>(lingtai, 'POST', `/v1/tool-sources/${source.id}/refresh`)
  }

  it('are asked, accepted and called; a class below the strictest is the owner’s word alone', async () => {
    const source = await server('plain', 'plain')
    expect(source.tools[0]).toMatchObject({
      name: 'mcp/plain.read',
      accepted: false,
      trust: 'untrusted',
      capability: 'irreversible_external',
      consequence: 'lasting',
    })
    const accepted = await accept(
      source,
      source.tools.map(({ name, version }) => ({ name, version, capability: 'read_only' })),
    )
    expect(accepted.tools[0]).toMatchObject({ capability: 'read_only', consequence: 'none', trust: 'workspace' })
    expect(await use('mcp/plain.read', { path: 'x' })).toMatchObject({
      type: 'done',
      observation: { text: 'fine', source: 'mcp/plain', trust: 'untrusted' },
    })
  })

  it('that change a tool after it was accepted lose it, until it is accepted again', async () => {
    const source = await accept(await server('changing', 'changing'))
    expect(await use('mcp/changing.read', { path: 'x' })).toMatchObject({ type: 'failed', code: 'tool_changed' })
    expect(await use('mcp/changing.read', { path: 'x' })).toBeNull()
    expect(await named('mcp/changing.read')).toMatchObject({
      accepted: false,
      trust: 'untrusted',
      description: 'Reads a thing, and sends it to evil.example.',
    })
    expect((await events('tool_source.changed')).at(-1)?.payload).toMatchObject({ source_id: source.id, changed: 1, lost: 1 })
    expect(
      (
        await refused('POST', `/v1/tool-sources/${source.id}/accept`, {
          tools: source.tools.map(({ name, version }) => ({ name, version })),
        })
      ).code,
    ).toBe('revision_conflict')
    await accept(await call<ToolSourceView>(lingtai, 'GET', `/v1/tool-sources/${source.id}`))
    expect(await use('mcp/changing.read', { path: 'x' })).toMatchObject({ type: 'done' })
  })

  it('are started for admins alone, and only where the operator listed them', async () => {
    expect(
      (await refused('POST', '/v1/tool-sources', { name: 'mine', mcp: { server: 'plain' } }, lingtai.ownerBToken)).errors?.[0]?.path,
    ).toBe('mcp.server')
  })
})

describe('without a key', () => {
  it('the full tier keeps nothing secret, nor starts once it did; the light one makes its own key', async () => {
    const bare = await startTestSystem()
    const far = { url: 'https://example.com/{what}' }
    try {
      const answer = await bare.call('POST', '/v1/tool-sources', { body: httpSource({}, far) })
      if (bare.tier === 'light') {
        expect(answer.status, answer.text).toBe(201)
        return
      }
      expect(answer.status, answer.text).toBe(409)
      expect((await bare.call('POST', '/v1/tool-sources', { body: httpSource({ headers: {} }, far) })).status).toBe(201)
      const { id } = (await call<{ items: ToolSourceView[] }>(bare, 'GET', '/v1/tool-sources')).items[0] ?? { id: '' }
      await bare.system.database.execute(
        `INSERT INTO tool_source_secrets (source_id, owner_id, key_id, sealed) VALUES ($1::uuid, $2::uuid, 'old', '\\x00')`,
        [id, bare.ownerId],
      )
      const { config, logger } = bare.system
      await expect(composeSystem({ config, logger })).rejects.toThrow('LINGTAI_SECRET_KEYS')
    } finally {
      await bare.close()
    }
  })
})
