import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Explanation, MemoryPage, ProjectedContext, RunAccepted, TreeView } from '#contracts'
import type { z } from 'zod'
import { replay } from '../../apps/bff/admin/record-verbs.ts'
import { DONE, finishChunk, startFakeUpstream, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeUpstream } from '../support/fake-upstream.ts'
import { proposed } from '../support/memory-world.ts'
import { answer, askAndHear, call, eventually, follow } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'
import { calling, grant } from '../support/tool-calls.ts'

/* Whatever is erased, the runs that it was part of replay as `erased` and are no difference; what was changed or is missing still is (M10). */

// Each test walks several turns and jobs; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 120_000 })

let upstream: FakeUpstream
let system: TestSystem

beforeAll(async () => {
  upstream = await startFakeUpstream()
  system = await startTestSystem({ model: upstream.baseUrl })
})
afterAll(async () => {
  expect((await system.system.conversation.verify.verifyAll()).faults).toEqual([])
  await system.close()
  await upstream.close()
})
beforeEach(() => upstream.unscript())

type Result = Explanation['rebuilt']

/** What the explanation, the projected context and the replay say of a run's last context; they must agree. */
async function resultOf(runId: string): Promise<Result> {
  const explained = await call<Explanation>(system, 'GET', `/v1/runs/${runId}/explanation`)
  const context = await call<ProjectedContext>(system, 'GET', `/v1/admin/runs/${runId}/context`)
  const replayed = await call<ProjectedContext>(system, 'POST', `/v1/admin/runs/${runId}/replay`)
  expect([context.result, replayed.result]).toEqual([explained.rebuilt, explained.rebuilt])
  expect(context.body === null).toBe(explained.rebuilt !== 'identical')
  return explained.rebuilt
}

const resultsOf = (runs: readonly RunAccepted[]): Promise<Result[]> => Promise.all(runs.map(({ run_id }) => resultOf(run_id)))

/** What `npm run replay` says of every run there is, those of jobs too. */
async function replayAll(): Promise<{ ok: boolean; notes: string[] }> {
  const notes: string[] = []
  const { ok } = await replay.run({ system: system.system, baseUrl: system.baseUrl, note: (text) => notes.push(text) }, { sample: '1000' })
  return { ok, notes }
}

async function newCharacter(): Promise<string> {
  const card = { name: 'Mira', description: 'A sailor named {{char}}.', scenario: 'The harbour.', post_history_instructions: 'Be brief.' }
  return (await call<{ id: string }>(system, 'POST', '/v1/characters', card)).id
}

const treeOf = (characterId: string): Promise<TreeView> =>
  call<TreeView>(system, 'POST', '/v1/trees', { character_id: characterId, zone: 'UTC' })

async function talk(tree: TreeView, text: string): Promise<RunAccepted> {
  upstream.script(answer('Noted.'))
  return (await askAndHear(system, tree.id, text)).accepted
}

const memoriesOf = async (characterId: string) =>
  (await call<z.output<typeof MemoryPage>>(system, 'GET', `/v1/memories?character_id=${characterId}`)).items

/** Makes an answer canonical, and waits until the job has made a memory of its question. */
async function remember(characterId: string, accepted: RunAccepted): Promise<string> {
  const found = proposed(accepted.question_id, { content: 'The user likes plums.' })
  upstream.script({ steps: [textChunk(JSON.stringify(found)), finishChunk(), usageChunk(1, 1), DONE] })
  await call(system, 'POST', `/v1/nodes/${accepted.candidate_id}/canonize`)
  const memory = await eventually(
    async () => (await memoriesOf(characterId)).find((one) => one.state === 'live'),
    'a memory of what was said',
  )
  return memory.id
}

/** Asks in a tree of its own what the memory knows; what recall chose was sent. */
async function recallIn(characterId: string): Promise<RunAccepted> {
  const accepted = await talk(await treeOf(characterId), 'Which fruit do I like, plums?')
  expect(upstream.requests.at(-1)?.bodyText).toContain('The user likes plums.')
  return accepted
}

async function sql(text: string, ...params: string[]): Promise<void> {
  await system.system.database.execute(text, params)
}

/** Writes past the database's own guard. */
async function tampering(table: 'nodes' | 'contents', text: string, ...params: string[]): Promise<void> {
  await system.system.database.run(async () => {
    await sql(`ALTER TABLE ${table} DISABLE TRIGGER USER`)
    await sql(text, ...params)
    await sql(`ALTER TABLE ${table} ENABLE TRIGGER USER`)
  })
}

