import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { HttpToolInput } from '#contracts'
import { contractOfSource } from '#domains/tools/source-contract'
import type { EffectCall, EffectOutcome } from '#kernel/ports/effect-target'
import type { JsonObject } from '#kernel/ports/model-gateway'
import { AddressGuard } from './address-guard.ts'
import { declareHttpTool } from './declare-http.ts'
import { HttpTarget } from './http-target.ts'

type Seen = { method: string; url: string; headers: IncomingMessage['headers']; body: string }

let server: Server
let port: number
let seen: Seen[] = []
let answer: (request: IncomingMessage, response: ServerResponse, body: string) => void
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body })
      answer(request, response, body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterEach(() => {
  seen = []
  server.closeAllConnections()
})
afterAll(() => new Promise((resolve) => server.close(resolve)))

const json = (value: unknown, status = 200) => {
  answer = (_request, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

type Options = {
  headers?: Record<string, string>
  timeLimitMs?: number
  allowed?: string[]
  ownPorts?: number[]
  resolve?: () => Promise<{ address: string; family: number }[]>
}

function toolOf(input: Partial<HttpToolInput> & { url: string }, options: Options = {}) {
  const declared = declareHttpTool(
    HttpToolInput.parse({ name: 'try', description: 'Tries.', method: 'GET', parameters: { type: 'object', properties: {} }, ...input }),
    'http.tools[0]',
  )
  if ('path' in declared) throw new Error(`${declared.path} ${declared.message}`)
  const contract = contractOfSource('http', 'fake', {
    ...declared,
    source_id: '',
    accepted_version: declared.version,
    capability: null,
    missing: false,
  })
  const guard = new AddressGuard({
    allowed: new Set(options.allowed ?? [`127.0.0.1:${port}`, `tool.test:${port}`]),
    ownPorts: () => options.ownPorts ?? [],
    resolve: options.resolve ?? (async () => [{ address: '127.0.0.1', family: 4 }]),
  })
  const { headers = {}, timeLimitMs } = options
  const target = new HttpTarget({
    contract,
    declaration: declared.declaration,
    headers,
    guard,
    timeLimitMs,
    clock: { now: () => new Date(0) },
  })
  const call = (args: JsonObject, over: Partial<EffectCall> = {}): EffectCall => ({
    effectId: 'e',
    ownerId: 'o',
    characterId: 'c',
    runId: 'r',
    treeId: null,
    tool: contract.name,
    arguments: args,
    idempotencyKey: 'key-1',
    argumentsHash: '00',
    constraints: [],
    signal: new AbortController().signal,
    ...over,
  })
  return {
    contract,
    target,
    call,
    run: (args: JsonObject, over?: Partial<EffectCall>): Promise<EffectOutcome> => target.execute(call(args, over)),
  }
}

const base = (): string => `http://127.0.0.1:${port}`
const code = (outcome: EffectOutcome): string => (outcome.type === 'done' ? 'done' : `${outcome.type} ${outcome.code}`)
const textOf = (outcome: EffectOutcome): string | undefined => (outcome.type === 'unknown' ? undefined : outcome.observation?.text)
const cityTool = (options: Options = {}) =>
  toolOf(
    {
      url: `${base()}/v1/{city}?units=metric`,
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' }, days: { type: 'integer' }, tags: { type: 'array' } },
        required: ['city'],
      },
    },
    options,
  )
const postTool = (over: Partial<HttpToolInput> = {}, options: Options = {}) =>
  toolOf(
    {
      method: 'POST',
      url: `${base()}/messages/{room}`,
      parameters: {
        type: 'object',
        properties: { room: { type: 'string' }, text: { type: 'string' }, draft: { type: 'boolean' } },
        required: ['room', 'text'],
      },
      ...over,
    },
    options,
  )

describe('what an HTTP tool is', () => {
  it('reads by GET and HEAD, acts for good by everything else; an owner can only raise that', () => {
    const contractOf = (over: Partial<HttpToolInput>) => toolOf({ url: `${base()}/x`, ...over }).contract
    expect(contractOf({})).toMatchObject({
      name: 'http/fake.try',
      capability: 'read_only',
      consequence: 'none',
      egress: 'declared',
      undoable: false,
      priceMicros: null,
    })
    expect(contractOf({ method: 'HEAD' })).toMatchObject({ capability: 'read_only' })
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const) {
      expect(contractOf({ method, capability: 'read_only' })).toMatchObject({ capability: 'irreversible_external', consequence: 'lasting' })
    }
    expect(contractOf({ capability: 'trust_mutating', price_micros: 5 })).toMatchObject({
      capability: 'trust_mutating',
      consequence: 'lasting',
      priceMicros: 5,
    })
  })

  it('is free to send anywhere where arguments choose the host', () => {
    const parameters = { type: 'object', properties: { url: { type: 'string' }, host: { type: 'string' } } }
    for (const url of ['{url}', 'https://{host}/x', 'https://{host}.example.com/']) {
      expect(toolOf({ url, parameters }).contract.egress, url).toBe('free')
    }
    expect(toolOf({ url: 'https://example.com/{host}', parameters }).contract.egress).toBe('declared')
  })

  it.each([
    [{ url: 'ftp://example.com/' }, 'url'],
    [{ url: 'https://me:word@example.com/' }, 'url'],
    [{ url: 'https://example.com/{nobody}' }, 'url'],
    [{ url: 'https://{a}@example.com/' }, 'url'],
    [{ url: 'https://example.com:{a}/' }, 'url'],
    [{ url: 'https://example.com/../x' }, 'url'],
    [{ url: 'https://example.com/ x' }, 'url'],
    [{ url: 'https://example.com', parameters: { type: 'string' } }, 'parameters'],
    [{ url: 'https://example.com', parameters: { type: 'object', properties: { a: { $ref: 'https://x/' } } } }, 'parameters'],
    [{ url: 'https://example.com', parameters: { type: 'object', description: 'x'.repeat(33_000) } }, 'parameters'],
    [{ url: 'https://example.com', parameters: { type: 'object', properties: { a: {} } }, places: { a: 'body' as const } }, 'places'],
    [{ url: 'https://example.com', look_up_url: 'https://example.com/{other}' }, 'look_up_url'],
    [{ url: 'https://example.com', look_up_url: 'https://{key}/' }, 'look_up_url'],
    [{ url: 'https://example.com', look_up_url: 'https://example.com/' }, 'look_up_url'],
  ])('refuses %j at %s', (input, where) => {
    expect(() => toolOf(input)).toThrow(`http.tools[0].${where} `)
  })
})

describe('a call', () => {
  it('puts arguments where they belong and nothing else anywhere', async () => {
    json({ warm: true })
    const outcome = await cityTool().run({ city: 'São Paulo/é?#', days: 3, tags: ['a', 'b'] })
    expect(seen[0]).toMatchObject({ method: 'GET', url: '/v1/S%C3%A3o%20Paulo%2F%C3%A9%3F%23?units=metric&days=3&tags=a&tags=b', body: '' })
    expect(seen[0]?.headers).not.toHaveProperty('idempotency-key')
    expect(outcome).toEqual({
      type: 'done',
      costMicros: null,
      observation: {
        mediaType: 'application/json',
        text: '{"warm":true}',
        source: `127.0.0.1:${port}`,
        at: '1970-01-01T00:00:00.000Z',
        licence: null,
        trust: 'untrusted',
        truncated: false,
      },
    })
  })

  it('sends a body, the call’s key and the owner’s headers', async () => {
    json({ id: 1 }, 201)
    expect(
      code(await postTool({}, { headers: { authorization: 'Bearer abcdefgh' } }).run({ room: 'a', text: 'hello', draft: false })),
    ).toBe('done')
    expect(seen[0]).toMatchObject({ method: 'POST', url: '/messages/a', body: '{"text":"hello","draft":false}' })
    expect(seen[0]?.headers).toMatchObject({
      'idempotency-key': 'key-1',
      authorization: 'Bearer abcdefgh',
      'content-type': 'application/json',
      'accept-encoding': 'identity',
    })
  })

  it('sends a key that no header can carry as its digest', async () => {
    json({})
    await postTool().run({ room: 'a', text: 'x' }, { idempotencyKey: 'kéy\r\nX: 1' })
    expect(seen[0]?.headers['idempotency-key']).toMatch(/^[0-9a-f]{64}$/)
  })

  it.each([{ city: '..' }, { city: '.' }, { city: '' }, {}, { city: 3 }, { city: 'x', other: 1 }])(
    'refuses the arguments %j before anything leaves',
    async (args) => {
      json({})
      expect(code(await cityTool().run(args as JsonObject))).toBe('failed arguments_invalid')
      expect(seen).toEqual([])
    },
  )

  it('does not let a path climb or leave its host', async () => {
    json({})
    for (const city of ['../../admin', '%2e%2e', '..%2f', '\\..\\', '@evil.example', ':80', '//evil.example'])
      await cityTool().run({ city })
    for (const { url } of seen) expect(url).toMatch(/^\/v1\/[^/]+\?units=metric$/)
    expect(seen.length).toBeGreaterThan(5)
  })

  it('tells the licence that an answer names', async () => {
    answer = (_request, response) =>
      response.writeHead(200, { 'content-type': 'text/plain', link: '<https://example.com/cc-by>; rel="license"' }).end('words')
    expect(await cityTool().run({ city: 'x' })).toMatchObject({
      observation: { licence: 'https://example.com/cc-by', mediaType: 'text/plain' },
    })
  })

  it('shows no key that a target repeats', async () => {
    answer = (request, response) =>
      response.writeHead(200, { 'content-type': 'text/plain' }).end(`you sent ${request.headers.authorization ?? ''} and sk-12345678`)
    expect(textOf(await cityTool({ headers: { authorization: 'Bearer sk-12345678' } }).run({ city: 'x' }))).toBe(
      'you sent [masked] and [masked]',
    )
  })
})

describe('how a call ends', () => {
  it.each([
    [200, 'done', 'done'],
    [204, 'done', 'done'],
    [301, 'failed redirect_refused', 'unknown redirect_refused'],
    [400, 'failed http_400', 'failed http_400'],
    [404, 'failed http_404', 'failed http_404'],
    [409, 'failed http_409', 'failed http_409'],
    [429, 'failed http_429', 'failed http_429'],
    [500, 'failed http_500', 'unknown http_500'],
    [503, 'failed http_503', 'unknown http_503'],
  ])('%i: a reading %s, a lasting call %s', async (status, reading, lasting) => {
    answer = (_request, response) =>
      response.writeHead(status, { location: `${base()}/elsewhere`, 'content-type': 'text/plain' }).end(status === 204 ? undefined : 'why')
    const read = await cityTool().run({ city: 'x' })
    expect(code(read)).toBe(reading)
    if (status >= 400) expect(textOf(read)).toBe('why')
    expect(code(await postTool().run({ room: 'a', text: 'x' }))).toBe(lasting)
    expect(seen.map(({ url }) => url)).toEqual(['/v1/x?units=metric', '/messages/a'])
  })

  it('failed where nothing could be sent', async () => {
    const closed = createServer()
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
    const free = (closed.address() as AddressInfo).port
    await new Promise((resolve) => closed.close(resolve))
    const tool = postTool({ url: `http://127.0.0.1:${free}/{room}` }, { allowed: [`127.0.0.1:${free}`] })
    expect(code(await tool.run({ room: 'a', text: 'x' }))).toBe('failed connection_refused')
    expect(code(await postTool({}, { allowed: [] }).run({ room: 'a', text: 'x' }))).toBe('failed address_not_public')
    expect(code(await postTool({}, { ownPorts: [port] }).run({ room: 'a', text: 'x' }))).toBe('failed own_port')
    expect(code(await postTool().run({ room: 'a', text: 'x' }, { signal: AbortSignal.abort() }))).toBe('failed aborted')
    expect(seen).toEqual([])
  })

  it('failed while a name is still being looked up: by time, or by the caller', async () => {
    const never = () => new Promise<never>(() => undefined)
    const slow = postTool({ url: `http://tool.test:${port}/{room}` }, { resolve: never, timeLimitMs: 20 })
    expect(code(await slow.run({ room: 'a', text: 'x' }))).toBe('failed timeout')
    const abort = new AbortController()
    const waiting = postTool({ url: `http://tool.test:${port}/{room}` }, { resolve: never }).run(
      { room: 'a', text: 'x' },
      { signal: abort.signal },
    )
    abort.abort()
    expect(code(await waiting)).toBe('failed aborted')
  })

  it('unknown where a lasting call was sent and no answer came', async () => {
    answer = (request) => request.socket.destroy()
    expect(code(await postTool().run({ room: 'a', text: 'x' }))).toBe('unknown connection_lost')
    expect(code(await cityTool().run({ city: 'x' }))).toBe('failed connection_lost')
    answer = (request) => request.socket.end('this is no HTTP\r\n\r\n')
    expect(code(await postTool().run({ room: 'a', text: 'x' }))).toBe('unknown answer_malformed')
    answer = () => undefined
    expect(code(await postTool({}, { timeLimitMs: 100 }).run({ room: 'a', text: 'x' }))).toBe('unknown timeout')
    const abort = new AbortController()
    answer = () => abort.abort()
    expect(code(await postTool().run({ room: 'a', text: 'x' }, { signal: abort.signal }))).toBe('unknown aborted')
  })

  it('unknown where a lasting call was answered with another protocol, and the connection is let go of', async () => {
    let closed: Promise<unknown> = Promise.resolve()
    for (const upgrade of ['Upgrade: x\r\nConnection: Upgrade\r\n', '']) {
      answer = (request) => {
        closed = new Promise((resolve) => request.socket.on('close', resolve))
        request.socket.write(`HTTP/1.1 101 Switching Protocols\r\n${upgrade}\r\n`)
      }
      expect(await postTool({}, { timeLimitMs: 1_000 }).run({ room: 'a', text: 'x' })).toMatchObject({ type: 'unknown' })
      await closed
      expect(await cityTool({ timeLimitMs: 1_000 }).run({ city: 'x' })).toMatchObject({ type: 'failed' })
      await closed
    }
  })

  it('an answer that breaks off: a lasting call is done, cut; a reading failed', async () => {
    answer = (request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '100' })
      response.write('begun', () => request.socket.destroy())
    }
    expect(await postTool().run({ room: 'a', text: 'x' })).toMatchObject({ type: 'done', observation: { text: 'begun', truncated: true } })
    expect(code(await cityTool().run({ city: 'x' }))).toBe('failed connection_lost')
  })

  it('an answer that never ends is let go of after the time limit', async () => {
    let closed: Promise<unknown> = Promise.resolve()
    answer = (request, response) => {
      closed = new Promise((resolve) => request.socket.on('close', resolve))
      response.writeHead(200, { 'content-type': 'text/plain' })
      response.write('drop')
    }
    expect(code(await cityTool({ timeLimitMs: 150 }).run({ city: 'x' }))).toBe('failed timeout')
    await closed
    expect(await postTool({}, { timeLimitMs: 150 }).run({ room: 'a', text: 'x' })).toMatchObject({
      type: 'done',
      observation: { text: 'drop', truncated: true },
    })
  })

  it('an answer over 1 MB is cut, and no more of it is taken', async () => {
    let written = 0
    let closed: Promise<unknown> = Promise.resolve()
    answer = (request, response) => {
      closed = new Promise((resolve) => request.socket.on('close', resolve))
      response.writeHead(200, { 'content-type': 'text/plain' })
      const piece = Buffer.alloc(64 * 1024, 'x')
      const pour = (): void => {
        if (request.socket.destroyed) return
        written += piece.byteLength
        if (response.write(piece)) setImmediate(pour)
        else response.once('drain', pour)
      }
      pour()
    }
    const outcome = await cityTool().run({ city: 'x' })
    expect(outcome).toMatchObject({ type: 'done', observation: { truncated: true } })
    expect(textOf(outcome)).toHaveLength(1024 * 1024)
    await closed
    expect(written).toBeLessThan(64 * 1024 * 1024)
  })

  it('connects to the address that was judged, whatever the name says a moment later', async () => {
    json({})
    const answers = [[{ address: '127.0.0.1', family: 4 }], [{ address: '169.254.169.254', family: 4 }]]
    const tool = toolOf({ url: `http://tool.test:${port}/x` }, { resolve: async () => answers.shift() ?? [] })
    expect(code(await tool.run({}))).toBe('done')
    expect(answers).toHaveLength(1)
    expect(seen[0]?.headers.host).toBe(`tool.test:${port}`)
    expect(code(await tool.run({}))).toBe('failed address_link_local')
  })
})

