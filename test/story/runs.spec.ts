import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Explanation, Problem, RunAccepted, RunView, TreeView } from '#contracts'
import { createGate, DONE, finishChunk, HOLD, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeUpstream } from '../support/fake-upstream.ts'
import { recorded, recordedTypes } from '../support/plant.ts'
import { expectReplays } from '../support/replays.ts'
import { answer, ask, call, eventually, follow, newTree, node, path, runEnded, spoken } from '../support/story.ts'
import type { TestSystem } from '../support/system.ts'
import { asked, cancel, heard, limited, startWorld, steer } from '../support/world.ts'
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

describe('interjections', () => {
  it('start another turn that knows what was said; they stand where they took effect, and both turns can be rebuilt', async () => {
    const tree = await newTree(system)
    const [gate, second] = [createGate(), createGate()]
    const turn1 = { steps: [textChunk('I take the left path'), gate, textChunk('.'), finishChunk(), usageChunk(1, 1), DONE] }
    const turn2 = { steps: [textChunk('The right one'), second, textChunk(', then.'), finishChunk(), usageChunk(1, 1), DONE] }
    const accepted = await asked(world, tree.id, 'Where do you go?', turn1, turn2)
    await heard(world, accepted.run_id, 'I take the left path')
    const said = '不,走右边!🧭'
    const { command_id: commandId } = await steer(world, accepted.run_id, said)
    gate.open()
    await heard(world, accepted.run_id, 'I take the left path.The right one')
    // A page that is loaded now sees the same as one that watched.
    const parts = [
      { kind: 'text', text: 'I take the left path.' },
      { kind: 'steer', text: said },
      { kind: 'text', text: 'The right one' },
    ]
    expect(await node(system, accepted.candidate_id)).toMatchObject({ sealed: false, parts })
    second.open()
    const events = await follow(system, accepted.run_id)
    const shape = events.map((event) => event.type).filter((type, index, all) => type !== all[index - 1])
    expect(shape.slice(2)).toEqual([
      'turn.started',
      'llm.delta',
      'steer.received',
      'turn.finished',
      'turn.started',
      'llm.delta',
      'turn.finished',
      'run.finished',
    ])
    expect(events.find((event) => event.type === 'steer.received')).toMatchObject({ command_id: commandId, used: true, text: said })
    expect((await node(system, accepted.candidate_id)).parts).toEqual([
      ...parts.slice(0, 2),
      { kind: 'text', text: 'The right one, then.' },
    ])

    const [one, two] = upstream.requests.slice(-2).map((request) => request.bodyText)
    const messages = (JSON.parse(two ?? '{}') as { messages: { role: string; content: string }[] }).messages
    const at = messages.findIndex((message) => message.content === 'Where do you go?')
    expect(messages.slice(at, at + 3)).toEqual([
      { role: 'user', content: 'Where do you go?' },
      { role: 'assistant', content: 'I take the left path.' },
      { role: 'user', content: said },
    ])
    for (const [turn, sent] of [one, two].entries()) {
      const context = await call<{ body: string; result: string }>(
        system,
        'GET',
        `/v1/admin/runs/${accepted.run_id}/context?turn=${turn + 1}`,
      )
      expect(context).toMatchObject({ result: 'identical', body: sent })
    }
    expect(await call<Explanation>(system, 'GET', `/v1/runs/${accepted.run_id}/explanation`)).toMatchObject({
      turn: 2,
      turns: 2,
      rebuilt: 'identical',
    })

    // What was interjected is part of what the message says, and goes with it (decision 13).
    await call(system, 'DELETE', `/v1/nodes/${accepted.candidate_id}`)
    const after = await follow(system, accepted.run_id)
    expect(after.find((event) => event.type === 'steer.received')).toMatchObject({ text: null })
    expect(spoken(after)).toBe('')
    expect((await call<{ result: string }>(system, 'GET', `/v1/admin/runs/${accepted.run_id}/context`)).result).toBe('erased')
  })

  it('Q6: one that was accepted and not used before the stop is in the record, shown as unused; they are bounded', async () => {
    const tree = await newTree(system)
    const accepted = await asked(world, tree.id, 'go', { steps: [textChunk('On my way'), HOLD] })
    await heard(world, accepted.run_id, 'On my way')
    for (let index = 0; index < 16; index++) await steer(world, accepted.run_id, `and ${index}`)
    const full = await call<Problem>(system, 'POST', `/v1/runs/${accepted.run_id}/steer`, { text: 'and more' }, { status: 429 })
    expect(full.code).toBe('steers_full')
    await cancel(world, accepted.run_id)
    const events = await follow(system, accepted.run_id)
    const steers = events.flatMap((event) => (event.type === 'steer.received' ? [[event.text, event.used]] : []))
    expect(steers).toEqual(Array.from({ length: 16 }, (_, index) => [`and ${index}`, false]))
    expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'cancelled', partial: true })
    expect((await node(system, accepted.candidate_id)).parts).toEqual([{ kind: 'text', text: 'On my way' }])
    const late = await call<Problem>(system, 'POST', `/v1/runs/${accepted.run_id}/steer`, { text: 'too late' }, { status: 409 })
    expect(late.code).toBe('run_ended')
  })
})

