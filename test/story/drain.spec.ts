/** A process that leaves accepts nothing new and hands over what no word is coming in for; the next one goes on with it (K6, decision 15). */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { GrantView, RunView } from '#contracts'
import { systemScheduler } from '#infra/system/clock'
import type { Scheduler } from '#kernel/ports/clock'
import { DRAIN_MS } from '#runtime/turn/run-host'
import { DONE, createGate, deltaChunk, finishChunk, startFakeUpstream, textChunk } from '../support/fake-upstream.ts'
import type { FakeUpstream } from '../support/fake-upstream.ts'
import { brought, fakeContract, fakeTools, happens, seen } from '../support/fake-target.ts'
import { otherReplica } from '../support/other-replica.ts'
import { expectReplays } from '../support/replays.ts'
import { answer, ask, call, eventually, follow, newTree, runEnded } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'

const tools = fakeTools(fakeContract('look.up'))
let upstream: FakeUpstream
let system: TestSystem
/** How long a process that leaves waits, in the story at hand. Milliseconds. */
let patience = DRAIN_MS

beforeAll(async () => {
  upstream = await startFakeUpstream()
  const scheduler: Scheduler = {
    after: (milliseconds, callback) => systemScheduler.after(milliseconds === DRAIN_MS ? patience : milliseconds, callback),
  }
  system = await startTestSystem({ model: upstream.baseUrl, overrides: { tools: tools.catalogue, scheduler } })
})
afterAll(async () => {
  await expectReplays(system)
  expect((await system.system.conversation.verify.verifyAll()).faults).toEqual([])
  await system.close()
  await upstream.close()
})

async function ableTree() {
  const tree = await newTree(system)
  for (const path of ['/v1/grant', `/v1/characters/${tree.character_ids[0]}/grant`]) {
    const { version } = await call<GrantView>(system, 'GET', path)
    const named = path === '/v1/grant' ? null : ['look.up']
    await call(system, 'PUT', path, { mode: 'default', classes: ['read_only'], tools: named, exact: null, version })
  }
  return tree
}

/** The seats of this process leave, and come back as another process's would. */
async function leaveAndReturn(meanwhile: () => Promise<void>): Promise<void> {
  const { seats } = system.system.conversation
  const left = seats.stop()
  await meanwhile()
  await left
  await seats.start()
}

it('finishes the action that is out, and goes on after it with what was seen', async () => {
  const tree = await ableTree()
  const gate = createGate()
  const tool = tools.tools.get('look.up')
  if (!tool) throw new Error('no tool')
  tool.script = [
    async (sent) => {
      happens(tool, sent)
      // As real ones do, it lets go of what it was told to break off.
      const brokenOff = new Promise<true>((resolve) => sent.signal.addEventListener('abort', () => resolve(true)))
      if (await Promise.race([gate.opened.then(() => false), brokenOff])) return { type: 'unknown', code: 'aborted' }
      return { type: 'done', observation: seen('The third door.'), costMicros: null }
    },
  ]
  const chunk = deltaChunk({ tool_calls: [{ index: 0, id: 'x', type: 'function', function: { name: 'look_up', arguments: '{}' } }] })
  upstream.script(
    { headers: { 'content-type': 'text/event-stream' }, steps: [textChunk('Let me see. '), chunk, finishChunk('tool_calls'), DONE] },
    answer('The third one.'),
  )
  const accepted = await ask(system, tree.id, 'Which door?')
  await eventually(async () => tool.happened.length === 1, 'the action is out')
  await leaveAndReturn(async () => {
    gate.open()
    await eventually(
      async () => (await call<RunView>(system, 'GET', `/v1/runs/${accepted.run_id}`)).state === 'suspended',
      'it is handed over',
    )
  })
  const events = await follow(system, accepted.run_id)
  expect(events.at(-1)).toMatchObject({ type: 'run.finished', partial: false })
  expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['run.suspended', 'run.resumed']))
  expect(tool.happened).toHaveLength(1)
  expect(upstream.requests.at(-1)?.bodyText).toContain('The third door.')
})

it('does not wait for ever: what takes too long is left to the next owner, who reads it back', async () => {
  const tree = await ableTree()
  const tool = tools.tools.get('look.up')
  if (!tool) throw new Error('no tool')
  const before = tool.happened.length
  const gate = createGate()
  let brokenOff = false
  tool.script = [
    async (sent) => {
      happens(tool, sent)
      sent.signal.addEventListener('abort', () => (brokenOff = true))
      await gate.opened
      return brought('too late')
    },
  ]
  tool.lookUp = ({ argumentsHash }) =>
    tool.happened.length > before ? { type: 'committed', argumentsHash, observation: seen('The third door.') } : null
  const chunk = deltaChunk({ tool_calls: [{ index: 0, id: 'x', type: 'function', function: { name: 'look_up', arguments: '{}' } }] })
  upstream.script(
    { headers: { 'content-type': 'text/event-stream' }, steps: [chunk, finishChunk('tool_calls'), DONE] },
    answer('The third one.'),
  )
  const accepted = await ask(system, tree.id, 'Which door?')
  await eventually(async () => tool.happened.length === before + 1, 'the action is out')
  const { seats } = system.system.conversation
  patience = 100
  try {
    await seats.stop()
  } finally {
    patience = DRAIN_MS
  }
  // The process lets go of it without a word about it, as one that was killed does.
  expect(brokenOff).toBe(true)
  expect((await call<RunView>(system, 'GET', `/v1/runs/${accepted.run_id}`)).state).toBe('running')
  await seats.start()
  const other = otherReplica(system)
  await other.losesOwner(accepted.run_id)
  await other.looksAgain(accepted.run_id)
  const events = await follow(system, accepted.run_id)
  gate.open()
  tool.lookUp = () => null
  expect(events.at(-1)).toMatchObject({ type: 'run.finished', partial: false })
  expect(tool.happened).toHaveLength(before + 1)
  expect(upstream.requests.at(-1)?.bodyText).toContain('The third door.')
})

it('seals what was being said, since nobody can go on with it', async () => {
  const tree = await newTree(system)
  upstream.script({ headers: { 'content-type': 'text/event-stream' }, steps: [textChunk('Once upon '), createGate(), DONE] })
  const accepted = await ask(system, tree.id, 'Tell me a tale.')
  await follow(system, accepted.run_id, { until: (event) => event.type === 'llm.delta' })
  await leaveAndReturn(async () => undefined)
  expect(await runEnded(system, accepted.run_id)).toMatchObject({ state: 'interrupted', reason: 'drained' })
})