describe('content', () => {
  const send = async (type: string | null, body: string | Buffer, headers: Record<string, string> = {}) => {
    answer = (_request, response) => response.writeHead(200, { ...(type === null ? {} : { 'content-type': type }), ...headers }).end(body)
    return cityTool().run({ city: 'x' })
  }

  it('is JSON or text as it is, in its charset', async () => {
    expect(await send('application/problem+json; charset=utf-8', '{"a":1}')).toMatchObject({
      observation: { mediaType: 'application/json' },
    })
    expect(await send('application/json', '{"a":')).toMatchObject({ observation: { mediaType: 'text/plain', text: '{"a":' } })
    expect(textOf(await send('text/csv;charset=gb18030', Buffer.from([0xc4, 0xe3, 0xba, 0xc3])))).toBe('你好')
    expect(textOf(await send('text/plain', Buffer.from([0x61, 0x00, 0x62, 0xff])))).toBe('a\u{FFFD}b\u{FFFD}')
  })

  it.each([
    ['application/pdf', {}],
    ['image/png', {}],
    ['application/octet-stream', {}],
    [null, {}],
    ['text/plain; charset=klingon', {}],
    ['text/plain', { 'content-encoding': 'gzip' }],
  ] as const)('of %s %j is not shown', async (type, headers) => {
    expect(code(await send(type, 'x', headers))).toBe('failed unsupported_content')
    expect(await postTool().run({ room: 'a', text: 'x' })).toMatchObject({
      type: 'done',
      observation: { text: expect.stringContaining('not read') },
    })
  })

  it('of a page is what it says', async () => {
    const page = `<!doctype html><html><head><title>The &amp; page</title><style>p{}</style><script>alert("<p>no</p>")</script></head>
      <body><!-- hidden <p>x</p> --><h1>Head</h1><p>One&nbsp;&lt;two&gt; &#20320;&#x597d;</p><ul><li>a<li>b</ul><scRipt>evil()</scRipt >
      <p>a < b</p><noscript>x</noscript></body></html>`
    expect(textOf(await send('text/html; charset=utf-8', page))).toBe('The & page\n\nHead\n\nOne <two> 你好\n\na\nb\n\na < b')
  })

  it('of a hostile page is read in one pass', async () => {
    const limit = 300_000
    for (const piece of ['<script>', '</script', '<!--', '<title>', '<p ', '&#', '<']) {
      expect(code(await send('text/html', piece.repeat(limit / piece.length))), piece).toBe('done')
    }
  })
})

