import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import type { ChatRequestBody, ModelRequest, ModelStreamEvent } from '#kernel/ports/model-gateway'
import {
  createGate,
  CUT,
  deltaChunk,
  DONE,
  type FakeStep,
  type FakeUpstream,
  finishChunk,
  HOLD,
  sse,
  startFakeUpstream,
  textChunk,
  usageChunk,
} from '#test/support/fake-upstream'
import { createOpenAiGateway, type OpenAiGateway, type OpenAiGatewayOptions, RequestMismatchError } from './openai-gateway.ts'

const API_KEY = 'sk-test-0123456789abcdef'
let upstream: FakeUpstream
const gateways: OpenAiGateway[] = []

beforeEach(async () => {
  upstream = await startFakeUpstream()
})
afterEach(async () => {
  for (const gateway of gateways.splice(0)) gateway.close()
  await upstream.close()
})

const open = (options: Partial<OpenAiGatewayOptions> = {}): OpenAiGateway => {
  const gateway = createOpenAiGateway({ endpoint: { baseUrl: upstream.baseUrl, apiKey: API_KEY }, ...options })
  gateways.push(gateway)
  return gateway
}
const requestOf = (extra: Partial<ModelRequest> = {}, body: Partial<ChatRequestBody> = {}): ModelRequest => {
  const whole: ChatRequestBody = { model: 'm', stream: true, messages: [{ role: 'user', content: '你好, "quoted" 😀' }], ...body }
  return { body: whole, bodyText: JSON.stringify(whole), purpose: 'answer', signal: new AbortController().signal, ...extra }
}
const collect = async (events: AsyncIterable<ModelStreamEvent>): Promise<ModelStreamEvent[]> => {
  const all: ModelStreamEvent[] = []
  for await (const event of events) all.push(event)
  return all
}
const run = async (steps: FakeStep[], options: Partial<OpenAiGatewayOptions> = {}): Promise<ModelStreamEvent[]> => {
  upstream.script({ steps })
  return collect(open(options).stream(requestOf()))
}
const textOf = (events: ModelStreamEvent[]): string => events.map((event) => (event.type === 'text' ? event.text : '')).join('')
const last = (events: ModelStreamEvent[]): ModelStreamEvent | undefined => events.at(-1)
const ofType = <T extends ModelStreamEvent['type']>(events: ModelStreamEvent[], type: T) =>
  events.filter((event): event is Extract<ModelStreamEvent, { type: T }> => event.type === type)

describe('what is sent', () => {
  it('is the asserted text byte for byte, also where it is no plain JSON.stringify', async () => {
    const body = { model: 'm', stream: true, messages: [{ role: 'user' as const, content: 'é \u2028 龙 😀 1.0' }] }
    const bodyText = `{ "stream":true,  "model":"m","messages":[{"content":"é \\u2028 \u9f99 😀 1.0","role":"user"}]}`
    upstream.script({ steps: [finishChunk(), DONE] })
    await collect(open().stream(requestOf({ body, bodyText })))
    const request = await upstream.request(0)
    expect(request.bodyText).toBe(bodyText)
    expect(request.url).toBe('/v1/chat/completions')
    expect(request.headers.authorization).toBe(`Bearer ${API_KEY}`)
    expect(Object.keys(request.headers).sort()).toEqual(['accept', 'authorization', 'connection', 'content-length', 'content-type', 'host', 'user-agent'])
  })

  it('decision 20: refuses to send when the digest is not the one that was rebuilt', async () => {
    const stream = open().stream(requestOf({ bodyDigest: 'f'.repeat(64) }))
    await expect(collect(stream)).rejects.toBeInstanceOf(RequestMismatchError)
    expect(upstream.requests).toHaveLength(0)
    expect(upstream.openConnections()).toBe(0)
  })

  it('refuses to send when text and object differ', async () => {
    const bodyText = JSON.stringify({ ...requestOf().body, model: 'other' })
    await expect(collect(open().stream(requestOf({ bodyText })))).rejects.toBeInstanceOf(RequestMismatchError)
    expect(upstream.requests).toHaveLength(0)
  })

  it('goes out once, however the provider answers, and takes nothing from the environment', async () => {
    vi.stubEnv('OPENAI_ORG_ID', 'org-from-environment')
    vi.stubEnv('OPENAI_CUSTOM_HEADERS', 'x-from-environment: yes')
    upstream.script({ status: 503 }, { status: 503 }, { status: 503 })
    await collect(open({ endpoint: { baseUrl: upstream.baseUrl, headers: { 'x-title': 'mine' } } }).stream(requestOf()))
    vi.unstubAllEnvs()
    expect(upstream.requests).toHaveLength(1)
    const headers = upstream.requests[0]?.headers ?? {}
    expect(headers['x-title']).toBe('mine')
    expect(headers.authorization).toBeUndefined()
    expect(JSON.stringify(headers)).not.toContain('environment')
  })
})

