import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Explanation } from '#contracts'
import { DONE, finishChunk, startFakeUpstream, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeRequest, FakeResponse, FakeUpstream } from '../support/fake-upstream.ts'
import { recorded, recordedTypes } from '../support/plant.ts'
import { expectReplays } from '../support/replays.ts'
import { askAndHear, call, eventually, newTree } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'

// Each test walks several turns; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 120_000 })

let upstream: FakeUpstream
let system: TestSystem

beforeAll(async () => {
  upstream = await startFakeUpstream()
  system = await startTestSystem({ model: upstream.baseUrl })
})
afterAll(async () => {
  await expectReplays(system)
  await system.close()
  await upstream.close()
})
beforeEach(() => upstream.unscript())

const asksUsage = (request: FakeRequest): boolean => 'stream_options' in (JSON.parse(request.bodyText) as object)
const says = (text: string, usage: string[] = []): FakeResponse => ({ steps: [textChunk(text), finishChunk(), ...usage, DONE] })
const refuses = (status: number, body: unknown): FakeResponse => ({
  status,
  headers: { 'content-type': 'application/json' },
  steps: [JSON.stringify(body)],
})
const named = refuses(400, { error: { message: 'Unrecognized request argument: stream_options', code: 'unknown_field' } })
/** An endpoint that takes the request only without the option. */
const strict =
  (text: string, refusal: FakeResponse) =>
  (request: FakeRequest): FakeResponse =>
    asksUsage(request) ? refusal : says(text)

/** What the upstream was sent while `work` went on. */
async function sent<Result>(work: () => Promise<Result>): Promise<{ result: Result; requests: FakeRequest[] }> {
  const before = upstream.requests.length
  const result = await work()
  return { result, requests: upstream.requests.slice(before) }
}

const explanation = (runId: string): Promise<Explanation> => call<Explanation>(system, 'GET', `/v1/runs/${runId}/explanation`)
const context = (runId: string): Promise<{ body: string; result: string }> => call(system, 'GET', `/v1/admin/runs/${runId}/context`)
async function replays(runId: string): Promise<string[]> {
  const { runStore, replays: service } = system.system.conversation
  const run = await runStore.get(runId)
  if (!run) throw new Error('there is no such run')
  return (await service.everyContext(run)).map(({ turn, result }) => `${turn} ${result}`)
}
const kept = (): Promise<{ endpoint: string; model: string; takes_stream_options: boolean }[]> =>
  system.system.database.query('SELECT endpoint, model, takes_stream_options FROM endpoint_quirks')

