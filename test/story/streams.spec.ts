import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Problem, RunStreamEvent } from '#contracts'
import { createGate, CUT, DONE, finishChunk, HOLD, sse, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeResponse, FakeUpstream } from '../support/fake-upstream.ts'
import { recorded } from '../support/plant.ts'
import { expectReplays } from '../support/replays.ts'
import { answer, ask, call, eventually, follow, newTree, node, runEnded, spoken } from '../support/story.ts'
import type { TestSystem } from '../support/system.ts'
import { asked, cancel, heard, run, startWorld, words } from '../support/world.ts'
import type { World } from '../support/world.ts'

// Each test walks several turns; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 120_000 })

let world: World
let system: TestSystem
let upstream: FakeUpstream

beforeAll(async () => {
  world = await startWorld()
  ;({ system, upstream } = world)
})
afterAll(async () => {
  await expectReplays(system)
  await world.close()
})
beforeEach(() => upstream.unscript())

describe('what a provider does', () => {
  it('T8: an error object after 30 words leaves a partial of 30, the provider’s code, a free seat, and the next in line runs', async () => {
    const [here, there] = [await newTree(system), await newTree(system)]
    await call(system, 'PATCH', `/v1/trees/${here.id}`, { title: 'The first one' })
    const gate = createGate()
    const fault = sse({ error: { message: 'too much at once', type: 'server_error', code: 'server_overloaded' } })
    const first = await asked(world, here.id, 'go on', { steps: [...words(30).map(textChunk), gate, fault] }, answer('My turn.'))
    await heard(world, first.run_id, words(30).join(''))

    const second = await ask(system, there.id, 'and me?')
    expect(second).toMatchObject({ state: 'queued', queue_position: 1 })
    expect(await run(world, second.run_id)).toMatchObject({
      state: 'queued',
      queue_position: 1,
      seat_held_by: { run_id: first.run_id, tree_id: here.id, tree_title: 'The first one' },
    })
    gate.open()
    const ended = (await follow(system, first.run_id)).at(-1)
    expect(ended).toMatchObject({ type: 'run.interrupted', reason: 'provider_error', code: 'server_overloaded', partial: true })
    expect(await node(system, first.candidate_id)).toMatchObject({ text: words(30).join(''), partial: true, sealed: true })
    const events = await follow(system, second.run_id)
    expect(events.map((event) => event.type).slice(0, 3)).toEqual(['run.requested', 'run.queued', 'run.started'])
    expect(events.find((event) => event.type === 'run.queued')).toMatchObject({ position: 1 })
    expect(spoken(events)).toBe('My turn.')
    const refused = await call<Problem>(system, 'POST', `/v1/nodes/${first.candidate_id}/canonize`, undefined, { status: 409 })
    expect(refused.code).toBe('partial_not_canonizable')
  })

  it('T9: characters that are cut apart between two chunks arrive whole', async () => {
    const tree = await newTree(system)
    const text = '海上🌊有𠮷岛👩‍👩‍👧。'
    const bytes = Buffer.from(textChunk(text))
    const pieces = Array.from({ length: bytes.length }, (_, index) => bytes.subarray(index, index + 1))
    // The two halves of a surrogate pair in two chunks as well, as some providers escape them.
    const halves = [
      sse({ choices: [{ index: 0, delta: { content: '\ud83c' } }] }),
      sse({ choices: [{ index: 0, delta: { content: '\udf19' } }] }),
    ]
    const accepted = await asked(world, tree.id, '在哪里?', { steps: [...pieces, ...halves, finishChunk('stop'), usageChunk(1, 1), DONE] })
    const events = await follow(system, accepted.run_id)
    expect(spoken(events)).toBe(`${text}🌙`)
    expect((await node(system, accepted.candidate_id)).text).toBe(`${text}🌙`)
  })

  it('T10: a finish_reason and then usage without choices is complete, without a DONE; without a finish_reason the text is a partial', async () => {
    const tree = await newTree(system)
    const whole = await asked(world, tree.id, 'one', { steps: [textChunk('Complete.'), finishChunk('stop'), usageChunk(41, 7)] })
    expect((await follow(system, whole.run_id)).at(-1)).toMatchObject({ type: 'run.finished', partial: false })
    expect(await recorded(system, `run:${whole.run_id}`, 'llm.completed')).toMatchObject([
      { prompt_tokens: 41, completion_tokens: 7, estimated: false },
    ])
    expect(await recorded(system, `run:${whole.run_id}`, 'budget.settled')).toMatchObject([{ tokens: 48, estimated: false }])

    const broken = await asked(world, tree.id, 'two', { steps: [textChunk('Half a'), DONE] })
    expect((await follow(system, broken.run_id)).at(-1)).toMatchObject({
      type: 'run.interrupted',
      reason: 'no_finish_reason',
      partial: true,
    })
    expect(await node(system, broken.candidate_id)).toMatchObject({ text: 'Half a', partial: true })
  })

  it('S5: status 200 with an error object and a DONE is a failure with the provider’s code and leaves no answer', async () => {
    const tree = await newTree(system)
    const accepted = await asked(world, tree.id, 'hello', {
      steps: [sse({ error: { code: 'insufficient_quota', message: 'no more' } }), DONE],
    })
    expect((await follow(system, accepted.run_id)).at(-1)).toMatchObject({
      type: 'run.interrupted',
      reason: 'provider_error',
      code: 'insufficient_quota',
      candidate_id: null,
    })
    expect(await recorded(system, `run:${accepted.run_id}`, 'llm.failed')).toMatchObject([
      { provider_code: 'insufficient_quota', retry_in_ms: null },
    ])
    expect((await system.call('POST', `/v1/nodes/${accepted.candidate_id}/canonize`)).status).toBe(404)
  })

  it('S4: a busy provider is asked again, each try an effect of its own, until it speaks; after a word never', async () => {
    const tree = await newTree(system)
    const busy = (status: number): FakeResponse => ({ status, headers: { 'retry-after-ms': '1' }, steps: ['{"error":{"code":"busy"}}'] })
    const accepted = await asked(world, tree.id, 'are you there?', busy(429), busy(503), answer('Yes.'))
    expect(spoken(await follow(system, accepted.run_id))).toBe('Yes.')
    const requested = await recorded(system, `run:${accepted.run_id}`, 'llm.requested')
    expect(requested.map((request) => request.try)).toEqual([1, 2, 3])
    expect(new Set(requested.map((request) => request.effect_id)).size).toBe(3)
    expect(new Set(requested.map((request) => request.request_digest)).size).toBe(1)
    expect((await recorded(system, `run:${accepted.run_id}`, 'budget.settled')).map((settled) => settled.tokens)).toEqual([0, 0, 51])

    const before = upstream.requests.length
    const cut = await asked(world, tree.id, 'and now?', { steps: [textChunk('I was going to'), CUT] }, answer('never asked for'))
    expect((await follow(system, cut.run_id)).at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'network', partial: true })
    expect(upstream.requests.length).toBe(before + 1)
    expect(await recorded(system, `run:${cut.run_id}`, 'llm.unknown')).toHaveLength(1)
  })

  it('S7: leaving before the first word and stopping closes the connection to the provider, and the reservation is charged', async () => {
    const tree = await newTree(system)
    const accepted = await asked(world, tree.id, 'never mind', { beforeHeaders: HOLD })
    await follow(system, accepted.run_id, { until: (event) => event.type === 'turn.started' })
    expect((await run(world, accepted.run_id)).state).toBe('running')
    await cancel(world, accepted.run_id)
    expect(await upstream.requests.at(-1)?.closed).toBe(true)
    const ended = await runEnded(system, accepted.run_id)
    expect(ended).toMatchObject({ state: 'interrupted', reason: 'cancelled' })
    const [reserved] = await recorded(system, `run:${accepted.run_id}`, 'budget.reserved')
    expect(await recorded(system, `run:${accepted.run_id}`, 'budget.settled')).toEqual([
      { effect_id: reserved?.effect_id, tokens: reserved?.tokens, cost_micros: 0, estimated: true },
    ])
    // Stopping again, or what has ended, changes nothing.
    const again = await cancel(world, accepted.run_id)
    expect(again.run.last_seq).toBe(ended.last_seq)
  })
})

