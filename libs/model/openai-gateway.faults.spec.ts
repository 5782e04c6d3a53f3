import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { ModelStreamEvent } from '#kernel/ports/model-gateway'
import { CUT, DONE, type FakeStep, finishChunk, HOLD, sse, startFakeUpstream, textChunk } from '#test/support/fake-upstream'
import { API_KEY, collect, ofType, requestOf, textOf, useGateway } from '#test/support/gateway-calls'
import { createOpenAiEmbeddingEndpoint } from './openai-embedder.ts'
import type { OpenAiGatewayOptions } from './openai-gateway.ts'

const { upstream, open, run } = useGateway()
const last = (events: readonly ModelStreamEvent[]): ModelStreamEvent | undefined => events.at(-1)

describe('a provider fault before anything was generated', () => {
  const answer = async (status: number, error: unknown, headers: Record<string, string> = {}) => {
    upstream().script({ status, headers: { 'content-type': 'application/json', ...headers }, steps: [JSON.stringify(error)] })
    return collect(open().stream(requestOf()))
  }

  it.each([
    [
      429,
      { error: { code: 'rate_limit_exceeded', message: 'slow down' } },
      { code: 'rate_limited', retryable: true, providerCode: 'rate_limit_exceeded' },
    ],
    [429, { error: { code: 'insufficient_quota', message: 'no money' } }, { code: 'quota_exhausted', retryable: false }],
    [
      500,
      { error: { message: 'oops', type: 'server_error' } },
      { code: 'provider_unavailable', retryable: true, providerCode: 'server_error' },
    ],
    [503, 'not an object', { code: 'provider_unavailable', retryable: true }],
    [401, { error: { code: 'invalid_api_key', message: 'bad' } }, { code: 'unauthorized', retryable: false }],
    [403, {}, { code: 'forbidden', retryable: false }],
    [404, { error: { message: 'no such model' } }, { code: 'model_not_found', retryable: false, detail: 'no such model' }],
    [400, { error: { code: 'context_length_exceeded', message: 'long' } }, { code: 'context_too_long', retryable: false }],
    [
      400,
      { error: { message: 'bad field', code: 'a code with spaces' } },
      { code: 'bad_request', retryable: false, providerCode: 'other' },
    ],
    [307, {}, { code: 'redirect_refused', retryable: false }],
  ])('status %i %j', async (status, body, expected) => {
    const events = await answer(status, body, status === 307 ? { location: `${upstream().baseUrl}/elsewhere` } : {})
    expect(events).toHaveLength(1)
    expect(events[0]).toMatchObject({ type: 'failed', status, ...expected })
    expect(upstream().requests).toHaveLength(1)
  })

  it.each([
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after-ms': '1500' }, 1_500],
    [{ 'retry-after': 'Fri, 31 Jul 2026 10:00:09 GMT', date: 'Fri, 31 Jul 2026 10:00:00 GMT' }, 9_000],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])('reads Retry-After from %j', async (headers, expected) => {
    const [failure] = await answer(429, { error: { message: 'wait' } }, headers)
    expect(failure).toMatchObject({ type: 'failed', code: 'rate_limited' })
    expect(failure?.type === 'failed' ? failure.retryAfterMs : null).toBe(expected)
  })

  it('a refused connection was not sent: failed, retryable', async () => {
    const closed = await startFakeUpstream()
    await closed.close()
    const events = await collect(open({ endpoint: { baseUrl: closed.baseUrl } }).stream(requestOf()))
    expect(events).toEqual([{ type: 'failed', code: 'connection_refused', retryable: true, providerCode: 'ECONNREFUSED' }])
  })

  it('a name that does not resolve was not sent: failed', async () => {
    const lookup: NonNullable<OpenAiGatewayOptions['endpoint']['lookup']> = (_name, _options, done) =>
      done(Object.assign(new Error('none'), { code: 'ENOTFOUND' }), '', 4)
    const events = await collect(open({ endpoint: { baseUrl: 'http://model.invalid/v1', lookup } }).stream(requestOf()))
    expect(events).toMatchObject([{ type: 'failed', code: 'name_not_resolved', retryable: true }])
  })

  it('connects to the address that was pinned, whatever the name', async () => {
    upstream().script({ steps: [finishChunk(), DONE] })
    const lookup: NonNullable<OpenAiGatewayOptions['endpoint']['lookup']> = (_name, options, done) =>
      options.all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4)
    const events = await collect(open({ endpoint: { baseUrl: `http://model.invalid:${upstream().port}/v1`, lookup } }).stream(requestOf()))
    expect(last(events)).toMatchObject({ type: 'finished' })
  })

  it('TLS that does not come about was not sent: failed', async () => {
    const events = await collect(open({ endpoint: { baseUrl: upstream().baseUrl.replace('http:', 'https:') } }).stream(requestOf()))
    expect(events).toMatchObject([{ type: 'failed', retryable: expect.any(Boolean) }])
    expect(upstream().requests).toHaveLength(0)
  })

  it('S5 an error object under status 200 is failed with the provider code, nothing yielded', async () => {
    const events = await run([sse({ error: { code: 'content_policy', message: `no, ${API_KEY}` } }), DONE])
    expect(events).toEqual([
      { type: 'opened' },
      { type: 'failed', code: 'provider_error', retryable: false, providerCode: 'content_policy', detail: 'no, [secret]' },
    ])
  })

  it.each([
    ['data: {"error":{"code":429,"message":"busy"}}\n\n', true],
    ['data: {"error":{"type":"overloaded_error","message":"busy"}}\n\n', true],
    ['event: error\ndata: {"message":"bad","code":"invalid_request"}\n\n', false],
    ['{"error":"a bare line"}\n', false],
    [': hello\n\ndata: {"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}\n\n', false],
  ])('S5 in another shape: %j', async (text, retryable) => {
    expect(last(await run([text]))).toMatchObject({ type: 'failed', code: 'provider_error', retryable })
  })

  it('a web page instead of an answer is failed: this is no model endpoint', async () => {
    upstream().script({ headers: { 'content-type': 'text/html; charset=utf-8' }, steps: ['<html>hello</html>'] })
    expect(last(await collect(open().stream(requestOf())))).toMatchObject({ type: 'failed', code: 'unexpected_content', retryable: false })
  })
})