describe('what is erased replays as erased', () => {
  it('a deleted tree: its runs, those of jobs about it, and those elsewhere that quoted or remembered it', async () => {
    const characterId = await newCharacter()
    await grant(system, '/v1/grant')
    await grant(system, `/v1/characters/${characterId}/grant`, { tools: ['dice'] })
    const tree = await treeOf(characterId)
    const first = await talk(tree, 'I like plums.')
    const second = await talk(tree, 'And pears.')
    upstream.script(answer('Otherwise.'))
    const again = await call<RunAccepted>(system, 'POST', `/v1/nodes/${second.candidate_id}/regenerate`, {})
    await follow(system, again.run_id)
    upstream.script(calling([{ name: 'dice', arguments: '{"sides":6}' }], 'I throw.'), answer('There.'))
    const { accepted: acted } = await askAndHear(system, tree.id, 'Throw a die.')
    const memoryId = await remember(characterId, first)
    const recalling = await recallIn(characterId)
    const elsewhere = await treeOf(characterId)
    upstream.script(answer('I did.'))
    const citing = await call<RunAccepted>(system, 'POST', `/v1/trees/${elsewhere.id}/runs`, {
      text: 'You said this.',
      citations: [{ node_id: first.question_id, from: 2, to: 6 }],
    })
    await follow(system, citing.run_id)
    const apart = await talk(await treeOf(await newCharacter()), 'Something else.')
    const all = [first, second, again, acted, recalling, citing, apart]
    expect(await resultsOf(all)).toEqual(all.map(() => 'identical'))

    await call(system, 'DELETE', `/v1/trees/${tree.id}`)
    expect((await memoriesOf(characterId)).filter((memory) => memory.id === memoryId && memory.state === 'live')).toEqual([])
    expect(await resultsOf(all)).toEqual([...all.slice(1).map(() => 'erased'), 'identical'])
    const { messages } = await call<Explanation>(system, 'GET', `/v1/runs/${second.run_id}/explanation`)
    // One line for each message that was sent, in the role in which it stood; what was no part of the tree still shows.
    expect(messages.slice(-4).map(({ role, text }) => [role, text])).toEqual([
      ['user', null],
      ['assistant', null],
      ['user', null],
      ['system', 'Be brief.'],
    ])
    expect(await replayAll()).toEqual({ ok: true, notes: [] })
  })

  it('a tree deleted after some of its messages', async () => {
    const tree = await treeOf(await newCharacter())
    const runs = [await talk(tree, 'one'), await talk(tree, 'two')]
    await call(system, 'DELETE', `/v1/nodes/${runs[0]?.candidate_id}`)
    const third = await talk(tree, 'three')
    expect(await resultsOf([...runs, third])).toEqual(['identical', 'erased', 'identical'])
    await call(system, 'DELETE', `/v1/trees/${tree.id}`)
    expect(await resultsOf([...runs, third])).toEqual(['erased', 'erased', 'erased'])
    expect(await replayAll()).toEqual({ ok: true, notes: [] })
  })

  it('a deleted memory: the runs that recalled it', async () => {
    const characterId = await newCharacter()
    const told = await talk(await treeOf(characterId), 'I like plums.')
    const memoryId = await remember(characterId, told)
    const recalling = await recallIn(characterId)
    expect(await resultsOf([told, recalling])).toEqual(['identical', 'identical'])
    await call(system, 'DELETE', `/v1/memories/${memoryId}`)
    expect(await resultsOf([told, recalling])).toEqual(['identical', 'erased'])
    expect(await replayAll()).toEqual({ ok: true, notes: [] })
  })

  it('a deleted character: every run of it, under each version of its card', async () => {
    const characterId = await newCharacter()
    const tree = await treeOf(characterId)
    const first = await talk(tree, 'I like plums.')
    await call(system, 'POST', `/v1/characters/${characterId}/versions`, { description: 'A captain.' })
    const second = await talk(tree, 'And pears.')
    await remember(characterId, first)
    const recalling = await recallIn(characterId)
    const runs = [first, second, recalling]
    expect(await resultsOf(runs)).toEqual(['identical', 'identical', 'identical'])
    await call(system, 'DELETE', `/v1/characters/${characterId}`)
    expect(await resultsOf(runs)).toEqual(['erased', 'erased', 'erased'])
    // The trees of a deleted character stay, and can go after it.
    await call(system, 'DELETE', `/v1/trees/${tree.id}`)
    expect(await resultsOf(runs)).toEqual(['erased', 'erased', 'erased'])
    expect(await replayAll()).toEqual({ ok: true, notes: [] })
  })
})

describe('what is not erased and yet not there is a difference', () => {
  it('in a tree that is there, and in one that is deleted: the record leads to a path that is no more', async () => {
    const tree = await treeOf(await newCharacter())
    const first = await talk(tree, 'one')
    const second = await talk(tree, 'two')
    const move = 'UPDATE nodes SET parent_id = $2::uuid WHERE id = $1::uuid'
    for (const before of ['identical', 'erased'] as const) {
      if (before === 'erased') await call(system, 'DELETE', `/v1/trees/${tree.id}`)
      expect(await resultOf(second.run_id)).toBe(before)
      await tampering('nodes', move, second.question_id, tree.root_node_id)
      expect(await resultOf(second.run_id)).toBe('different')
      const { ok, notes } = await replayAll()
      expect([ok, notes]).toEqual([false, [expect.stringContaining(second.run_id)]])
      await tampering('nodes', move, second.question_id, first.candidate_id)
      expect(await resultOf(second.run_id)).toBe(before)
    }
  })

  it('beside an erased part: a changed one is still found', async () => {
    const characterId = await newCharacter()
    const tree = await treeOf(characterId)
    const accepted = await talk(tree, 'one')
    const citing = await talk(tree, 'two')
    await call(system, 'DELETE', `/v1/nodes/${accepted.candidate_id}`)
    expect(await resultOf(citing.run_id)).toBe('erased')
    const [piece] = await system.system.database.query<{ id: string }>(
      `SELECT c.id FROM contents c JOIN persona_versions v ON c.derived_from @> ARRAY[v.card_content_id] WHERE v.character_id = $1::uuid AND c.body = 'The harbour.'`,
      [characterId],
    )
    await tampering('contents', `UPDATE contents SET body = 'The desert.' WHERE id = $1::uuid`, piece?.id ?? '')
    expect(await resultOf(citing.run_id)).toBe('different')
    await tampering('contents', `UPDATE contents SET body = 'The harbour.' WHERE id = $1::uuid`, piece?.id ?? '')
    expect(await resultOf(citing.run_id)).toBe('erased')
  })
})