describe('a look-up', () => {
  const keyed = () => postTool({ look_up_url: `${base()}/keys/{key}` })

  it('asks the target about the key, and takes no other answer for proof', async () => {
    const { target, call } = keyed()
    const { signal: _, ...asked } = call({ room: 'a', text: 'x' })
    json({ state: 'sent' })
    expect(await target.lookUp(asked)).toMatchObject({
      type: 'committed',
      argumentsHash: null,
      observation: { text: '{"state":"sent"}', trust: 'untrusted' },
    })
    expect(seen[0]).toMatchObject({ method: 'GET', url: '/keys/key-1' })
    json({}, 404)
    expect(await target.lookUp(asked)).toEqual({ type: 'absent' })
    for (const status of [204, 301, 401, 500]) {
      json({}, status)
      expect(await target.lookUp(asked), String(status)).toEqual({ type: 'unavailable' })
    }
    answer = (request) => request.socket.destroy()
    expect(await target.lookUp(asked)).toEqual({ type: 'unavailable' })
  })

  it('is none where the owner named no address', async () => {
    const { target, call } = postTool()
    const { signal: _, ...asked } = call({ room: 'a', text: 'x' })
    expect(await target.lookUp(asked)).toBeNull()
    expect(seen).toEqual([])
  })
})
