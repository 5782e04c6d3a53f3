import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FakeRequest, type FakeResponse, type FakeUpstream, startFakeUpstream } from '#test/support/fake-upstream'
import { createOpenAiEmbedder, EmbeddingFailedError, type OpenAiEmbedder } from './openai-embedder.ts'

let upstream: FakeUpstream
let embedder: OpenAiEmbedder | undefined
beforeEach(async () => {
  upstream = await startFakeUpstream()
})
afterEach(async () => {
  embedder?.close()
  await upstream.close()
})

const json = (value: unknown, extra: Partial<FakeResponse> = {}): FakeResponse => ({
  headers: { 'content-type': 'application/json' },
  steps: [JSON.stringify(value)],
  ...extra,
})
const vectors = (make: (text: string) => number[]) => (request: FakeRequest) => {
  const { input } = JSON.parse(request.bodyText)
  // Handed over in the wrong order on purpose: `index` decides.
  return json({ data: input.map((text: string, index: number) => ({ index, embedding: make(text) })).reverse() })
}
const open = async (dimensions?: number) => {
  embedder = await createOpenAiEmbedder({
    endpoint: { baseUrl: upstream.baseUrl, apiKey: 'sk-embed-0123456789' },
    model: 'e 5',
    dimensions,
    batchSize: 2,
  })
  return embedder
}

describe('the embeddings client', () => {
  it('asks for floats, finds the dimensions, normalises and keeps the order over batches', async () => {
    upstream.script(...Array.from({ length: 3 }, () => vectors((text) => [text.length, 4, 0])))
    const { space, embed } = await open()
    expect(space).toEqual({ id: 'e-5-3', model: 'e 5', version: 'v1', dimensions: 3 })
    const made = await embed(['abc', '', '!!!'])
    expect(made.map((vector) => Array.from(vector, (value) => Number(value.toFixed(2))))).toEqual([
      [0.6, 0.8, 0],
      [0.24, 0.97, 0],
      [0.6, 0.8, 0],
    ])
    expect(upstream.requests.map((request) => JSON.parse(request.bodyText))).toEqual([
      { model: 'e 5', input: ['dimensions'], encoding_format: 'float' },
      { model: 'e 5', input: ['abc', ' '], encoding_format: 'float' },
      { model: 'e 5', input: ['!!!'], encoding_format: 'float' },
    ])
    expect(upstream.requests[0]?.headers.authorization).toBe('Bearer sk-embed-0123456789')
  })

  it.each([
    ['a missing vector', json({ data: [] })],
    ['no numbers', json({ data: [{ index: 0, embedding: ['1', '2'] }] })],
    ['an index beyond', json({ data: [{ index: 7, embedding: [1, 2] }] })],
    ['another shape', json({ vectors: [[1, 2]] })],
  ])('refuses %s', async (_name, response) => {
    const { embed } = await open(2)
    upstream.script(response)
    await expect(embed(['x'])).rejects.toMatchObject({ name: 'EmbeddingFailedError', code: 'bad_answer' })
  })

  it('refuses vectors of another space', async () => {
    const { embed } = await open(2)
    upstream.script(vectors(() => [1, 2, 3]))
    await expect(embed(['x'])).rejects.toMatchObject({ code: 'dimensions_changed', retryable: false })
  })

  it('classifies faults, once each', async () => {
    const { embed } = await open(2)
    upstream.script({ status: 429, headers: { 'retry-after': '3' } })
    await expect(embed(['x'])).rejects.toMatchObject({ code: 'rate_limited', retryable: true, retryAfterMs: 3_000 })
    upstream.script({
      status: 400,
      steps: ['{"error":{"message":"sk-embed-0123456789 is wrong"}}'],
      headers: { 'content-type': 'application/json' },
    })
    await expect(embed(['x'])).rejects.toMatchObject({ code: 'bad_request', retryable: false, detail: '[secret] is wrong' })
    upstream.script({ beforeHeaders: 'CUT' })
    await expect(embed(['x'])).rejects.toBeInstanceOf(EmbeddingFailedError)
    upstream.script(json({}, { steps: ['{"data": [tru'] }))
    await expect(embed(['x'])).rejects.toMatchObject({ code: 'bad_answer' })
    expect(upstream.requests).toHaveLength(4)
  })

  it('an abort rejects with its reason and closes the socket', async () => {
    const { embed } = await open(2)
    upstream.script({ beforeHeaders: 'HOLD' })
    const abort = new AbortController()
    const pending = embed(['x'], { signal: abort.signal })
    const request = await upstream.request(0)
    abort.abort(new Error('enough'))
    await expect(pending).rejects.toThrow('enough')
    expect(await request.closed).toBe(true)
  })
})