describe('a stream that ends well', () => {
  it('yields opened, text, usage and finished, in this order', async () => {
    const events = await run([deltaChunk({ role: 'assistant', content: '' }), textChunk('Hel'), textChunk('lo'), finishChunk(), usageChunk(11, 2), DONE])
    expect(events).toEqual([
      { type: 'opened' },
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo' },
      { type: 'usage', promptTokens: 11, completionTokens: 2, estimated: false },
      { type: 'finished', finishReason: 'stop', droppedToolCalls: 0 },
    ])
  })

  it('T10 is complete with a finish_reason, then usage with empty choices and no [DONE]', async () => {
    const events = await run([textChunk('yes'), finishChunk(), usageChunk(5, 1)])
    expect(ofType(events, 'usage')).toEqual([{ type: 'usage', promptTokens: 5, completionTokens: 1, estimated: false }])
    expect(last(events)).toEqual({ type: 'finished', finishReason: 'stop', droppedToolCalls: 0 })
  })

  it('T10 without any finish_reason is interrupted, text kept', async () => {
    for (const tail of [[], [DONE], [usageChunk(5, 1), DONE]]) {
      const events = await run([textChunk('kept'), ...tail])
      expect(textOf(events)).toBe('kept')
      expect(last(events)).toEqual({ type: 'interrupted', code: 'ended_early' })
    }
  })

  it('T9 never shows a replacement character when a character is split across network chunks', async () => {
    const whole = new TextEncoder().encode(textChunk('前😀龙后') + finishChunk() + DONE)
    for (let cut = 1; cut < 60; cut++) {
      const gate = createGate()
      upstream.script({ steps: [textChunk('a'), whole.subarray(0, cut), gate, whole.subarray(cut)] })
      const events: ModelStreamEvent[] = []
      for await (const event of open().stream(requestOf())) {
        events.push(event)
        if (event.type === 'text') gate.open()
      }
      expect(textOf(events)).toBe('a前😀龙后')
    }
  })

  it('T9 joins a surrogate pair that a provider split over two deltas', async () => {
    const events = await run([textChunk('x\ud83d'), textChunk('\ude00y'), finishChunk(), DONE])
    expect(ofType(events, 'text').map((event) => event.text)).toEqual(['x', '😀y'])
  })

  it('does not wait for a [DONE] that never comes: the connection stays open after the end', async () => {
    const events = await run([textChunk('a'), finishChunk(), HOLD], { limits: { finishGraceMs: 30 } })
    expect(last(events)).toMatchObject({ type: 'finished' })
    expect(ofType(events, 'usage')[0]?.estimated).toBe(true)
    expect(await (await upstream.request(0)).closed).toBe(true)
  })

  it('is complete when the connection is cut after the finish_reason', async () => {
    expect(last(await run([textChunk('a'), finishChunk(), CUT]))).toMatchObject({ type: 'finished' })
  })

  it('keeps reasoning apart, in either spelling', async () => {
    const events = await run([deltaChunk({ reasoning_content: 'hm' }), deltaChunk({ reasoning: 'mm' }), textChunk('so'), finishChunk(), DONE])
    expect(ofType(events, 'reasoning').map((event) => event.text)).toEqual(['hm', 'mm'])
    expect(textOf(events)).toBe('so')
  })

  it('lives through comments, CRLF, empty choices, null deltas, pings and other choices', async () => {
    const odd = [
      ': keep-alive\r\n\r\n',
      sse({ choices: [] }),
      sse({ choices: [{ index: 0, delta: null, finish_reason: null }] }),
      sse({ choices: [{ index: 1, delta: { content: 'another choice' }, finish_reason: 'stop' }] }),
      'event: ping\ndata: {"type":"ping"}\n\n',
      textChunk('fine').replaceAll('\n', '\r\n'),
      deltaChunk({ content: [{ type: 'text', text: '!' }] }),
      sse({ usage: null, error: null, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    ]
    const events = await run(odd)
    expect(textOf(events)).toBe('fine!')
    expect(last(events)).toMatchObject({ type: 'finished' })
  })

  it('reads a whole completion where no stream was asked for, or none was given', async () => {
    const completion = JSON.stringify({
      choices: [{ index: 0, message: { role: 'assistant', content: '整块' }, finish_reason: 'length' }],
      usage: { prompt_tokens: 3, completion_tokens: 4, completion_tokens_details: { reasoning_tokens: 1 }, prompt_tokens_details: { cached_tokens: 2 } },
    })
    upstream.script({ headers: { 'content-type': 'application/json; charset=utf-8' }, steps: [completion.slice(0, 70), completion.slice(70)] })
    const events = await collect(open().stream(requestOf({}, { stream: false })))
    expect(textOf(events)).toBe('整块')
    expect(ofType(events, 'usage')).toEqual([
      { type: 'usage', promptTokens: 3, completionTokens: 4, cachedPromptTokens: 2, reasoningTokens: 1, estimated: false },
    ])
    expect(last(events)).toMatchObject({ type: 'finished', finishReason: 'length' })
  })

  it('estimates usage, marked, where the provider gives none', async () => {
    const events = await run([textChunk('one two three'), finishChunk(), DONE], { countTokens: (text) => text.length })
    expect(ofType(events, 'usage')).toEqual([
      { type: 'usage', promptTokens: requestOf().bodyText.length, completionTokens: 13, estimated: true },
    ])
  })

  it('gives the connection back: later requests take it again', async () => {
    const gateway = open()
    // The end of a body reaches us a moment after its last event, so that a request at once may still open a second connection.
    await vi.waitFor(async () => {
      upstream.script({ steps: [textChunk('a'), finishChunk(), DONE] })
      await collect(gateway.stream(requestOf()))
      expect(new Set(upstream.requests.map((request) => request.connection)).size).toBeLessThan(upstream.requests.length)
    })
    expect(upstream.requests.every((request) => !request.isAbandoned)).toBe(true)
  })
})

describe('tool calls', () => {
  const part = (index: number, id: string | undefined, name: string | undefined, args: string): string =>
    deltaChunk({ tool_calls: [{ index, id, function: { name, arguments: args } }] })

  it('are published when complete, S6: an empty finish_reason in their middle ends nothing', async () => {
    const emptyReason = sse({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '"龙' } }] }, finish_reason: '' }] })
    const steps = [part(0, 'call_1', 'look', '{"a":'), emptyReason, part(1, 'call_2', 'say', '{}'), part(0, undefined, undefined, '"}'), finishChunk('tool_calls'), DONE]
    const events = await run(steps)
    expect(ofType(events, 'tool_call')).toEqual([
      { type: 'tool_call', index: 0, providerId: 'call_1', name: 'look', argumentsText: '{"a":"龙"}' },
      { type: 'tool_call', index: 1, providerId: 'call_2', name: 'say', argumentsText: '{}' },
    ])
    expect(last(events)).toMatchObject({ type: 'finished', finishReason: 'tool_calls', droppedToolCalls: 0 })
  })

  it('S6 an empty finish_reason alone leaves the stream unfinished and the call unpublished', async () => {
    const events = await run([part(0, 'call_1', 'look', '{"a"'), deltaChunk({}, ''), DONE])
    expect(last(events)).toEqual({ type: 'interrupted', code: 'ended_early' })
    expect(ofType(events, 'tool_call')).toEqual([])
  })

  it('E21 of a message cut by the length limit are not published', async () => {
    const events = await run([part(0, 'a', 'look', '{}'), part(1, 'b', 'look', '{"x'), finishChunk('length'), DONE])
    expect(ofType(events, 'tool_call')).toEqual([])
    expect(last(events)).toEqual({ type: 'finished', finishReason: 'length', droppedToolCalls: 2 })
  })
})

