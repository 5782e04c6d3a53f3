import { describe, expect, it, vi } from 'vitest'
import type { ModelStreamEvent } from '#kernel/ports/model-gateway'
import { createGate, CUT, deltaChunk, DONE, finishChunk, HOLD, sse, textChunk, usageChunk } from '#test/support/fake-upstream'
import { API_KEY, collect, ofType, requestOf, textOf, useGateway } from '#test/support/gateway-calls'
import { RequestMismatchError } from './openai-gateway.ts'

const { upstream, open, run } = useGateway()
const last = (events: readonly ModelStreamEvent[]): ModelStreamEvent | undefined => events.at(-1)

describe('what is sent', () => {
  it('is the asserted text byte for byte, also where it is no plain JSON.stringify', async () => {
    const body = { model: 'm', stream: true, messages: [{ role: 'user' as const, content: 'é \u2028 龙 😀 1.0' }] }
    const bodyText = `{ "stream":true,  "model":"m","messages":[{"content":"é \\u2028 \u9f99 😀 1.0","role":"user"}]}`
    upstream().script({ steps: [finishChunk(), DONE] })
    await collect(open().stream(requestOf({ body, bodyText })))
    const request = await upstream().request(0)
    expect(request.bodyText).toBe(bodyText)
    expect(request.url).toBe('/v1/chat/completions')
    expect(request.headers.authorization).toBe(`Bearer ${API_KEY}`)
    expect(Object.keys(request.headers).sort()).toEqual([
      'accept',
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
      'user-agent',
    ])
  })

  it('decision 20: refuses to send when the digest is not the one that was rebuilt', async () => {
    const stream = open().stream(requestOf({ bodyDigest: 'f'.repeat(64) }))
    await expect(collect(stream)).rejects.toBeInstanceOf(RequestMismatchError)
    expect(upstream().requests).toHaveLength(0)
    expect(upstream().openConnections()).toBe(0)
  })

  it('refuses to send when text and object differ', async () => {
    const bodyText = JSON.stringify({ ...requestOf().body, model: 'other' })
    await expect(collect(open().stream(requestOf({ bodyText })))).rejects.toBeInstanceOf(RequestMismatchError)
    expect(upstream().requests).toHaveLength(0)
  })

  it('goes out once, however the provider answers, and takes nothing from the environment', async () => {
    vi.stubEnv('OPENAI_ORG_ID', 'org-from-environment')
    vi.stubEnv('OPENAI_CUSTOM_HEADERS', 'x-from-environment: yes')
    upstream().script({ status: 503 }, { status: 503 }, { status: 503 })
    await collect(open({ endpoint: { baseUrl: upstream().baseUrl, headers: { 'x-title': 'mine' } } }).stream(requestOf()))
    vi.unstubAllEnvs()
    expect(upstream().requests).toHaveLength(1)
    const headers = upstream().requests[0]?.headers ?? {}
    expect(headers['x-title']).toBe('mine')
    expect(headers.authorization).toBeUndefined()
    expect(JSON.stringify(headers)).not.toContain('environment')
  })
})

describe('a stream that ends well', () => {
  it('yields opened, text, usage and finished, in this order', async () => {
    const events = await run([
      deltaChunk({ role: 'assistant', content: '' }),
      textChunk('Hel'),
      textChunk('lo'),
      finishChunk(),
      usageChunk(11, 2),
      DONE,
    ])
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
      upstream().script({ steps: [textChunk('a'), whole.subarray(0, cut), gate, whole.subarray(cut)] })
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
    expect(await (await upstream().request(0)).closed).toBe(true)
  })

  it('is complete when the connection is cut after the finish_reason', async () => {
    expect(last(await run([textChunk('a'), finishChunk(), CUT]))).toMatchObject({ type: 'finished' })
  })

  it('keeps reasoning apart, in either spelling', async () => {
    const events = await run([
      deltaChunk({ reasoning_content: 'hm' }),
      deltaChunk({ reasoning: 'mm' }),
      textChunk('so'),
      finishChunk(),
      DONE,
    ])
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
      usage: {
        prompt_tokens: 3,
        completion_tokens: 4,
        completion_tokens_details: { reasoning_tokens: 1 },
        prompt_tokens_details: { cached_tokens: 2 },
      },
    })
    upstream().script({
      headers: { 'content-type': 'application/json; charset=utf-8' },
      steps: [completion.slice(0, 70), completion.slice(70)],
    })
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
      upstream().script({ steps: [textChunk('a'), finishChunk(), DONE] })
      await collect(gateway.stream(requestOf()))
      expect(new Set(upstream().requests.map((request) => request.connection)).size).toBeLessThan(upstream().requests.length)
    })
    expect(upstream().requests.every((request) => !request.isAbandoned)).toBe(true)
  })
})

describe('tool calls', () => {
  const part = (index: number, id: string | undefined, name: string | undefined, args: string): string =>
    deltaChunk({ tool_calls: [{ index, id, function: { name, arguments: args } }] })

  it('are published when complete, S6: an empty finish_reason in their middle ends nothing', async () => {
    const emptyReason = sse({
      choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '"龙' } }] }, finish_reason: '' }],
    })
    const steps = [
      part(0, 'call_1', 'look', '{"a":'),
      emptyReason,
      part(1, 'call_2', 'say', '{}'),
      part(0, undefined, undefined, '"}'),
      finishChunk('tool_calls'),
      DONE,
    ]
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
    expect(
      ofType(events, 'reasoning')
        .map((event) => event.text)
        .join(''),
    ).toBe('r [secret]')
    expect(ofType(events, 'tool_call')[0]?.argumentsText).toBe('{"k":"[secret]"}')
    expect(JSON.stringify(events)).not.toContain(tail)
  })
})
