import { afterEach, beforeEach } from 'vitest'
import type { ChatRequestBody, ModelRequest, ModelStreamEvent } from '#kernel/ports/model-gateway'
import { createOpenAiGateway, type OpenAiGateway, type OpenAiGatewayOptions } from '#model/openai-gateway'
import { type FakeStep, type FakeUpstream, startFakeUpstream } from './fake-upstream.ts'

export const API_KEY = 'sk-test-0123456789abcdef'

/** A request to the fake upstream; `extra` replaces fields of it, `body` fields of what is sent. */
export const requestOf = (extra: Partial<ModelRequest> = {}, body: Partial<ChatRequestBody> = {}): ModelRequest => {
  const whole: ChatRequestBody = { model: 'm', stream: true, messages: [{ role: 'user', content: '你好, "quoted" 😀' }], ...body }
  return { body: whole, bodyText: JSON.stringify(whole), purpose: 'answer', signal: new AbortController().signal, ...extra }
}

export const collect = async (events: AsyncIterable<ModelStreamEvent>): Promise<ModelStreamEvent[]> => {
  const all: ModelStreamEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

export const textOf = (events: readonly ModelStreamEvent[]): string =>
  events.map((event) => (event.type === 'text' ? event.text : '')).join('')

export const ofType = <T extends ModelStreamEvent['type']>(
  events: readonly ModelStreamEvent[],
  type: T,
): Extract<ModelStreamEvent, { type: T }>[] =>
  events.filter((event): event is Extract<ModelStreamEvent, { type: T }> => event.type === type)

/** A fake upstream and gateways to it, fresh for each test of the file that calls this. */
export const useGateway = () => {
  const gateways: OpenAiGateway[] = []
  let current: FakeUpstream | undefined
  const upstream = (): FakeUpstream => {
    if (current === undefined) throw new Error('There is an upstream inside a test only')
    return current
  }
  beforeEach(async () => {
    current = await startFakeUpstream()
  })
  afterEach(async () => {
    for (const gateway of gateways.splice(0)) gateway.close()
    await current?.close()
    current = undefined
  })
  const open = (options: Partial<OpenAiGatewayOptions> = {}): OpenAiGateway => {
    const gateway = createOpenAiGateway({ endpoint: { baseUrl: upstream().baseUrl, apiKey: API_KEY }, ...options })
    gateways.push(gateway)
    return gateway
  }
  /** One request, answered with these steps. */
  const run = async (steps: FakeStep[], options: Partial<OpenAiGatewayOptions> = {}): Promise<ModelStreamEvent[]> => {
    upstream().script({ steps })
    return collect(open(options).stream(requestOf()))
  }
  return { upstream, open, run }
}
