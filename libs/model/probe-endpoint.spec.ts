import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  CUT,
  DONE,
  type FakeResponse,
  type FakeUpstream,
  finishChunk,
  HOLD,
  startFakeUpstream,
  textChunk,
} from '#test/support/fake-upstream'
import { createOpenAiGateway, type OpenAiGateway } from './openai-gateway.ts'
import { probeEndpoint } from './probe-endpoint.ts'

let upstream: FakeUpstream
let gateway: OpenAiGateway
beforeEach(async () => {
  upstream = await startFakeUpstream()
  gateway = createOpenAiGateway({ endpoint: { baseUrl: upstream.baseUrl } })
})
afterEach(async () => {
  gateway.close()
  await upstream.close()
})

const probe = (...responses: FakeResponse[]) => {
  upstream.script(...responses)
  return probeEndpoint(gateway, { model: 'm', signal: new AbortController().signal })
}
const refused: FakeResponse = {
  status: 400,
  steps: ['{"error":{"message":"unknown field stream_options"}}'],
  headers: { 'content-type': 'application/json' },
}
const good: FakeResponse = { steps: [textChunk('ok'), HOLD] }

it('one request where stream_options are taken; the rest of the answer is not waited for', async () => {
  expect(await probe(good)).toEqual({ result: 'reached', quirks: { takesStreamOptions: true } })
  expect(upstream.requests).toHaveLength(1)
  expect(await upstream.requests[0]?.closed).toBe(true)
})

it('a second request without them where they are refused', async () => {
  expect(await probe(refused, { steps: [textChunk('ok'), finishChunk(), DONE] })).toEqual({
    result: 'reached',
    quirks: { takesStreamOptions: false },
  })
  expect(upstream.requests.map((request) => 'stream_options' in JSON.parse(request.bodyText))).toEqual([true, false])
})

it('tells why an endpoint is of no use', async () => {
  expect(await probe(refused, refused)).toMatchObject({ result: 'failed', failure: { code: 'bad_request' } })
  expect(await probe({ status: 401 })).toMatchObject({ result: 'failed', failure: { code: 'unauthorized' } })
  expect(await probe({ beforeHeaders: CUT })).toEqual({ result: 'unknown' })
})