describe('an outcome that nobody knows (K3)', () => {
  it('the connection is cut before any header: interrupted, not failed', async () => {
    upstream().script({ beforeHeaders: 'CUT' })
    expect(await collect(open().stream(requestOf()))).toEqual([{ type: 'interrupted', code: 'connection_lost' }])
  })

  it('no header in time', async () => {
    upstream().script({ beforeHeaders: 'HOLD' })
    const events = await collect(open({ limits: { firstByteTimeoutMs: 40 } }).stream(requestOf()))
    expect(events).toEqual([{ type: 'interrupted', code: 'response_timeout' }])
    expect(await (await upstream().request(0)).closed).toBe(true)
  })

  it('no byte in time', async () => {
    const events = await run([HOLD], { limits: { firstByteTimeoutMs: 60 } })
    expect(last(events)).toEqual({ type: 'interrupted', code: 'response_timeout' })
  })

  it('T8 an error object after 30 tokens: the text stands, interrupted with the provider code', async () => {
    const tokens = Array.from({ length: 30 }, (_, at) => `t${at} `)
    const events = await run([...tokens.map(textChunk), sse({ error: { code: 'server_overloaded', message: 'x' } }), DONE])
    expect(textOf(events)).toBe(tokens.join(''))
    expect(last(events)).toEqual({ type: 'interrupted', code: 'provider_error', providerCode: 'server_overloaded', detail: 'x' })
    expect(ofType(events, 'usage')[0]?.estimated).toBe(true)
  })

  it('an error object after the finish_reason is no complete answer', async () => {
    const events = await run([textChunk('a'), finishChunk(), sse({ error: { code: 'late' } })])
    expect(last(events)).toMatchObject({ type: 'interrupted', code: 'provider_error', providerCode: 'late' })
  })

  it('the connection is cut in the middle of a character', async () => {
    const bytes = new TextEncoder().encode(textChunk('whole') + textChunk('龙'))
    const events = await run([bytes.subarray(0, bytes.length - 70), CUT])
    expect(textOf(events)).toBe('whole')
    expect(last(events)).toEqual({ type: 'interrupted', code: 'connection_lost' })
  })

  it('a stall after some text', async () => {
    const events = await run([textChunk('some'), HOLD], { limits: { idleTimeoutMs: 40 } })
    expect(textOf(events)).toBe('some')
    expect(last(events)).toEqual({ type: 'interrupted', code: 'stalled' })
    expect(await (await upstream().request(0)).closed).toBe(true)
  })

  it('a slow consumer is no stall', async () => {
    upstream().script({ steps: [textChunk('a'), textChunk('b'), finishChunk(), DONE] })
    const events: ModelStreamEvent[] = []
    for await (const event of open({ limits: { idleTimeoutMs: 30 } }).stream(requestOf())) {
      events.push(event)
      if (event.type === 'text') await new Promise((resolve) => setTimeout(resolve, 80))
    }
    expect(last(events)).toMatchObject({ type: 'finished' })
  })

  it('garbage in the stream', async () => {
    const events = await run([textChunk('ok'), 'Internal Server Error\n', textChunk('never')])
    expect(textOf(events)).toBe('ok')
    expect(last(events)).toEqual({ type: 'interrupted', code: 'garbage', detail: 'Internal Server Error' })
  })

  it('JSON that is no chunk', async () => {
    expect(last(await run([sse([1, 2])]))).toMatchObject({ type: 'interrupted', code: 'garbage' })
    expect(last(await run([sse({ choices: 'none' })]))).toMatchObject({ type: 'interrupted', code: 'garbage' })
  })

  it('a chunk without bounds', async () => {
    const events = await run([textChunk('ok'), textChunk('x'.repeat(5_000))], { limits: { maxEventChars: 4_000 } })
    expect(textOf(events)).toBe('ok')
    expect(last(events)).toMatchObject({ type: 'interrupted', code: 'oversize' })
  })
})