describe('an endpoint that does not take stream_options (decision 39)', () => {
  it('keeps nothing where a request is called bad for another reason; it is tried without the option once', async () => {
    const tree = await newTree(system)
    upstream.script(named, refuses(400, { error: { message: 'no such parameter: seed', code: 'unknown_field' } }))
    const { result, requests } = await sent(() => askAndHear(system, tree.id, 'hello'))
    expect(requests.map(asksUsage)).toEqual([true, false])
    expect(result.events.at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'provider_error', code: 'unknown_field' })
    expect(await kept()).toEqual([])
    expect(await replays(result.accepted.run_id)).toEqual(['1 identical', '1 identical'])
  })

  it('is found out by the first answer, in the same run; the second answer asks for nothing that is refused; all can be rebuilt', async () => {
    const tree = await newTree(system)
    // It took the option once: what was sent then is rebuilt as it was, whatever is found out later.
    upstream.script(says('Yes.', [usageChunk(11, 3)]))
    const early = await sent(() => askAndHear(system, tree.id, 'Do you count?'))
    expect(early.requests.map(asksUsage)).toEqual([true])
    const endpoint = { endpoint: upstream.baseUrl, model: 'test-model' }
    expect(await kept()).toEqual([{ ...endpoint, takes_stream_options: true }])

    const unnamed = refuses(422, { detail: [{ loc: ['body', 'stream_options'], msg: 'Extra inputs are not permitted' }] })
    upstream.script(strict('never', unnamed), strict('Not any more.', unnamed))
    const first = await sent(() => askAndHear(system, tree.id, 'And now?'))
    expect(first.result.text).toBe('Not any more.')
    expect(first.requests.map(asksUsage)).toEqual([true, false])
    expect(await kept()).toEqual([{ ...endpoint, takes_stream_options: false }])

    const { run_id: runId } = first.result.accepted
    const types = await recordedTypes(system, runId)
    expect(types.filter((type) => /^(?:turn\.started|context|llm\.|run\.finished)/.test(type))).toEqual([
      'turn.started',
      'context.projected',
      'llm.requested',
      'llm.failed',
      'context.projected',
      'llm.requested',
      'llm.delta',
      'llm.completed',
      'run.finished',
    ])
    expect(await recorded(system, `run:${runId}`, 'llm.failed')).toMatchObject([{ code: 'bad_request', status: 422, retry_in_ms: 0 }])
    const effects = await recorded(system, `run:${runId}`, 'llm.requested')
    expect(effects.map((effect) => effect.try)).toEqual([1, 2])
    expect(new Set(effects.map((effect) => effect.effect_id)).size).toBe(2)
    expect(new Set(effects.map((effect) => effect.request_digest)).size).toBe(2)
    expect(await recorded(system, `run:${runId}`, 'budget.settled')).toMatchObject([{ tokens: 0 }, { estimated: true }])

    upstream.script(strict('Still not.', named))
    const second = await sent(() => askAndHear(system, tree.id, 'Sure?'))
    expect(second.result.text).toBe('Still not.')
    expect(second.requests.map(asksUsage)).toEqual([false])

    for (const { result, requests } of [early, first, second]) {
      expect(await context(result.accepted.run_id)).toMatchObject({ result: 'identical', body: requests.at(-1)?.bodyText })
    }
    expect(await replays(early.result.accepted.run_id)).toEqual(['1 identical'])
    expect(await replays(runId)).toEqual(['1 identical', '1 identical'])
    expect(await replays(second.result.accepted.run_id)).toEqual(['1 identical'])
    expect(await explanation(early.result.accepted.run_id)).toMatchObject({
      usage: { prompt_tokens: 11, completion_tokens: 3, estimated: false },
    })
    for (const { result } of [first, second]) {
      const { usage, turns, rebuilt } = await explanation(result.accepted.run_id)
      expect({ turns, rebuilt, estimated: usage?.estimated }).toEqual({ turns: 1, rebuilt: 'identical', estimated: true })
      expect(usage?.prompt_tokens).toBeGreaterThan(50)
      expect(usage?.completion_tokens).toBeGreaterThan(0)
    }

    // Jobs ask the same endpoint.
    upstream.script(strict('{"proposals":[]}', named))
    const job = await sent(async () => {
      const next = upstream.requests.length
      await call(system, 'POST', `/v1/nodes/${second.result.accepted.candidate_id}/canonize`)
      await upstream.request(next)
    })
    expect(job.requests.map(asksUsage)).toEqual([false])
    await eventually(async () => {
      const [row] = await system.system.database.query<{ outcome: string | null }>('SELECT outcome FROM outbox')
      return row?.outcome === 'done'
    }, 'the end of the job')
  })
})

it('nothing is asked or kept about the demo model', async () => {
  const demo = await startTestSystem()
  try {
    const tree = await newTree(demo)
    const { accepted, events } = await askAndHear(demo, tree.id, 'Hello!')
    expect(events.at(-1)?.type).toBe('run.finished')
    expect((await recorded(demo, `run:${accepted.run_id}`, 'llm.completed')).map((done) => done.estimated)).toEqual([false])
    expect(await demo.system.database.query('SELECT model FROM endpoint_quirks')).toEqual([])
  } finally {
    await demo.close()
  }
})