describe('readers', () => {
  it('a reader that leaves does not stop the run', async () => {
    const tree = await newTree(system)
    const gate = createGate()
    const accepted = await asked(world, tree.id, 'tell me', {
      steps: [textChunk('Once '), gate, textChunk('more.'), finishChunk(), usageChunk(1, 1), DONE],
    })
    await heard(world, accepted.run_id, 'Once ')
    await eventually(() => Promise.resolve(system.system.conversation.streams.openStreams === 0), 'the end of the stream')
    gate.open()
    expect(await runEnded(system, accepted.run_id)).toMatchObject({ state: 'finished' })
    expect((await node(system, accepted.candidate_id)).text).toBe('Once more.')
  })

  it('S1, S2: heartbeats carry no id; a connection that drops before anything new leaves the cursor where it was', async () => {
    const tree = await newTree(system)
    const gate = createGate()
    const accepted = await asked(world, tree.id, 'slowly', {
      steps: [textChunk('Wait '), gate, textChunk('for it.'), finishChunk(), usageChunk(1, 1), DONE],
    })
    const first = await heard(world, accepted.run_id, 'Wait ')
    const cursor = first.at(-1)?.seq ?? 0

    const dropped = await open(accepted.run_id, cursor)
    await dropped.close()
    const second = await open(accepted.run_id, cursor)
    // Nothing that was seen comes again; the first thing to come is a sign of life.
    expect(await second.nextBlock()).toBe(': heartbeat')
    gate.open()
    const blocks: string[] = []
    for (let block = await second.nextBlock(); block !== null; block = await second.nextBlock()) blocks.push(block)
    const events = blocks.filter((block) => !block.startsWith(':')).map(parseBlock)
    expect(events.map((event) => event.seq)).toEqual(events.map((event) => event.id))
    expect(events[0]).toMatchObject({ prev_seq: cursor })
    expect(events.at(-1)?.type).toBe('run.finished')
    expect(spoken([...first, ...events])).toBe('Wait for it.')
  })

  it('S3: somebody else’s run is not there; a cursor beyond the end is told to begin again; one that is no number is refused', async () => {
    const tree = await newTree(system)
    const accepted = await asked(world, tree.id, 'mine', answer('Yours.'))
    const last = (await follow(system, accepted.run_id)).at(-1)?.seq ?? 0
    for (const [method, route, body] of [
      ['GET', `/v1/runs/${accepted.run_id}`, undefined],
      ['GET', `/v1/runs/${accepted.run_id}/events`, undefined],
      ['POST', `/v1/runs/${accepted.run_id}/cancel`, undefined],
      ['POST', `/v1/runs/${accepted.run_id}/steer`, { text: 'psst' }],
      ['GET', `/v1/runs/${accepted.run_id}/explanation`, undefined],
    ] as const) {
      expect((await system.call(method, route, { token: system.ownerBToken, body })).status).toBe(404)
    }
    const events = (lastEventId: string) =>
      system.call('GET', `/v1/runs/${accepted.run_id}/events`, { headers: { 'last-event-id': lastEventId } })
    const expired = await events(String(last + 1))
    expect([expired.status, (expired.json() as Problem).code]).toEqual([410, 'cursor_expired'])
    expect((await events('-1')).status).toBe(400)
    expect((await events('soon')).status).toBe(400)
    // At the end there is nothing more to come, and the stream says so by ending.
    expect(await follow(system, accepted.run_id, { after: last })).toEqual([])
  })

  it('a reader that does not read is let go, and goes on later from where it was', async () => {
    const tree = await newTree(system)
    const gate = createGate()
    const long = Array.from({ length: 96 }, (_, index) => `${index}:${'潮汐🌊 '.repeat(8_000)}`)
    const steps = [textChunk('A long one: '), gate, ...long.map(textChunk), finishChunk(), usageChunk(1, 1), DONE]
    const accepted = await asked(world, tree.id, 'tell me everything', { steps })
    const reader = await sleepyReader(accepted.run_id)
    gate.open()
    await runEnded(system, accepted.run_id)
    await eventually(() => Promise.resolve(system.system.conversation.streams.openStreams === 0), 'the end of the slow reader’s stream')
    const shown = (await reader.wake()).split('\n\n').filter((block) => block.startsWith('id: ') && block.includes('\ndata: '))
    // The last block may have been cut; the ones before it are whole.
    const seen = shown.slice(0, -1).map(parseBlock)
    const rest = await follow(system, accepted.run_id, { after: seen.at(-1)?.seq ?? 0 })
    expect(seen.length).toBeGreaterThan(0)
    expect(rest.length).toBeGreaterThan(1)
    expect(spoken([...seen, ...rest])).toBe(`A long one: ${long.join('')}`)
  })
})