describe('abort and leaving', () => {
  it('S7 aborting before the first token closes the upstream socket', async () => {
    for (const script of [{ beforeHeaders: 'HOLD' as const }, { steps: [HOLD] as FakeStep[] }]) {
      const abort = new AbortController()
      upstream().script(script)
      const events = collect(open().stream(requestOf({ signal: abort.signal })))
      const request = await upstream().request(upstream().requests.length)
      abort.abort()
      expect(last(await events)).toEqual({ type: 'interrupted', code: 'aborted' })
      expect(await request.closed).toBe(true)
    }
  })

  it('T5 a stop after 20 tokens keeps exactly these and closes the upstream socket', async () => {
    const abort = new AbortController()
    upstream().script({ steps: [...Array.from({ length: 20 }, () => textChunk('t ')), HOLD] })
    const events: ModelStreamEvent[] = []
    for await (const event of open().stream(requestOf({ signal: abort.signal }))) {
      events.push(event)
      if (textOf(events) === 't '.repeat(20)) abort.abort()
    }
    expect(textOf(events)).toBe('t '.repeat(20))
    expect(last(events)).toEqual({ type: 'interrupted', code: 'aborted' })
    expect(await (await upstream().request(0)).closed).toBe(true)
  })

  it('an abort while the consumer is busy closes the socket at once', async () => {
    const abort = new AbortController()
    upstream().script({ steps: [textChunk('a'), HOLD] })
    const stream = open().stream(requestOf({ signal: abort.signal }))
    const iterator = stream[Symbol.asyncIterator]()
    await iterator.next()
    await iterator.next()
    abort.abort()
    expect(await (await upstream().request(0)).closed).toBe(true)
    await iterator.return?.(undefined)
  })

  it('leaving the loop closes the upstream socket', async () => {
    upstream().script({ steps: [textChunk('a'), HOLD] })
    for await (const event of open().stream(requestOf())) if (event.type === 'text') break
    expect(await (await upstream().request(0)).closed).toBe(true)
  })

  it('a request that is aborted before it starts is never sent', async () => {
    const events = await collect(open().stream(requestOf({ signal: AbortSignal.abort() })))
    expect(events).toEqual([{ type: 'failed', code: 'aborted', retryable: false }])
    expect(upstream().requests).toHaveLength(0)
  })
})

it('a connection that is accepted and never answered for is bounded before it stands, too', async () => {
  // A TLS endpoint that accepts and says nothing: the handshake never ends, so nothing was sent.
  const silent = createServer()
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as AddressInfo
  const sockets: { destroy(): void }[] = []
  silent.on('connection', (socket) => sockets.push(socket))
  const gateway = open({ endpoint: { baseUrl: `https://127.0.0.1:${port}/v1`, connectTimeoutMs: 50 } })
  expect(await collect(gateway.stream(requestOf()))).toMatchObject([{ type: 'failed', code: 'connect_failed', retryable: true }])
  for (const socket of sockets) socket.destroy()
  await new Promise<void>((resolve) => silent.close(() => resolve()))
})

it('an endpoint that answers with another protocol ends the request, and nobody knows how', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const baseUrl = `http://127.0.0.1:${port}/v1`
  expect(await collect(open({ endpoint: { baseUrl } }).stream(requestOf()))).toMatchObject([
    { type: 'interrupted', code: 'connection_lost' },
  ])
  const embedder = createOpenAiEmbeddingEndpoint({ endpoint: { baseUrl }, model: 'e' })
  expect(await embedder.request(['x'], {})).toMatchObject({ type: 'unknown', code: 'connection_lost' })
  embedder.close()
  await new Promise<void>((resolve) => server.close(() => resolve()))
})
