import { createServer, request } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { OfferedTool } from '#domains/tools/ports'
import { codeOf, offeredBy, startEverything, targetOf, textOf } from '#test/support/mcp-servers'
import { AddressGuard } from '../http/address-guard.ts'
import type { McpPlace } from './mcp-session.ts'
import { McpSessions } from './mcp-sessions.ts'

describe('a session over HTTP', { timeout: 60_000 }, () => {
  let everything: Awaited<ReturnType<typeof startEverything>>
  let between: Server
  let port: number
  let echo: OfferedTool
  let sessions: McpSessions
  /** What went through, in order: the session that it named and what was asked. */
  let seen: { id: string | undefined; what: string }[] = []
  /** Sessions that the server does not know any more. */
  const forgotten = new Set<string>()
  /** What the place between does instead of handing on; false: it hands on. */
  let instead: (what: string, response: ServerResponse, id: number | undefined) => boolean = () => false

  beforeAll(async () => {
    everything = await startEverything()
    between = createServer((asked, response) => void handOn(asked, response))
    await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve))
    port = (between.address() as AddressInfo).port
    const found = (await offeredBy(place())).offered.find((tool) => tool.declaration.remote['tool'] === 'echo')
    if (!found) throw new Error('no echo')
    echo = found
  })
  afterAll(async () => {
    between.closeAllConnections()
    await new Promise((resolve) => between.close(resolve))
    await everything.stop()
  })
  beforeEach(() => {
    sessions = new McpSessions({ version: '0' })
    seen = []
    instead = () => false
  })
  afterEach(() => sessions.close())

  async function handOn(asked: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of asked as AsyncIterable<Buffer>) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const { 'mcp-session-id': named, ...headers } = asked.headers
    const id = typeof named === 'string' ? named : undefined
    const message = body.length === 0 ? { method: asked.method } : (JSON.parse(body.toString()) as { id?: number; method?: string })
    const what = message.method ?? 'answer'
    seen.push({ id, what })
    if (id !== undefined && forgotten.has(id)) return void response.writeHead(404).end()
    if (instead(what, response, 'id' in message ? message.id : undefined)) return
    const onwards = request(
      {
        port: everything.port,
        path: asked.url,
        method: asked.method,
        agent: false,
        headers: { ...headers, ...(id === undefined ? {} : { 'mcp-session-id': id }) },
      },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      },
    )
    onwards.on('error', () => response.destroy())
    response.on('close', () => onwards.destroy())
    onwards.end(body)
  }

  const place = (headers: Record<string, string> = {}): McpPlace => ({
    type: 'http',
    url: `http://127.0.0.1:${port}/mcp`,
    headers,
    guard: new AddressGuard({ allowed: new Set([`127.0.0.1:${port}`]), ownPorts: () => [] }),
  })
  const say = (message: string, { headers, ...options }: Parameters<typeof targetOf>[1] & { headers?: Record<string, string> } = {}) =>
    targetOf({ sessions, place: place(headers), tool: echo }, { caller: { runId: 'r' }, ...options }).run({ message })
  const asked = (what: string) => seen.filter((line) => line.what === what)
  /** The sessions that calls named, each once. */
  const ids = () => [...new Set(asked('tools/call').map(({ id }) => id))]

  it('keeps one id for a run, and is told of its end', async () => {
    for (const message of ['one', 'two', 'three']) expect(textOf(await say(message))).toBe(`Echo: ${message}`)
    expect(asked('initialize')).toHaveLength(1)
    expect(asked('tools/list').length).toBeGreaterThanOrEqual(3)
    expect(ids()).toEqual([expect.any(String)])
    expect(asked('DELETE')).toEqual([])
    await sessions.close()
    expect(asked('DELETE').map(({ id }) => id)).toEqual(ids())
  })

  it('is another one for other headers, and for another run', async () => {
    await say('one', { headers: { 'x-key': 'first' } })
    await say('two', { headers: { 'x-key': 'second' } })
    await say('three', { headers: { 'x-key': 'first' }, caller: { runId: 'r2' } })
    await say('four', { headers: { 'x-key': 'first' } })
    expect(ids()).toHaveLength(3)
  })

  it('that the server does not know any more is replaced before anything was sent', async () => {
    await say('one')
    const [first] = ids()
    forgotten.add(first ?? '')
    expect(textOf(await say('two'))).toBe('Echo: two')
    expect(ids()).toHaveLength(2)
    expect(asked('tools/call')).toHaveLength(2)
  })

  it('is not asked twice for what may have happened, and not used again', async () => {
    await say('one')
    instead = (what, response) => what === 'tools/call' && !!response.writeHead(502).end()
    expect(codeOf(await say('two'))).toBe('unknown http_502')
    expect(asked('tools/call')).toHaveLength(2)
    expect(asked('DELETE').map(({ id }) => id)).toEqual(ids())
    instead = () => false
    expect(codeOf(await say('three'))).toBe('done')
    expect(ids()).toHaveLength(2)
  })

  it('has each call’s own limits: what ended one call’s time does not end the next', async () => {
    await say('one')
    const first = new AbortController()
    expect(
      codeOf(await targetOf({ sessions, place: place(), tool: echo }, { caller: { runId: 'r' } }).run({ message: 'two' }, first.signal)),
    ).toBe('done')
    first.abort()
    expect(codeOf(await say('three'))).toBe('done')
    expect(ids()).toHaveLength(1)
    instead = (what, response) => what === 'tools/call' && response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': \n\n')
    expect(codeOf(await say('four', { timeLimitMs: 500 }))).toBe('unknown timeout')
    expect(asked('DELETE')).toHaveLength(1)
  })

  it('is one of 32 at most: the one that rested longest gives way', async () => {
    for (let index = 0; index < 32; index++) await say('hello', { caller: { runId: `r${index}` } })
    expect(asked('DELETE')).toEqual([])
    await say('hello', { caller: { runId: 'r0' } })
    await say('hello', { caller: { runId: 'r32' } })
    const [, second] = ids()
    expect(ids()).toHaveLength(33)
    expect(asked('DELETE').map(({ id }) => id)).toEqual([second])
    await sessions.close()
    expect(new Set(asked('DELETE').map(({ id }) => id))).toEqual(new Set(ids()))
  })

  it('does not listen on to an answer that goes on after its result', async () => {
    let cut = false
    instead = (what, response, id) => {
      if (what !== 'tools/call') return false
      const result = { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'there' }] } }
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${JSON.stringify(result)}\n\n`)
      response.once('close', () => (cut = true))
      return true
    }
    expect(textOf(await say('one'))).toBe('there')
    await vi.waitFor(() => expect(cut).toBe(true), { timeout: 5_000 })
    expect(asked('DELETE')).toEqual([])
  })
})
