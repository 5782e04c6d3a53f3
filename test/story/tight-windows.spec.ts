/** What tools bring is larger than the model's window: every call of a loop fits it all the same, and the record keeps the whole (case K5). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { EventPayload, RunView } from '#contracts'
import { fakeContract, fakeTools, seen } from '../support/fake-target.ts'
import { closeWhole } from '../support/replays.ts'
import { answer, ask, askAndHear, call, follow, newTree, runEnded } from '../support/story.ts'
import { calling, treeWithTools } from '../support/tool-calls.ts'
import { limited, startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

type Sent = { max_tokens: number; messages: { role: string; content: string | null; tool_call_id?: string }[] }

const tools = fakeTools(fakeContract('look.up'))
const look = { name: 'look_up', arguments: '{"text":"door"}' }
const worlds = new Map<number, World>()

beforeAll(async () => {
  for (const window of [4_096, 32_768]) {
    const environment = { LINGTAI_MODEL_WINDOW: String(window) }
    worlds.set(window, await startWorld({ overrides: { tools: tools.catalogue }, environment }))
  }
})
afterAll(async () => {
  for (const world of worlds.values()) await closeWhole(world)
})
afterEach(() => {
  for (const world of worlds.values()) world.upstream.unscript()
})

function worldOf(window: number): World {
  const world = worlds.get(window)
  if (!world) throw new Error(`no world has a window of ${window}`)
  return world
}

/** What the tool brings, one text for each call. */
function brings(...texts: readonly string[]): void {
  const tool = tools.tools.get('look.up')
  if (tool) tool.script = texts.map((text) => () => ({ type: 'done', observation: seen(text), costMicros: null }))
}

const shownOf = (request: { bodyText: string } | undefined): string[] =>
  (JSON.parse(request?.bodyText ?? '{"messages":[]}') as Sent).messages.flatMap(({ role, content }) =>
    role === 'tool' ? [String((JSON.parse(content ?? '{}') as { text: unknown }).text)] : [],
  )

/** Every request of a run fits what the window leaves beside the reply; and is rebuilt to the byte. */
async function expectFitting(window: number, runId: string, turns: number): Promise<void> {
  const { system } = worldOf(window)
  const events = await system.system.log.read(`run:${runId}`, { types: ['context.projected'] })
  expect(events).toHaveLength(turns)
  for (const { record } of events) {
    const { tokens } = record.payload as EventPayload<'context.projected'>
    expect(tokens.window).toBe(window)
    expect(tokens.used).toBeLessThanOrEqual(tokens.window - tokens.reserve - tokens.tools)
  }
  for (let turn = 1; turn <= turns; turn++) {
    const explained = await call<{ rebuilt: string }>(system, 'GET', `/v1/runs/${runId}/explanation?turn=${turn}`)
    expect(explained.rebuilt).toBe('identical')
  }
}

/** How many bytes of each thing that it saw are in the record. */
async function keptSizes(window: number, runId: string): Promise<number[]> {
  const { log, database } = worldOf(window).system.system
  const seenBy = await log.read(`run:${runId}`, { types: ['tool.executed'] })
  return Promise.all(
    seenBy.map(async ({ record }) => {
      const { content_id: id } = record.payload as EventPayload<'tool.executed'>
      const [row] = await database.query<{ size: number }>('SELECT size FROM contents WHERE id = $1::uuid', [id])
      return row?.size ?? 0
    }),
  )
}

const note = /\[… (\d+) of (\d+) characters are left out here to fit the window; the record has them all …\]/

