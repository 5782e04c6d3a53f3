import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Problem, RunAccepted, RunStreamEvent } from '#contracts'
import { fakeContract, fakeTools } from '../support/fake-target.ts'
import { createGate, DONE, finishChunk, HOLD, textChunk, usageChunk } from '../support/fake-upstream.ts'
import { recorded } from '../support/plant.ts'
import { expectReplays } from '../support/replays.ts'
import { answer, ask, call, follow, newTree, node, path, runEnded, spoken } from '../support/story.ts'
import type { TestSystem } from '../support/system.ts'
import { calling, treeWithTools } from '../support/tool-calls.ts'
import { asked, cancel, heard, limited, requested, run, startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* An answer that ran out of its budget leaves a checkpoint; the owner may have it gone on with (K5, K6). */
vi.setConfig({ testTimeout: 120_000 })

const fakes = fakeTools(fakeContract('look.up', { priceMicros: 10 }))
let world: World
let system: TestSystem

beforeAll(async () => {
  world = await startWorld({ overrides: { tools: fakes.catalogue } })
  ;({ system } = world)
})
afterAll(async () => {
  await expectReplays(system)
  await world.close()
})
beforeEach(() => world.upstream.unscript())

const goOn = (runId: string): Promise<RunAccepted> => call<RunAccepted>(system, 'POST', `/v1/runs/${runId}/continue`)
const refusal = async (runId: string, token?: string): Promise<Problem> => {
  const answered = await system.call('POST', `/v1/runs/${runId}/continue`, token === undefined ? {} : { token })
  expect(answered.status).toBeGreaterThanOrEqual(400)
  return answered.json() as Problem
}
/** The messages of the newest request. */
const sentMessages = () =>
  (JSON.parse(world.upstream.requests.at(-1)?.bodyText ?? '{"messages":[]}') as { messages: { role: string }[] }).messages
const started = (events: readonly RunStreamEvent[]) => events.find((event) => event.type === 'run.started')
const checkpoints = (runId: string) =>
  system.system.database.query<{ event_offset: number; deltas: number }>(
    `SELECT event_offset::int, (state ->> 'deltas')::int AS deltas FROM checkpoints WHERE run_id = $1::uuid`,
    [runId],
  )

/** An answer that says `said` and then runs out of time. */
async function cutShort(treeId: string, said: string): Promise<RunAccepted> {
  let accepted: RunAccepted | undefined
  await limited(world, { max_wall_ms: 1_000 }, async () => {
    accepted = await asked(world, treeId, 'Tell me all of it.', { steps: [textChunk(said), HOLD] })
    expect((await follow(system, accepted.run_id)).at(-1)).toMatchObject({ reason: 'budget_exhausted', partial: true })
  })
  if (!accepted) throw new Error('nothing was asked')
  return accepted
}

describe('an answer that ran out of budget', () => {
  it('leaves a checkpoint at the end of its chain, and says so', async () => {
    const tree = await newTree(system)
    const cut = await cutShort(tree.id, 'Once upon')
    const [end] = await recorded(system, `run:${cut.run_id}`, 'run.interrupted')
    expect(end).toMatchObject({ reason: 'budget_exhausted', which: 'max_wall_ms', checkpoint: true })
    const { last_seq: last } = await run(world, cut.run_id)
    expect(await checkpoints(cut.run_id)).toEqual([{ event_offset: last, deltas: 1 }])
  })

  it('is gone on with by another run that begins with its words; the partial stays what it was (M1, M7)', async () => {
    const tree = await newTree(system)
    const cut = await cutShort(tree.id, 'Once upon ')
    const gate = createGate()
    const next = await requested(
      world,
      [{ steps: [textChunk('a time'), gate, textChunk('.'), finishChunk(), usageChunk(9, 3), DONE] }],
      () => goOn(cut.run_id),
    )
    const messages = sentMessages()
    expect(messages.slice(-3, -1)).toEqual([
      { role: 'user', content: 'Tell me all of it.' },
      { role: 'assistant', content: 'Once upon ' },
    ])
    await heard(world, next.run_id, 'a time')
    // Whoever looks now sees the whole of it.
    expect(await node(system, next.candidate_id)).toMatchObject({ sealed: false, text: 'Once upon a time' })
    gate.open()
    const events = await follow(system, next.run_id)
    expect(started(events)).toMatchObject({ inherited: [{ kind: 'text', part: 0, text: 'Once upon ' }] })
    expect(spoken(events)).toBe('a time.')
    expect(await node(system, next.candidate_id)).toMatchObject({ sealed: true, partial: false, text: 'Once upon a time.' })
    expect(await node(system, cut.candidate_id)).toMatchObject({ sealed: true, partial: true, text: 'Once upon ' })
    expect((await path(system, tree.id)).nodes.at(-1)?.id).toBe(next.candidate_id)
    // The second chain says how much of the first it has in common.
    const [request] = await recorded(system, `run:${next.run_id}`, 'run.requested')
    const [first] = await system.system.database.query<{ hash: string; seq: number }>(
      `SELECT encode(hash, 'hex') AS hash, seq::int FROM events WHERE stream = $1 ORDER BY seq DESC LIMIT 1`,
      [`run:${cut.run_id}`],
    )
    expect(request).toMatchObject({ continues: { run_id: cut.run_id, ...first } })
    expect(await call(system, 'GET', `/v1/runs/${next.run_id}/explanation`)).toMatchObject({ rebuilt: 'identical' })
  })

  it('knows what was done in between, and does it no second time', async () => {
    const tree = await treeWithTools(system, ['look.up'])
    let cut: RunAccepted | undefined
    await limited(world, { max_turns: 1 }, async () => {
      world.upstream.script(calling([{ name: 'look_up', arguments: '{"text":"door"}' }], 'Let me see. '))
      cut = await ask(system, tree.id, 'What is behind the door?')
      expect((await follow(system, cut.run_id)).at(-1)).toMatchObject({ reason: 'budget_exhausted' })
    })
    const happened = fakes.tools.get('look.up')?.happened.length
    world.upstream.script(answer('A garden.'))
    const next = await goOn(cut?.run_id ?? '')
    await follow(system, next.run_id)
    const messages = sentMessages()
    expect(messages.slice(-3, -1)).toMatchObject([{ role: 'assistant', content: 'Let me see. ', tool_calls: [{}] }, { role: 'tool' }])
    expect(fakes.tools.get('look.up')?.happened.length).toBe(happened)
    expect((await node(system, next.candidate_id)).parts.map(({ kind }) => kind)).toEqual(['text', 'tool_call', 'tool_result_ref', 'text'])
  })

  it('is gone on with again where that was not enough either', async () => {
    const tree = await newTree(system)
    const cut = await cutShort(tree.id, 'One, ')
    let second: RunAccepted | undefined
    await limited(world, { max_wall_ms: 1_000 }, async () => {
      second = await requested(world, [{ steps: [textChunk('two, '), HOLD] }], () => goOn(cut.run_id))
      await follow(system, second.run_id)
    })
    world.upstream.script(answer('three.'))
    const third = await goOn(second?.run_id ?? '')
    await follow(system, third.run_id)
    expect((await node(system, third.candidate_id)).text).toBe('One, two, three.')
    expect((await node(system, second?.candidate_id ?? '')).text).toBe('One, two, ')
  })

  it('that adds nothing leaves no candidate, and can still be gone on with', async () => {
    const tree = await newTree(system)
    const cut = await cutShort(tree.id, 'And then ')
    let second: RunAccepted | undefined
    await limited(world, { max_tokens: 10 }, async () => {
      second = await goOn(cut.run_id)
      expect((await follow(system, second.run_id)).at(-1)).toMatchObject({ reason: 'budget_exhausted', candidate_id: null })
    })
    expect((await path(system, tree.id)).nodes.at(-1)?.id).toBe(cut.candidate_id)
    world.upstream.script(answer('it rained.'))
    const third = await goOn(second?.run_id ?? '')
    await follow(system, third.run_id)
    expect((await node(system, third.candidate_id)).text).toBe('And then it rained.')
  })

  it('is gone on with where it was cut at the length of a reply: half a sentence is no answer (M7)', async () => {
    const tree = await newTree(system)
    const cut = await asked(world, tree.id, 'And then?', { steps: [textChunk('Then the '), finishChunk('length'), usageChunk(9, 3), DONE] })
    expect((await follow(system, cut.run_id)).at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'length', partial: true })
    expect(await node(system, cut.candidate_id)).toMatchObject({ sealed: true, partial: true, text: 'Then the ' })
    expect((await system.call('POST', `/v1/nodes/${cut.candidate_id}/canonize`)).status).toBe(409)
    world.upstream.script(answer('rain came.'))
    const next = await goOn(cut.run_id)
    await follow(system, next.run_id)
    expect(sentMessages().slice(-2, -1)).toEqual([{ role: 'assistant', content: 'Then the ' }])
    expect(await node(system, next.candidate_id)).toMatchObject({ partial: false, text: 'Then the rain came.' })
  })

  it('keeps both beginnings when the continuation is stopped in its middle', async () => {
    const tree = await newTree(system)
    const cut = await cutShort(tree.id, 'Far away ')
    const next = await requested(world, [{ steps: [textChunk('there was'), HOLD] }], () => goOn(cut.run_id))
    await heard(world, next.run_id, 'there was')
    await cancel(world, next.run_id)
    expect(await runEnded(system, next.run_id)).toMatchObject({ state: 'interrupted', reason: 'cancelled' })
    expect(await node(system, next.candidate_id)).toMatchObject({ partial: true, text: 'Far away there was' })
  })
})

