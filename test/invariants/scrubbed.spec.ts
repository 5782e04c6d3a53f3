import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { DONE, finishChunk, textChunk, usageChunk } from '../support/fake-upstream.ts'
import { fakeContract, fakeTools, happens, seen } from '../support/fake-target.ts'
import { expectReplays } from '../support/replays.ts'
import { answer, askAndHear, call, follow, newTree, node } from '../support/story.ts'
import type { TestSystem } from '../support/system.ts'
import { calling, treeWithTools } from '../support/tool-calls.ts'
import { asked, startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* No path writes around the scrubber (K5, decision 37): what must not be kept is looked for in every column of every table. */
vi.setConfig({ testTimeout: 120_000 })

/** Looks like somebody's key, and is nobody's. */
const stranger = 'sk-strangerkey0123456789abcdef'
const instanceKey = 'sk-lingtai-9876543210'

const fakes = fakeTools(fakeContract('look.up'), fakeContract('put.down', { parameters: { type: 'object' } }))
let world: World
let system: TestSystem

beforeAll(async () => {
  world = await startWorld({ overrides: { tools: fakes.catalogue }, environment: { OPENAI_API_KEY: instanceKey } })
  system = world.system
})
afterAll(async () => {
  await expectReplays(system)
  await world.close()
})
beforeEach(() => world.upstream.unscript())

/** The tables that hold a text somewhere, in any column, as text or as bytes. */
async function tablesWith(text: string): Promise<string[]> {
  const { database } = system.system
  const tables = await database.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
  )
  const found: string[] = []
  for (const { name } of tables) {
    const [row] = await database.query<{ holds: boolean }>(
      `SELECT EXISTS (SELECT 1 FROM "${name}" x WHERE position($1 IN x::text) > 0 OR position($2 IN x::text) > 0) AS holds`,
      [text, Buffer.from(text).toString('hex')],
    )
    if (row?.holds) found.push(name)
  }
  return found
}

describe('nothing keeps', () => {
  it('a secret in the arguments of an action: neither the record, nor the ledger, nor what is sent', async () => {
    const tree = await treeWithTools(system, ['look.up'])
    const tool = fakes.tools.get('look.up')
    const before = tool?.happened.length ?? 0
    world.upstream.script(calling([{ name: 'look_up', arguments: JSON.stringify({ text: `with ${stranger}` }) }]), answer('Looked.'))
    expect((await askAndHear(system, tree.id, 'Look.')).text).toBe('Looked.')
    expect(tool?.happened).toHaveLength(before + 1)
    expect(tool?.happened.at(-1)?.argumentsText).not.toContain(stranger)
    expect(world.upstream.requests.at(-1)?.bodyText).not.toContain(stranger)
    expect(await tablesWith(stranger)).toEqual([])
  })

  it('a secret behind a line break, in a number, in a name, or given away by the name that it stands under', async () => {
    const tree = await treeWithTools(system, ['put.down'])
    const given = {
      text: `a line\n${stranger}`,
      card: 4_111_111_111_111_111,
      [stranger]: 'under a name',
      deep: [{ password: 'hunter2-of-nobody' }],
    }
    world.upstream.script(calling([{ name: 'put_down', arguments: JSON.stringify(given) }]), answer('Put.'))
    expect((await askAndHear(system, tree.id, 'Put it down.')).text).toBe('Put.')
    expect(JSON.parse(fakes.tools.get('put.down')?.happened.at(-1)?.argumentsText ?? '')).toEqual({
      text: 'a line\n[masked:key]',
      card: '[masked:card]',
      '[masked:key]': 'under a name',
      deep: [{ password: '[masked:password]' }],
    })
    for (const secret of [stranger, '4111111111111111', 'hunter2-of-nobody']) expect(await tablesWith(secret)).toEqual([])
  })

  it('a secret in an action of delegated work, and what is none is kept as it was given', async () => {
    const tree = await treeWithTools(system, ['put.down'])
    const body = { character_id: tree.character_ids[0], instruction: 'Put it down.', tools: ['put.down'], budget: {} }
    const task = await call<{ task_id: string }>(system, 'POST', '/v1/tasks', body)
    await call(system, 'POST', `/v1/tasks/${task.task_id}/attempts`, {})
    const given = { since: 1_764_500_000_005, text: `with "${stranger}"` }
    const action = { key: 'a', tool: 'put.down', arguments: given }
    await call(system, 'POST', `/v1/tasks/${task.task_id}/actions`, action)
    const sent = JSON.parse(fakes.tools.get('put.down')?.happened.at(-1)?.argumentsText ?? '')
    expect(sent).toEqual({ since: 1_764_500_000_005, text: 'with "[masked:key]"' })
    expect(await tablesWith(stranger)).toEqual([])
  })

  it('a secret in what an action brought', async () => {
    const tree = await treeWithTools(system, ['look.up'])
    const tool = fakes.tools.get('look.up')
    tool?.script.unshift((sent) => {
      happens(tool, sent)
      return { type: 'done', observation: seen(`the key is ${stranger}, use it`), costMicros: null }
    })
    world.upstream.script(calling([{ name: 'look_up', arguments: '{}' }]), answer('Seen.'))
    expect((await askAndHear(system, tree.id, 'Look.')).text).toBe('Seen.')
    expect(world.upstream.requests.at(-1)?.bodyText).toContain('use it')
    expect(world.upstream.requests.at(-1)?.bodyText).not.toContain(stranger)
    expect(await tablesWith(stranger)).toEqual([])
  })

  it('a secret in what the model says, where it is one of this instance’s, however it is cut', async () => {
    const tree = await newTree(system)
    const half = Math.floor(instanceKey.length / 2)
    const accepted = await asked(world, tree.id, 'Say it.', {
      steps: [
        textChunk(`It is ${instanceKey.slice(0, half)}`),
        textChunk(`${instanceKey.slice(half)}, I think`),
        finishChunk('stop'),
        usageChunk(1, 1),
        DONE,
      ],
    })
    const shown = JSON.stringify(await follow(system, accepted.run_id))
    expect(shown).toContain('I think')
    expect(shown).not.toContain(instanceKey)
    expect((await node(system, accepted.candidate_id)).text).toMatch(/^It is .*, I think$/)
    expect(await tablesWith(instanceKey)).toEqual([])
  })

  it('and what is looked for would be found: a conversation is kept as it was said', async () => {
    const tree = await newTree(system)
    world.upstream.script(answer('I see.'))
    await askAndHear(system, tree.id, `A text with a-word-of-its-own in it.`)
    expect(await tablesWith('a-word-of-its-own')).toEqual(['contents'])
  })
})
