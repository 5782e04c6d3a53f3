import { afterAll, beforeAll, expect, it } from 'vitest'
import type { z } from 'zod'
import type {
  Canonized,
  CommandAccepted,
  Edited,
  Explanation,
  HeadMoved,
  ImportedCharacter,
  MemoryPage,
  MemoryView,
  ProjectedContext,
  RecallPage,
  RunAccepted,
  TreeView,
  VerifyReport,
} from '#contracts'
import { expectReplays } from '../support/replays.ts'
import { ask, askAndHear, call, eventually, follow, node, path, runEnded, spoken } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'

type Memories = z.output<typeof MemoryPage>

/** The main job, end to end, on the demo model and whatever tier the suite runs on; each step builds on the ones before. */
let system: TestSystem
let characterId = ''
let tree: TreeView
let greeting = ''

beforeAll(async () => {
  system = await startTestSystem()
})
afterAll(async () => {
  await expectReplays(system)
  await system.close()
})

const card = {
  spec: 'chara_card_v2',
  spec_version: '2.0',
  data: {
    name: '阿澜',
    description: '{{char}} keeps the lighthouse of a small island and answers letters from passing ships.',
    personality: 'patient, dry, kind',
    scenario: 'An evening in the lamp room; rain on the glass.',
    first_mes: 'Come in out of the rain, {{user}}. The kettle is on.',
    mes_example: '',
    alternate_greetings: ['灯刚点上,坐吧。'],
    extensions: { lingtai_test: { kept: 12345 } },
  },
}

async function memories(query = ''): Promise<MemoryView[]> {
  return (await call<Memories>(system, 'GET', `/v1/memories?character_id=${characterId}${query}`)).items
}

/** What the character said on the path last. */
async function lastAnswer(): Promise<string> {
  const view = await path(system, tree.id)
  return view.nodes.at(-1)?.id ?? ''
}

it('a card comes in, is read and accepted, and a tree begins with its greetings', async () => {
  const imported = await call<ImportedCharacter>(system, 'POST', '/v1/characters/import', JSON.stringify(card), { status: 201 })
  expect(imported).toMatchObject({ spec_version: 'v2', character: { name: '阿澜', trust: 'untrusted', accepted: false } })
  characterId = imported.character.id
  const accepted = await call<ImportedCharacter['character']>(system, 'POST', `/v1/characters/${characterId}/accept`)
  expect(accepted).toMatchObject({ trust: 'workspace', accepted: true })
  tree = await call<TreeView>(system, 'POST', '/v1/trees', { character_id: characterId, zone: 'Asia/Shanghai' }, { status: 201 })
  greeting = tree.head_node_id
  const first = await node(system, greeting)
  expect(first.text).toContain('Come in out of the rain')
  expect(first.text).not.toContain('{{')
  expect(first.sibling_ids).toHaveLength(2)
})

it('words arrive as they are made, and a stopped answer stays as a partial that can be asked below', async () => {
  const heard = await askAndHear(system, tree.id, 'Good evening. What do you do here all night?')
  expect(heard.text.length).toBeGreaterThan(10)
  expect(heard.events.filter((event) => event.type === 'llm.delta').length).toBeGreaterThan(1)

  const accepted = await ask(system, tree.id, 'Tell me a long story about the storm, please.')
  const some = await follow(system, accepted.run_id, { until: (event) => event.type === 'llm.delta' })
  await call<CommandAccepted>(system, 'POST', `/v1/runs/${accepted.run_id}/cancel`)
  const rest = await follow(system, accepted.run_id, { after: some.at(-1)?.seq ?? 0 })
  expect(rest.at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'cancelled', partial: true })
  const partial = await node(system, accepted.candidate_id)
  expect(partial).toMatchObject({ partial: true, sealed: true, text: spoken([...some, ...rest]) })
})

it('an interjection is taken in with the next turn and shown where it took effect', async () => {
  const accepted = await ask(system, tree.id, 'Go on then, from where you were.')
  await follow(system, accepted.run_id, { until: (event) => event.type === 'llm.delta' })
  await call<CommandAccepted>(system, 'POST', `/v1/runs/${accepted.run_id}/steer`, { text: 'And leave out the ghosts.' }, { status: 202 })
  const events = await follow(system, accepted.run_id)
  expect(events.at(-1)?.type).toBe('run.finished')
  expect(events).toContainEqual(expect.objectContaining({ type: 'steer.received', used: true, text: 'And leave out the ghosts.' }))
  const candidate = await node(system, accepted.candidate_id)
  expect(candidate.parts.filter((part) => part.kind !== 'reasoning').map((part) => part.kind)).toEqual(['text', 'steer', 'text'])
})

it('regenerate adds a candidate, switching goes back, editing forks, forking goes on from anywhere', async () => {
  const heard = await askAndHear(system, tree.id, 'I like jasmine tea in the evening. What do you drink?')
  const first = heard.accepted.candidate_id
  const again = await call<RunAccepted>(system, 'POST', `/v1/nodes/${first}/regenerate`, {}, { status: 201 })
  await runEnded(system, again.run_id)
  const second = await node(system, again.candidate_id)
  expect(second.sibling_ids).toEqual([first, again.candidate_id])
  expect((await node(system, first)).text).toBe(heard.text)
  const back = await call<HeadMoved>(system, 'POST', `/v1/nodes/${first}/adopt`)
  expect(back.head.id).toBe(first)

  const edited = await call<Edited>(system, 'POST', `/v1/nodes/${heard.accepted.question_id}/edit`, {
    text: 'I like jasmine tea in the morning. And you?',
  })
  expect(edited.run).not.toBeNull()
  await runEnded(system, edited.run?.run_id ?? '')
  expect((await node(system, heard.accepted.question_id)).text).toContain('in the evening')
  expect(edited.node).toMatchObject({ edited_from_id: heard.accepted.question_id })

  const rewritten = await call<Edited>(system, 'POST', `/v1/nodes/${first}/edit`, { text: 'Only rain water, boiled twice.' })
  expect(rewritten.run).toBeNull()
  expect(rewritten.node).toMatchObject({ author: 'owner', edited_from_id: first })

  const forked = await call<HeadMoved>(system, 'POST', `/v1/nodes/${first}/fork`)
  expect(forked.tree.head_node_id).toBe(first)
})

