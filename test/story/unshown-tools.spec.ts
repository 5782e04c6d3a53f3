/** A character has the tools that its owner gave it by name; what its model calls beyond what that very request showed is no tool (K1, K2). */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { EventPayload, RunStreamEvent } from '#contracts'
import { createGate, startFakeUpstream } from '../support/fake-upstream.ts'
import type { FakeRequest, FakeResponse, FakeUpstream } from '../support/fake-upstream.ts'
import { fakeContract, fakeTools } from '../support/fake-target.ts'
import { closeWhole } from '../support/replays.ts'
import { answer, ask, askAndHear, call, eventually, follow, newTree } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'
import { calling, grant, treeWithTools } from '../support/tool-calls.ts'

const tools = fakeTools(
  fakeContract('look.up'),
  fakeContract('diary.write', { capability: 'reversible_local', consequence: 'lasting', undoable: true }),
  fakeContract('mail.send', { capability: 'irreversible_external', consequence: 'lasting', egress: 'declared', priceMicros: 10 }),
)
const names = [...tools.tools.keys()]
const happened = () => [...tools.tools.values()].flatMap((tool) => tool.happened)
let upstream: FakeUpstream
let system: TestSystem
/** What the model of a job answers. */
let job: (request: FakeRequest) => FakeResponse = () => answer('{}')

beforeAll(async () => {
  upstream = await startFakeUpstream({
    answers: (request) => job(request),
  })
  system = await startTestSystem({ model: upstream.baseUrl, overrides: { tools: tools.catalogue } })
})
afterAll(() =>
  closeWhole({
    system,
    close: async () => {
      await system.close()
      await upstream.close()
    },
  }),
)
beforeEach(() => {
  for (const tool of tools.tools.values()) tool.happened.length = 0
})
afterEach(() => upstream.unscript())

const executed = (events: readonly RunStreamEvent[]) =>
  events.flatMap((event) => (event.type === 'tool.executed' ? [{ tool: event.tool, status: event.status, reason: event.reason }] : []))

describe('a tool that the model was not shown', () => {
  it.each(names)('is refused as unknown, and told so, when it is called by its own name: %s', async (name) => {
    const tree = await newTree(system)
    // The owner’s own bound: every class, and nothing by name.
    await grant(system, '/v1/grant')
    upstream.script(calling([{ name, arguments: '{"text":"mine"}' }]), answer('I have no such thing.'))
    const { accepted, events, text } = await askAndHear(system, tree.id, 'Hello.')
    expect(upstream.requests.at(-2)?.bodyText).not.toContain('"tools"')
    expect(executed(events)).toEqual([{ tool: name, status: 'denied', reason: 'unknown_tool' }])
    expect(text).toBe('I have no such thing.')
    expect(happened()).toEqual([])
    const [judged] = (await system.system.log.read(`run:${accepted.run_id}`, { types: ['policy.decided'] }))
      .map(({ record }) => record.payload as EventPayload<'policy.decided'>)
      .filter(({ gate }) => gate === 'admission')
    expect(judged).toMatchObject({ verdict: 'forbidden', reason: 'unknown_tool', facts: { tool: name, capability: null } })
  })

  it('is none although another one was given', async () => {
    const tree = await treeWithTools(system, ['look.up'])
    upstream.script(
      calling([
        { name: 'diary.write', arguments: '{}', id: 'a' },
        { name: 'diary_write', arguments: '{}', id: 'b' },
        { name: 'look.up', arguments: '{}', id: 'c' },
        { name: 'look_up', arguments: '{}', id: 'd' },
      ]),
      answer('Well.'),
    )
    const { events } = await askAndHear(system, tree.id, 'Write it down.')
    expect(executed(events).map(({ status, reason }) => [status, reason])).toEqual([
      ['denied', 'unknown_tool'],
      ['denied', 'unknown_tool'],
      ['denied', 'unknown_tool'],
      ['done', null],
    ])
    expect(happened()).toHaveLength(1)
  })

  it('stays unknown to that request when it is given while the model speaks', async () => {
    const tree = await treeWithTools(system, ['look.up'])
    const gate = createGate()
    const next = upstream.requests.length
    upstream.script({ ...calling([{ name: 'diary_write', arguments: '{}' }]), beforeHeaders: gate }, answer('Well.'))
    const accepted = await ask(system, tree.id, 'Write it down.')
    await upstream.request(next)
    await grant(system, `/v1/characters/${tree.character_ids[0]}/grant`, { tools: ['look.up', 'diary.write'] })
    gate.open()
    const events = await follow(system, accepted.run_id)
    expect(executed(events)).toEqual([{ tool: 'diary_write', status: 'denied', reason: 'unknown_tool' }])
    expect(upstream.requests.at(-1)?.bodyText).toContain('"name":"diary_write"')
    expect(happened()).toEqual([])
  })
})

describe('the model of a job', () => {
  it.each(names)('is shown no tools, and does nothing with those that it calls: %s', async (name) => {
    const tree = await treeWithTools(system, names)
    upstream.script(answer('Hello, friend.'))
    const { accepted } = await askAndHear(system, tree.id, 'I like apples.')
    const asked: string[] = []
    job = ({ bodyText }) => {
      asked.push(bodyText)
      return calling([{ name: name.replaceAll('.', '_'), arguments: '{"text":"from a job"}' }])
    }
    const jobRuns = () =>
      system.system.database.query<{ id: string; state: string; reason: string | null }>(
        `SELECT id, state, reason FROM runs WHERE kind = 'maintenance' ORDER BY requested_at, id`,
      )
    const before = (await jobRuns()).length
    await call(system, 'POST', `/v1/nodes/${accepted.candidate_id}/canonize`)
    const [run] = await eventually(async () => {
      const found = (await jobRuns()).slice(before)
      return found[0] && found[0].state !== 'queued' && found[0].state !== 'running' ? found : null
    }, 'the end of a job’s run')
    job = () => answer('{}')
    expect(asked[0]).not.toContain('"tools"')
    expect(run).toMatchObject({ state: 'interrupted', reason: 'provider_error' })
    expect(happened()).toEqual([])
    expect(await call(system, 'GET', '/v1/approvals?state=pending')).toMatchObject({ items: [] })
    const told = await system.system.log.read(`run:${run?.id}`, { types: ['llm.completed', 'tool.pre_execute', 'effect.intent'] })
    expect(told.map(({ record }) => record.type)).toEqual(['llm.completed'])
    expect(told[0]?.record.payload).not.toHaveProperty('calls')
  })

  it('leaves no run that waits: the database holds none', async () => {
    const [run] = await system.system.database.query<{ id: string }>(`SELECT id FROM runs WHERE kind = 'maintenance' LIMIT 1`)
    await expect(
      system.system.database.execute(`UPDATE runs SET state = 'suspended', reason = 'waiting_for_approval' WHERE id = $1::uuid`, [
        run?.id ?? '',
      ]),
    ).rejects.toThrow()
    const { owner_id: ownerId } = (await system.system.conversation.runStore.get(run?.id ?? '')) ?? { owner_id: '' }
    expect(await system.system.conversation.runStore.countWaiting(ownerId)).toBe(0)
  })
})