describe('a window of 4,096 tokens', () => {
  const window = 4_096

  it.each([
    ['English', `START${' The door is the third one.'.repeat(15_000)} END`],
    ['Chinese', `START${'第三扇门在走廊尽头，请轻轻敲门。'.repeat(25_000)}END`],
    ['signs of two units', `START${'😀𪚥'.repeat(100_000)}END`],
    ['one unbroken word', `START${'x'.repeat(400_000)}END`],
    ['JSON', JSON.stringify(Array.from({ length: 12_000 }, (_, index) => ({ door: index, open: false, name: '"门"' })))],
  ])('goes on after one result of 400 kB: %s', async (_, text) => {
    const { system, upstream } = worldOf(window)
    const tree = await treeWithTools(system, ['look.up'])
    brings(text)
    upstream.script(calling([look], 'Let me see. '), answer('The third door.'))
    const { accepted, text: said } = await askAndHear(system, tree.id, 'Which door is it, please?')
    expect(await call<RunView>(system, 'GET', `/v1/runs/${accepted.run_id}`)).toMatchObject({ state: 'finished' })
    expect(said).toBe('Let me see. The third door.')
    await expectFitting(window, accepted.run_id, 2)
    expect(await keptSizes(window, accepted.run_id)).toEqual([expect.toSatisfy((size: number) => size >= Buffer.byteLength(text))])
    const sent = upstream.requests.at(-1)
    const [shown = ''] = shownOf(sent)
    expect(shown.isWellFormed()).toBe(true)
    const [, left, all] = (note.exec(shown) ?? []).map(Number)
    expect(all).toBe([...text].length)
    expect((left ?? 0) + [...shown.replace(note, '')].length - 2).toBe(all)
    expect(shown.slice(0, 5)).toBe(text.slice(0, 5))
    expect(shown.slice(-3)).toBe(text.slice(-3))
    expect(sent?.bodyText).toContain('Which door is it, please?')
  })

  it('goes on after as many results as a run may ask for', async () => {
    const { system, upstream } = worldOf(window)
    const tree = await treeWithTools(system, ['look.up'])
    brings('A door. '.repeat(20_000))
    upstream.script(...Array.from({ length: 7 }, () => calling([look])), answer('None of them.'))
    const { accepted, text } = await askAndHear(system, tree.id, 'Which door?')
    expect(text).toBe('None of them.')
    await expectFitting(window, accepted.run_id, 8)
    expect(shownOf(upstream.requests.at(-1))).toHaveLength(7)
  })

  it('is too small only for what is no result: the run says so', async () => {
    const { system } = worldOf(window)
    const tree = await newTree(system)
    const { run_id: runId } = await ask(system, tree.id, `Which door? ${'Really. '.repeat(3_500)}`)
    await follow(system, runId)
    expect(await runEnded(system, runId)).toMatchObject({ state: 'failed', reason: 'context_overflow' })
  })
})

describe('a window of 32,768 tokens', () => {
  const window = 32_768

  it('goes on after twelve results of 6,000 tokens, checked before every call; the newest is whole', async () => {
    const { system, upstream } = worldOf(window)
    const { projector } = system.system.conversation
    const tree = await treeWithTools(system, ['look.up'])
    const sentence = 'The door is the third one on the left, behind the curtain. '
    let text = sentence
    while (projector.countTokens(text) < 6_000) text += sentence
    brings(text)
    await limited({ system }, { max_turns: 13 }, async () => {
      upstream.script(...Array.from({ length: 12 }, () => calling([look])), answer('The third.'))
      const { accepted, text: said } = await askAndHear(system, tree.id, 'Which door is it, please?')
      expect(said).toBe('The third.')
      await expectFitting(window, accepted.run_id, 13)
      expect(await keptSizes(window, accepted.run_id)).toHaveLength(12)
    })
    // Ids take a few tokens more or less each.
    const shown = shownOf(upstream.requests.at(-1)).map((one) => (one.length < 400 ? 400 : one.length))
    expect(shown).toHaveLength(12)
    expect(shown.at(-1)).toBe(text.length)
    expect(shown).toEqual([...shown].sort((left, right) => left - right))
    expect(shown[0]).toBeLessThan(text.length / 4)
    expect(upstream.requests.at(-1)?.bodyText).toContain('Which door is it, please?')
  })

  it('goes on after five such results in one turn', async () => {
    const { system, upstream } = worldOf(window)
    const tree = await treeWithTools(system, ['look.up'])
    brings('The door is the third one on the left, behind the curtain. '.repeat(500))
    upstream.script(calling(Array.from({ length: 5 }, (_, index) => ({ ...look, id: `call_${index}` }))), answer('The third.'))
    const { accepted, text } = await askAndHear(system, tree.id, 'Which door?')
    expect(text).toBe('The third.')
    await expectFitting(window, accepted.run_id, 2)
    const shown = shownOf(upstream.requests.at(-1))
    expect(shown.filter((one) => note.test(one)).length).toBeGreaterThan(0)
    expect(note.test(shown.at(-1) ?? '')).toBe(false)
  })
})
