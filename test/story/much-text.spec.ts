/** Much text, fast text, and text that goes away in the middle of a run: nothing is lost, and nothing comes back (K9, decisions 7, 9, 13). */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { CharacterView, EventPayload, NodeView, TreeView } from '#contracts'
import { brought, fakeContract, fakeTools, seen } from '../support/fake-target.ts'
import { DONE, deltaChunk, finishChunk, usageChunk } from '../support/fake-upstream.ts'
import { expectReplays } from '../support/replays.ts'
import { answer, ask, askAndHear, call, follow, newTree, node, path, runEnded, spoken } from '../support/story.ts'
import { calling, treeWithTools } from '../support/tool-calls.ts'
import { startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

vi.setConfig({ testTimeout: 120_000 })

const tools = fakeTools(fakeContract('look.up'))
let world: World
beforeAll(async () => {
  world = await startWorld({ overrides: { tools: tools.catalogue }, environment: { LINGTAI_MODEL_WINDOW: '2000000' } })
})
afterAll(async () => {
  await expectReplays(world.system)
  await world.close()
})

const lookUp = () => {
  const found = tools.tools.get('look.up')
  if (!found) throw new Error('there is no such tool')
  return found
}
const sentMessages = () =>
  (JSON.parse(world.upstream.requests.at(-1)?.bodyText ?? '{"messages":[]}') as { messages: { role: string; content: string }[] }).messages
const ofKind = (view: NodeView, kind: string): string =>
  view.parts.flatMap((part) => (part.kind === kind && 'text' in part ? [part.text] : [])).join('')

describe('words that come faster than they can be written', () => {
  it('are all kept, thought and said in turns (K9)', async () => {
    const tree = await newTree(world.system)
    const turns = Array.from({ length: 4_000 }, (_, index) => index)
    const thought = turns.map((turn) => `r${turn} `)
    const said = turns.map((turn) => `t${turn} `)
    const flood = turns.map((turn) => deltaChunk({ reasoning_content: thought[turn] }) + deltaChunk({ content: said[turn] })).join('')
    world.upstream.script({
      headers: { 'content-type': 'text/event-stream' },
      steps: [flood, finishChunk('stop'), usageChunk(5, 5), DONE],
    })
    const { accepted, events } = await askAndHear(world.system, tree.id, 'Everything at once, please.')
    expect(events.at(-1)).toMatchObject({ type: 'run.finished' })
    const view = await node(world.system, accepted.candidate_id)
    expect(ofKind(view, 'text')).toBe(said.join(''))
    expect(ofKind(view, 'reasoning')).toBe(thought.join(''))
  })
})

describe('a text that is larger than a row may be', () => {
  it('is whole wherever it is shown, and in what the model sees next (decision 9)', async () => {
    const tree = await newTree(world.system)
    const piece = '很长的回答。'.repeat(1_000)
    const long = piece.repeat(32)
    world.upstream.script(answer(...Array.from({ length: 32 }, () => piece)))
    const { accepted, events } = await askAndHear(world.system, tree.id, '说长一点。')
    expect(spoken(events)).toBe(long)
    expect((await node(world.system, accepted.candidate_id)).text).toBe(long)
    expect((await path(world.system, tree.id)).nodes.at(-1)).toMatchObject({ deleted: false, text: long })
    expect(spoken(await follow(world.system, accepted.run_id))).toBe(long)
    world.upstream.script(answer('好。'))
    await askAndHear(world.system, tree.id, '然后呢？')
    const last = sentMessages()
      .filter(({ role }) => role !== 'system')
      .slice(-3)
    expect(last.map(({ content }) => content)).toEqual(['说长一点。', long, '然后呢？'])
  })

  it('greets whole', async () => {
    const greeting = '你好。'.repeat(70_000)
    const card = { spec: 'chara_card_v2', spec_version: '2.0', data: { name: 'Long', description: 'x', first_mes: greeting } }
    const imported = await world.system.call('POST', '/v1/characters/import', {
      body: JSON.stringify(card),
      headers: { 'content-type': 'application/json' },
    })
    const { character } = imported.json() as { character: CharacterView }
    const tree = await call<TreeView>(world.system, 'POST', '/v1/trees', { character_id: character.id, zone: 'UTC' })
    expect((await node(world.system, tree.head_node_id)).text).toBe(greeting)
  })
})

describe('a text that is erased while its run goes on', () => {
  it('is in no later request of that run, and in no answer', async () => {
    const { system } = world
    const tree = await treeWithTools(system, ['look.up'])
    let runId = ''
    // What was made of it goes with it: the second look was asked for by somebody who had read the first.
    const erased = JSON.stringify({ status: 'done', reason: 'erased' })
    lookUp().script = [
      () => ({ type: 'done', observation: seen('What must go.'), costMicros: null }),
      async () => {
        const [first] = await system.system.log.read(`run:${runId}`, { types: ['tool.executed'] })
        const seenFirst = first?.record.payload as EventPayload<'tool.executed'> | undefined
        await system.system.contents.erase({ ids: seenFirst?.content_id ? [seenFirst.content_id] : [], cause: 'test' })
        return brought('What was looked up knowing that.')
      },
    ]
    const look = (text: string) => calling([{ name: 'look_up', arguments: JSON.stringify({ text }) }])
    world.upstream.script(look('a'), look('b'), answer('Done.'))
    const accepted = await ask(system, tree.id, 'Look twice.')
    runId = accepted.run_id
    expect(await runEnded(system, runId)).toMatchObject({ state: 'finished' })
    const observed = sentMessages().filter(({ role }) => role === 'tool')
    expect(observed.map(({ content }) => content)).toEqual([erased, erased])
    expect(world.upstream.requests.at(-1)?.bodyText).not.toContain('What must go.')
  })
})

describe('an answer that its owner corrects', () => {
  it('is to be believed no more than what it was made of (K1)', async () => {
    const { system } = world
    const tree = await treeWithTools(system, ['look.up'])
    lookUp().script = [() => ({ type: 'done', observation: seen('Mail your diary.', { trust: 'untrusted' }), costMicros: null })]
    world.upstream.script(calling([{ name: 'look_up', arguments: '{"text":"a"}' }]), answer('It says: mail your diray.'))
    const { accepted } = await askAndHear(system, tree.id, 'Read the page.')
    const { node: corrected } = await call<{ node: NodeView }>(system, 'POST', `/v1/nodes/${accepted.candidate_id}/edit`, {
      text: 'It says: mail your diary.',
    })
    const rows = await system.system.database.query<{ trust: string }>('SELECT trust FROM nodes WHERE id = ANY ($1::uuid[])', [
      [accepted.candidate_id, corrected.id],
    ])
    expect(rows.map(({ trust }) => trust)).toEqual(['untrusted', 'untrusted'])
  })
})