describe('the queue', () => {
  /** One run that holds the seat, and one in another tree behind it. */
  async function line(): Promise<{ ahead: RunAccepted; waiting: RunAccepted; other: TreeView; goOn: () => void }> {
    const [here, other] = [await newTree(system), await newTree(system)]
    const gate = createGate()
    const ahead = await asked(world, here.id, 'first', {
      steps: [textChunk('Hm'), gate, textChunk('.'), finishChunk(), usageChunk(1, 1), DONE],
    })
    const waiting = await ask(system, other.id, 'second')
    expect(waiting.queue_position).toBe(1)
    return { ahead, waiting, other, goOn: () => gate.open() }
  }

  it('is left by stopping, with what was interjected on record; the one ahead goes on', async () => {
    const { ahead, waiting, other, goOn } = await line()
    await steer(world, waiting.run_id, 'hurry')
    const [first, second] = [await cancel(world, waiting.run_id), await cancel(world, waiting.run_id)]
    expect(first.run.state).toBe('interrupted')
    expect(second.run.last_seq).toBe(first.run.last_seq)
    const events = await follow(system, waiting.run_id)
    expect(events.map((event) => event.type)).toEqual(['run.requested', 'run.queued', 'steer.received', 'run.interrupted'])
    expect(events[2]).toMatchObject({ used: false, text: 'hurry' })
    expect(events[3]).toMatchObject({ reason: 'cancelled', candidate_id: null })
    // What the question waits for now is another one, below it: it said nothing.
    expect((await path(system, other.id)).tree.head_node_id).toBe(waiting.question_id)
    goOn()
    expect((await follow(system, ahead.run_id)).at(-1)?.type).toBe('run.finished')
  })

  it('is left by waiting too long, visibly', async () => {
    const { ahead, waiting, goOn } = await line()
    await system.system.database.execute(`UPDATE runs SET queue_expires_at = now() - interval '1 second' WHERE id = $1::uuid`, [
      waiting.run_id,
    ])
    const events = await follow(system, waiting.run_id)
    expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'queue_expired' })
    goOn()
    await runEnded(system, ahead.run_id)
  })

  it('is bounded for each owner', async () => {
    const tree = await newTree(system, { token: system.ownerBToken })
    upstream.script({ beforeHeaders: HOLD })
    const asks = Array.from({ length: 52 }, () =>
      system.call('POST', `/v1/trees/${tree.id}/runs`, {
        token: system.ownerBToken,
        body: { text: 'again', parent_id: tree.head_node_id },
      }),
    )
    const answers = await Promise.all(asks)
    const refused = answers.filter((response) => response.status !== 201)
    expect(answers.length - refused.length).toBe(50)
    expect(refused.map((response) => [response.status, (response.json() as Problem).code])).toEqual([
      [429, 'queue_full'],
      [429, 'queue_full'],
    ])
    await call(system, 'PUT', `/v1/admin/kill/owner/${system.ownerBId}`)
    await system.system.database.execute(
      `UPDATE runs SET state = 'interrupted', ended_at = now() WHERE owner_id = $1::uuid AND state = 'queued'`,
      [system.ownerBId],
    )
    await eventually(() => Promise.resolve(system.system.conversation.seats.liveRuns === 0), 'the end of the killed run')
  })

  it('Q2, Q3, Q7: an owner that lost its run writes nothing more; the run ends as lost, with what was said, and the next one starts', async () => {
    const [here, there] = [await newTree(system), await newTree(system)]
    const gate = createGate()
    const steps = [textChunk('Before'), gate, textChunk(' and after'), finishChunk(), usageChunk(1, 1), DONE]
    const lost = await asked(world, here.id, 'speak', { steps }, answer('Next.'))
    await heard(world, lost.run_id, 'Before')
    const next = await ask(system, there.id, 'and then?')
    // Somebody else has taken it over, and died; the lease is over.
    await system.system.database.execute(
      `UPDATE runs SET fence = fence + 1, holder = 'somebody else', lease_until = now() - interval '1 second' WHERE id = $1::uuid`,
      [lost.run_id],
    )
    gate.open()
    const ended = (await follow(system, lost.run_id)).at(-1)
    expect(ended).toMatchObject({ type: 'run.interrupted', reason: 'lease_expired', partial: true })
    expect((await node(system, lost.candidate_id)).text).toBe('Before')
    expect(spoken(await follow(system, next.run_id))).toBe('Next.')
  })
})