it('a cited passage reaches the model and stands with the question', async () => {
  const source = await node(system, greeting)
  const from = source.text.indexOf('rain')
  const accepted = await call<RunAccepted>(system, 'POST', `/v1/trees/${tree.id}/runs`, {
    text: 'You said this when I came in. Does it ever stop?',
    citations: [{ node_id: greeting, from, to: from + 4 }],
  })
  await runEnded(system, accepted.run_id)
  expect((await node(system, accepted.question_id)).citations).toMatchObject([{ text: 'rain', source_node_id: greeting }])
  const explanation = await call<Explanation>(system, 'GET', `/v1/runs/${accepted.run_id}/explanation`)
  expect(explanation.entities.filter((entity) => entity.source === 'citation').map((entity) => entity.text)).toContain('rain')
})

it('what is canonized is remembered: harmless things at once, with a way back, heavy ones only when confirmed', async () => {
  await askAndHear(system, tree.id, 'I love old maps and I am allergic to peanuts. Please remember that I like walking at dawn.')
  const canonized = await call<Canonized>(system, 'POST', `/v1/nodes/${await lastAnswer()}/canonize`, undefined, { status: 201 })
  expect(canonized.canonization.withdrawn_at).toBeNull()
  const found = await eventually(async () => {
    const all = await memories()
    return all.some((memory) => memory.state === 'live') && all.some((memory) => memory.state === 'proposed') ? all : null
  }, 'extraction')

  const heavy = found.find((memory) => memory.state === 'proposed')
  expect(heavy).toMatchObject({ level: 'heavy' })
  const confirmed = await call<MemoryView>(system, 'POST', `/v1/memories/${heavy?.id}/confirm`, {})
  expect(confirmed.state).toBe('live')
  expect(confirmed.sources.length).toBeGreaterThan(0)

  const light = found.find((memory) => memory.state === 'live' && memory.level === 'explicit' && !(memory.text ?? '').includes('maps'))
  if (!light) throw new Error(`no automatic memory to undo among ${JSON.stringify(found.map((memory) => memory.text))}`)
  expect(light.undo_until).not.toBeNull()
  const undone = await call<MemoryView>(system, 'POST', `/v1/memories/${light.id}/undo`)
  expect(undone.state).toBe('undone')
})

it('in another tree the character remembers, and shows why it said that', async () => {
  const other = await call<TreeView>(system, 'POST', '/v1/trees', { character_id: characterId })
  const heard = await askAndHear(system, other.id, 'Do you remember what kind of maps I love?')
  const explanation = await call<Explanation>(system, 'GET', `/v1/runs/${heard.accepted.run_id}/explanation`)
  expect(explanation.rebuilt).toBe('identical')
  const recalled = explanation.entities.filter((entity) => entity.source === 'memory' && entity.source_id !== null)
  expect(recalled.map((entity) => entity.text).join(' ')).toContain('maps')
  const audits = await call<z.output<typeof RecallPage>>(system, 'GET', `/v1/recalls?run_id=${heard.accepted.run_id}`)
  expect(audits.items[0]?.hits.some((hit) => (hit.text ?? '').includes('maps') && hit.rank !== null)).toBe(true)
})

it('an admin sees what was sent, verifies every chain, and replays runs byte for byte', async () => {
  const runs = await call<{ items: { id: string; kind: string }[] }>(system, 'GET', '/v1/admin/runs?limit=100')
  expect(runs.items.some((run) => run.kind === 'maintenance')).toBe(true)
  for (const run of runs.items) {
    const context = await system.call('GET', `/v1/admin/runs/${run.id}/context`)
    if (context.status !== 404) expect((context.json() as ProjectedContext).result).toBe('identical')
  }
  const report = await call<VerifyReport>(system, 'POST', '/v1/admin/verify', {})
  expect(report).toMatchObject({ intact: true, faults: [] })
  expect(report.events).toBeGreaterThan(100)
})

it('a deleted message takes its text, and the memories that came from it alone, with it', async () => {
  const maps = (await memories('&state=live')).find((memory) => (memory.text ?? '').includes('maps'))
  const source = maps?.sources[0]
  if (!maps || !source) throw new Error('the memory of maps has no source')
  await call(system, 'DELETE', `/v1/nodes/${source.node_id}?withdraw=true`, undefined, { status: 204 })
  expect(await node(system, source.node_id)).toMatchObject({ deleted: true, text: '', parts: [] })
  const after = (await memories()).find((memory) => memory.id === maps.id)
  expect(after?.state ?? 'deleted').toBe('deleted')
  expect(after?.text ?? null).toBeNull()
  const report = await call<VerifyReport>(system, 'POST', '/v1/admin/verify', {})
  expect(report.intact).toBe(true)
})
