import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FakeRequest, type FakeResponse, type FakeUpstream, startFakeUpstream } from '#test/support/fake-upstream'
import { createOpenAiEmbeddingEndpoint, type OpenAiEmbeddingEndpoint } from './openai-embedder.ts'

let upstream: FakeUpstream
let endpoint: OpenAiEmbeddingEndpoint
beforeEach(async () => {
  upstream = await startFakeUpstream()
  endpoint = open()
})
afterEach(async () => {
  endpoint.close()
  await upstream.close()
})

const open = (options: { baseUrl?: string; timeoutMs?: number } = {}): OpenAiEmbeddingEndpoint =>
  createOpenAiEmbeddingEndpoint({
    endpoint: { baseUrl: options.baseUrl ?? upstream.baseUrl, apiKey: 'sk-embed-0123456789' },
    model: 'e 5',
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
  })
const json = (value: unknown, extra: Partial<FakeResponse> = {}): FakeResponse => ({
  headers: { 'content-type': 'application/json' },
  steps: [JSON.stringify(value)],
  ...extra,
})
const vectors = (make: (text: string) => number[], usage?: unknown) => (request: FakeRequest) => {
  const { input } = JSON.parse(request.bodyText)
  // Handed over in the wrong order on purpose: `index` decides.
  return json({ data: input.map((text: string, index: number) => ({ index, embedding: make(text) })).reverse(), usage })
}

describe('the embeddings client', () => {
  it('asks for floats, normalises and keeps the order, in one request', async () => {
    upstream.script(vectors((text) => [text.length, 4, 0], { prompt_tokens: 7, total_tokens: 7 }))
    const outcome = await endpoint.request(['abc', '', '!!!'], {})
    if (outcome.type !== 'done') throw new Error(outcome.code)
    expect(outcome.vectors.map((vector) => Array.from(vector, (value) => Number(value.toFixed(2))))).toEqual([
      [0.6, 0.8, 0],
      [0.24, 0.97, 0],
      [0.6, 0.8, 0],
    ])
    expect(outcome.tokens).toBe(7)
    expect(upstream.requests.map((request) => JSON.parse(request.bodyText))).toEqual([
      { model: 'e 5', input: ['abc', ' ', '!!!'], encoding_format: 'float' },
    ])
    expect(upstream.requests[0]?.headers.authorization).toBe('Bearer sk-embed-0123456789')
  })

  it('says where the provider did not count, and refuses more texts than one request takes', async () => {
    upstream.script(
      vectors(() => [1]),
      vectors(() => [1], { total_tokens: 'many' }),
    )
    expect(await endpoint.request(['x'], {})).toMatchObject({ type: 'done', tokens: null })
    expect(await endpoint.request(['x'], {})).toMatchObject({ type: 'done', tokens: null })
    await expect(
      endpoint.request(
        Array.from({ length: 65 }, () => 'x'),
        {},
      ),
    ).rejects.toThrow(RangeError)
  })

  it.each([
    ['a missing vector', json({ data: [] })],
    ['no numbers', json({ data: [{ index: 0, embedding: ['1', '2'] }] })],
    ['an index beyond', json({ data: [{ index: 7, embedding: [1, 2] }] })],
    ['another shape', json({ vectors: [[1, 2]] })],
    ['half an answer', json({}, { steps: ['{"data": [tru'] })],
  ])('cannot say what an answer was worth that has %s', async (_name, response) => {
    upstream.script(response)
    expect(await endpoint.request(['x'], {})).toEqual({ type: 'unknown', code: 'bad_answer', retryable: false })
  })

  it('tells what was refused from what nobody knows, and sends nothing twice', async () => {
    upstream.script({ status: 429, headers: { 'retry-after': '3' } })
    expect(await endpoint.request(['x'], {})).toMatchObject({ type: 'failed', code: 'rate_limited', status: 429, retryable: true })
    upstream.script({
      status: 400,
      steps: ['{"error":{"code":"bad_input","message":"sk-embed-0123456789 is wrong"}}'],
      headers: { 'content-type': 'application/json' },
    })
    expect(await endpoint.request(['x'], {})).toEqual({
      type: 'failed',
      code: 'bad_request',
      providerCode: 'bad_input',
      status: 400,
      retryable: false,
    })
    upstream.script({ beforeHeaders: 'CUT' })
    expect(await endpoint.request(['x'], {})).toEqual({ type: 'unknown', code: 'connection_lost', retryable: true })
    expect(upstream.requests).toHaveLength(3)
  })

  it('has failed where nothing was sent', async () => {
    const gone = await startFakeUpstream()
    await gone.close()
    const nowhere = open({ baseUrl: gone.baseUrl })
    expect(await nowhere.request(['x'], {})).toMatchObject({ type: 'failed', code: 'connection_refused', retryable: true })
    nowhere.close()
  })

  it('does not know what became of what it gave up, and closes the socket', async () => {
    upstream.script({ beforeHeaders: 'HOLD' }, { beforeHeaders: 'HOLD' })
    const abort = new AbortController()
    const pending = endpoint.request(['x'], { signal: abort.signal })
    const request = await upstream.request(0)
    abort.abort(new Error('enough'))
    expect(await pending).toEqual({ type: 'unknown', code: 'aborted', retryable: true })
    expect(await request.closed).toBe(true)
    const hasty = open({ timeoutMs: 50 })
    expect(await hasty.request(['x'], {})).toEqual({ type: 'unknown', code: 'timeout', retryable: true })
    hasty.close()
  })
})