describe('limits', () => {
  it('of tokens: nothing is sent that could go beyond them', async () => {
    const tree = await newTree(system)
    const before = upstream.requests.length
    await limited(world, { max_tokens: 10 }, async () => {
      const accepted = await ask(system, tree.id, 'cheaply, please')
      expect((await follow(system, accepted.run_id)).at(-1)).toMatchObject({
        type: 'run.interrupted',
        reason: 'budget_exhausted',
        candidate_id: null,
      })
      expect(await recorded(system, `run:${accepted.run_id}`, 'budget.exhausted')).toMatchObject([{ which: 'max_tokens', limit: 10 }])
      expect((await recordedTypes(system, accepted.run_id)).slice(-3)).toEqual(['context.projected', 'budget.exhausted', 'run.interrupted'])
    })
    expect(upstream.requests.length).toBe(before)
  })

  it('of turns: an interjection beyond them is on record as unused', async () => {
    const tree = await newTree(system)
    await limited(world, { max_turns: 1 }, async () => {
      const gate = createGate()
      const accepted = await asked(world, tree.id, 'one turn', {
        steps: [textChunk('Only this'), gate, finishChunk(), usageChunk(1, 1), DONE],
      })
      await heard(world, accepted.run_id, 'Only this')
      await steer(world, accepted.run_id, 'and that')
      gate.open()
      const events = await follow(system, accepted.run_id)
      expect(events.at(-2)).toMatchObject({ type: 'steer.received', used: false })
      expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'budget_exhausted', partial: true })
      expect(await recorded(system, `run:${accepted.run_id}`, 'budget.exhausted')).toMatchObject([
        { which: 'max_turns', limit: 1, needed: 2 },
      ])
    })
  })

  it('of time: a provider that takes too long is left, what it said stays', async () => {
    const tree = await newTree(system)
    await limited(world, { max_wall_ms: 1_500 }, async () => {
      const accepted = await asked(world, tree.id, 'quickly', { steps: [textChunk('Well'), HOLD] })
      const events = await follow(system, accepted.run_id)
      expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'budget_exhausted', partial: true })
      expect(await recorded(system, `run:${accepted.run_id}`, 'budget.exhausted')).toMatchObject([{ which: 'max_wall_ms', limit: 1_500 }])
      expect(await upstream.requests.at(-1)?.closed).toBe(true)
    })
  })
})

describe('the kill switch', () => {
  it('stops what speaks and what is silent, keeps what was said, and lets nothing begin until it is lifted', async () => {
    const tree = await newTree(system)
    const characterId = tree.character_ids[0] ?? ''
    const kill = `/v1/admin/kill/character/${characterId}`
    const gate = createGate()
    const speaking = await asked(world, tree.id, 'speak', { steps: [textChunk('I say'), gate, textChunk(' nothing more'), HOLD] })
    await heard(world, speaking.run_id, 'I say')
    await call(system, 'PUT', kill)
    for (const [route, body] of [
      [`/v1/trees/${tree.id}/runs`, { text: 'hello?', parent_id: tree.head_node_id }],
      [`/v1/nodes/${speaking.question_id}/edit`, { text: 'hello?' }],
    ] as const) {
      expect((await call<Problem>(system, 'POST', route, body, { status: 423 })).code).toBe('killed')
    }
    gate.open()
    expect((await follow(system, speaking.run_id)).at(-1)).toMatchObject({ type: 'run.failed', code: 'killed', partial: true })
    expect(await node(system, speaking.candidate_id)).toMatchObject({ text: 'I say', partial: true })
    expect(await upstream.requests.at(-1)?.closed).toBe(true)
    await call(system, 'DELETE', kill)

    const silent = await asked(world, tree.id, 'think', { steps: [textChunk('Let me'), HOLD] })
    await heard(world, silent.run_id, 'Let me')
    await call(system, 'PUT', kill)
    expect((await follow(system, silent.run_id)).at(-1)).toMatchObject({ type: 'run.failed', code: 'killed', partial: true })
    await call(system, 'DELETE', kill)
    const free = await asked(world, tree.id, 'and now?', answer('Free.'))
    expect(spoken(await follow(system, free.run_id))).toBe('Free.')
  })
})

describe('in the end', () => {
  it('every chain verifies, every sampled context rebuilds, and no run is left alive', async () => {
    const report = await call<{ intact: boolean; faults: unknown[] }>(system, 'POST', '/v1/admin/verify', {})
    expect(report.faults).toEqual([])
    for (const sample of await system.system.conversation.runStore.sample(10)) {
      const context = await system.system.conversation.replays.context(sample)
      expect(['identical', 'erased']).toContain(context.result)
    }
    const { items } = await call<{ items: RunView[] }>(system, 'GET', '/v1/runs?state=running')
    expect(items).toEqual([])
  })
})