describe('a provider fault before anything was generated', () => {
  const answer = async (status: number, error: unknown, headers: Record<string, string> = {}) => {
    upstream.script({ status, headers: { 'content-type': 'application/json', ...headers }, steps: [JSON.stringify(error)] })
    return collect(open().stream(requestOf()))
  }

  it.each([
    [429, { error: { code: 'rate_limit_exceeded', message: 'slow down' } }, { code: 'rate_limited', retryable: true, providerCode: 'rate_limit_exceeded' }],
    [429, { error: { code: 'insufficient_quota', message: 'no money' } }, { code: 'quota_exhausted', retryable: false }],
    [500, { error: { message: 'oops', type: 'server_error' } }, { code: 'provider_unavailable', retryable: true, providerCode: 'server_error' }],
    [503, 'not an object', { code: 'provider_unavailable', retryable: true }],
    [401, { error: { code: 'invalid_api_key', message: 'bad' } }, { code: 'unauthorized', retryable: false }],
    [403, {}, { code: 'forbidden', retryable: false }],
    [404, { error: { message: 'no such model' } }, { code: 'model_not_found', retryable: false, detail: 'no such model' }],
    [400, { error: { code: 'context_length_exceeded', message: 'long' } }, { code: 'context_too_long', retryable: false }],
    [400, { error: { message: 'bad field', code: 'a code with spaces' } }, { code: 'bad_request', retryable: false, providerCode: 'other' }],
    [307, {}, { code: 'redirect_refused', retryable: false }],
  ])('status %i %j', async (status, body, expected) => {
    const events = await answer(status, body, status === 307 ? { location: `${upstream.baseUrl}/elsewhere` } : {})
    expect(events).toHaveLength(1)
    expect(events[0]).toMatchObject({ type: 'failed', status, ...expected })
    expect(upstream.requests).toHaveLength(1)
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
    upstream.script({ steps: [finishChunk(), DONE] })
    const lookup: NonNullable<OpenAiGatewayOptions['endpoint']['lookup']> = (_name, options, done) =>
      options.all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4)
    const events = await collect(open({ endpoint: { baseUrl: `http://model.invalid:${upstream.port}/v1`, lookup } }).stream(requestOf()))
    expect(last(events)).toMatchObject({ type: 'finished' })
  })

  it('TLS that does not come about was not sent: failed', async () => {
    const events = await collect(open({ endpoint: { baseUrl: upstream.baseUrl.replace('http:', 'https:') } }).stream(requestOf()))
    expect(events).toMatchObject([{ type: 'failed', retryable: expect.any(Boolean) }])
    expect(upstream.requests).toHaveLength(0)
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
    upstream.script({ headers: { 'content-type': 'text/html; charset=utf-8' }, steps: ['<html>hello</html>'] })
    expect(last(await collect(open().stream(requestOf())))).toMatchObject({ type: 'failed', code: 'unexpected_content', retryable: false })
  })
})