describe('going on is refused', () => {
  it('while another answer is being written, for what ended otherwise, for what was deleted, and to anybody else', async () => {
    const tree = await newTree(system)
    const cut = await cutShort(tree.id, 'Here ')
    const next = await requested(world, [{ steps: [textChunk('and now'), HOLD] }], () => goOn(cut.run_id))
    expect(await refusal(cut.run_id)).toMatchObject({ code: 'candidate_open' })
    await heard(world, next.run_id, 'and now')
    await cancel(world, next.run_id)
    await runEnded(system, next.run_id)
    expect(await refusal(next.run_id)).toMatchObject({ code: 'wrong_state' })
    await call(system, 'DELETE', `/v1/nodes/${cut.candidate_id}`)
    expect(await refusal(cut.run_id)).toMatchObject({ code: 'wrong_state' })
    expect(await refusal('01935f00-0000-7000-8000-000000000001')).toMatchObject({ code: 'not_found' })
    // The words that were taken over are another message's by now.
    expect((await node(system, next.candidate_id)).text).toBe('Here and now')
  })

  it('by the database too: a run goes on only with one of the same question', async () => {
    const tree = await newTree(system)
    const cut = await cutShort(tree.id, 'Here ')
    world.upstream.script(answer('Elsewhere.'))
    const other = await ask(system, (await newTree(system)).id, 'And you?')
    await follow(system, other.run_id)
    const { database } = system.system
    await expect(
      database.execute('UPDATE runs SET continues_run_id = $1::uuid WHERE id = $2::uuid', [cut.run_id, other.run_id]),
    ).rejects.toThrow(/is fixed/)
    await expect(
      database.execute(
        `INSERT INTO runs (id, owner_id, kind, seated, character_id, tree_id, question_id, continues_run_id, state, protocol_version,
                           reducer_version, trace_id, ended_at)
         SELECT gen_random_uuid(), owner_id, kind, seated, character_id, tree_id, question_id, $1::uuid, 'failed', protocol_version,
                reducer_version, trace_id, now() FROM runs WHERE id = $2::uuid`,
        [cut.run_id, other.run_id],
      ),
    ).rejects.toThrow(/runs_question_id_continues_run_id_fkey/)
  })
})