describe('in the end', () => {
  it('a provider that refuses connections is tried three times, then said so', async () => {
    await upstream.close()
    const tree = await newTree(system)
    const accepted = await ask(system, tree.id, 'anybody?')
    expect((await follow(system, accepted.run_id)).at(-1)).toMatchObject({
      type: 'run.interrupted',
      reason: 'provider_error',
      candidate_id: null,
    })
    const failures = await recorded(system, `run:${accepted.run_id}`, 'llm.failed')
    expect(failures.map((failure) => failure.code)).toEqual(['connection_refused', 'connection_refused', 'connection_refused'])
  })
})

/** A stream read block by block, comments included. */
async function open(runId: string, after: number): Promise<{ nextBlock: () => Promise<string | null>; close: () => Promise<void> }> {
  const response = await fetch(`${system.baseUrl}/v1/runs/${runId}/events`, {
    headers: { authorization: `Bearer ${system.token}`, 'last-event-id': String(after) },
  })
  if (!response.body) throw new Error('there is no stream')
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(response.headers.get('x-accel-buffering')).toBe('no')
  const reader = response.body.pipeThrough(new TextDecoderStream('utf-8', { fatal: true })).getReader()
  let text = ''
  return {
    nextBlock: async () => {
      while (!text.includes('\n\n')) {
        const { done, value } = await reader.read()
        if (done) return null
        text += value
      }
      const end = text.indexOf('\n\n')
      const block = text.slice(0, end)
      text = text.slice(end + 2)
      return block
    },
    close: () => reader.cancel(),
  }
}

function parseBlock(block: string): RunStreamEvent & { id: number } {
  const fields = new Map(block.split('\n').map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]))
  return { ...(JSON.parse(fields.get('data') ?? '{}') as RunStreamEvent), id: Number(fields.get('id')) }
}

/** Reads a stream until its first delta, then nothing more until it wakes; answers all it was sent by the time the connection ended. */
async function sleepyReader(runId: string): Promise<{ wake: () => Promise<string> }> {
  const { hostname, port } = new URL(system.baseUrl)
  const socket: Socket = connect(Number(port), hostname)
  socket.setEncoding('utf8')
  socket.write(`GET /v1/runs/${runId}/events HTTP/1.0\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${system.token}\r\n\r\n`)
  let text = ''
  socket.on('data', (piece: string) => {
    text += piece
  })
  socket.on('error', () => undefined) // a connection that is cut is what this reader deserves
  await eventually(() => Promise.resolve(text.includes('event: llm.delta')), 'the first delta')
  socket.pause()
  return {
    wake: async () => {
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
      socket.resume()
      await closed
      return text.slice(text.indexOf('\r\n\r\n') + 4)
    },
  }
}