describe('an outcome that nobody knows (K3)', () => {
  it('the connection is cut before any header: interrupted, not failed', async () => {
    upstream.script({ beforeHeaders: 'CUT' })
    expect(await collect(open().stream(requestOf()))).toEqual([{ type: 'interrupted', code: 'connection_lost' }])
  })

  it('no header in time', async () => {
    upstream.script({ beforeHeaders: 'HOLD' })
    const events = await collect(open({ limits: { firstByteTimeoutMs: 40 } }).stream(requestOf()))
    expect(events).toEqual([{ type: 'interrupted', code: 'response_timeout' }])
    expect(await (await upstream.request(0)).closed).toBe(true)
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
    expect(await (await upstream.request(0)).closed).toBe(true)
  })

  it('a slow consumer is no stall', async () => {
    upstream.script({ steps: [textChunk('a'), textChunk('b'), finishChunk(), DONE] })
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
      upstream.script(script)
      const events = collect(open().stream(requestOf({ signal: abort.signal })))
      const request = await upstream.request(upstream.requests.length)
      abort.abort()
      expect(last(await events)).toEqual({ type: 'interrupted', code: 'aborted' })
      expect(await request.closed).toBe(true)
    }
  })

  it('T5 a stop after 20 tokens keeps exactly these and closes the upstream socket', async () => {
    const abort = new AbortController()
    upstream.script({ steps: [...Array.from({ length: 20 }, () => textChunk('t ')), HOLD] })
    const events: ModelStreamEvent[] = []
    for await (const event of open().stream(requestOf({ signal: abort.signal }))) {
      events.push(event)
      if (textOf(events) === 't '.repeat(20)) abort.abort()
    }
    expect(textOf(events)).toBe('t '.repeat(20))
    expect(last(events)).toEqual({ type: 'interrupted', code: 'aborted' })
    expect(await (await upstream.request(0)).closed).toBe(true)
  })

  it('an abort while the consumer is busy closes the socket at once', async () => {
    const abort = new AbortController()
    upstream.script({ steps: [textChunk('a'), HOLD] })
    const iterator = open().stream(requestOf({ signal: abort.signal }))[Symbol.asyncIterator]()
    await iterator.next()
    await iterator.next()
    abort.abort()
    expect(await (await upstream.request(0)).closed).toBe(true)
    await iterator.return?.(undefined)
  })

  it('leaving the loop closes the upstream socket', async () => {
    upstream.script({ steps: [textChunk('a'), HOLD] })
    for await (const event of open().stream(requestOf())) if (event.type === 'text') break
    expect(await (await upstream.request(0)).closed).toBe(true)
  })

  it('a request that is aborted before it starts is never sent', async () => {
    const events = await collect(open().stream(requestOf({ signal: AbortSignal.abort() })))
    expect(events).toEqual([{ type: 'failed', code: 'aborted', retryable: false }])
    expect(upstream.requests).toHaveLength(0)
  })
})

describe('secrets in output (decision 37)', () => {
  it('are masked in text, reasoning and arguments, across chunks', async () => {
    const [head, tail] = [API_KEY.slice(0, 9), API_KEY.slice(9)]
    const steps = [
      deltaChunk({ reasoning_content: `r ${head}` }),
      deltaChunk({ reasoning_content: tail }),
      textChunk(`key: ${head}`),
      textChunk(`${tail} token: lt_0123456789`),
      textChunk('abcdef end'),
      deltaChunk({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: `{"k":"${head}` } }] }),
      deltaChunk({ tool_calls: [{ index: 0, function: { arguments: `${tail}"}` } }] }),
      finishChunk('tool_calls'),
    ]
    const events = await run(steps, { secrets: ['lt_0123456789abcdef'] })
    expect(textOf(events)).toBe('key: [secret] token: [secret] end')
    expect(ofType(events, 'reasoning').map((event) => event.text).join('')).toBe('r [secret]')
    expect(ofType(events, 'tool_call')[0]?.argumentsText).toBe('{"k":"[secret]"}')
    expect(JSON.stringify(events)).not.toContain(tail)
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
