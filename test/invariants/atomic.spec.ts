import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { CharacterView, Edited, RunAccepted, TreeView, VerifyReport } from '#contracts'
import { createGate, DONE, finishChunk, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeUpstream } from '../support/fake-upstream.ts'
import { exchange, plantPath, recordedTypes } from '../support/plant.ts'
import { answer, ask, call, eventually, follow, newTree, node, runEnded, spoken } from '../support/story.ts'
import type { TestSystem } from '../support/system.ts'
import { asked, cancel, heard, startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* M9: state and event commit together. The log fails between the two, in every service that writes; nothing half-written is left. */
vi.setConfig({ testTimeout: 120_000 })

let world: World
let system: TestSystem
let upstream: FakeUpstream

beforeAll(async () => {
  world = await startWorld()
  ;({ system, upstream } = world)
  // It comes by the clock, and would be a change that no mutation made.
  system.system.record.anchors.anchor = () => Promise.resolve(null)
})
afterAll(() => world.close())
beforeEach(() => upstream.unscript())

class BrokenLogError extends Error {}

type Method = 'append' | 'write' | 'appendFenced'

/** Makes the log fail from its call number `first` on, `times` times; answers how to mend it, and how many calls have failed. */
function breakLog(method: Method, first: number, times = 1): { failed: () => number; mend: () => void } {
  const { log } = system.system
  const real = log[method].bind(log) as (...parameters: unknown[]) => Promise<unknown>
  let calls = 0
  const broken = (...parameters: unknown[]): Promise<unknown> => {
    calls += 1
    return calls >= first && calls < first + times ? Promise.reject(new BrokenLogError()) : real(...parameters)
  }
  Object.assign(log, { [method]: broken })
  return { failed: () => Math.max(0, Math.min(calls, first + times - 1) - first + 1), mend: () => void Reflect.deleteProperty(log, method) }
}

/** All rows of all tables as one text each, but for what merely notes that somebody was here. */
async function everything(): Promise<Record<string, string>> {
  const { database } = system.system
  const tables = await database.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables
     WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name NOT IN ('tokens', 'sessions') ORDER BY 1`,
  )
  const [row] = await database.query<Record<string, string>>(
    `SELECT ${tables.map(({ name }) => `(SELECT md5(coalesce(string_agg(x::text, '|' ORDER BY x::text COLLATE "C"), '')) FROM "${name}" x) AS "${name}"`).join(', ')}`,
  )
  return row ?? {}
}

/** One mutation, on a state made for it. */
type Mutation = { name: string; prepare: () => Promise<{ method: string; route: string; body?: unknown }>; settle?: () => Promise<void> }

async function planted(): Promise<{ tree: TreeView; question: string; candidate: string }> {
  const tree = await newTree(system)
  const [question = '', candidate = ''] = await plantPath(system, tree.id, tree.head_node_id, exchange('q1', 'c1'))
  return { tree, question, candidate }
}

async function newCharacter(): Promise<CharacterView> {
  return call<CharacterView>(system, 'POST', '/v1/characters', { name: '阿澜', description: 'keeps the lighthouse' })
}

/** Runs that a mutation started are stopped, so that the state stands still again. */
async function stopRuns(): Promise<void> {
  const { items } = await call<{ items: { id: string; ended_at: string | null }[] }>(system, 'GET', '/v1/runs?limit=5')
  for (const item of items) {
    if (item.ended_at !== null) continue
    await cancel(world, item.id)
    await runEnded(system, item.id)
  }
  await eventually(() => Promise.resolve(system.system.conversation.seats.liveRuns === 0), 'the end of the runs')
}

const mutations: Mutation[] = [
  {
    name: 'make a tree',
    prepare: async () => ({ method: 'POST', route: '/v1/trees', body: { character_id: (await planted()).tree.character_ids[0] } }),
  },
  {
    name: 'ask, with a quotation',
    prepare: async () => {
      const { tree, candidate } = await planted()
      upstream.script({ beforeHeaders: 'HOLD' })
      return {
        method: 'POST',
        route: `/v1/trees/${tree.id}/runs`,
        body: { text: 'q', citations: [{ node_id: candidate, from: 0, to: 2 }] },
      }
    },
    settle: stopRuns,
  },
  {
    name: 'regenerate',
    prepare: async () => {
      upstream.script({ beforeHeaders: 'HOLD' })
      return { method: 'POST', route: `/v1/nodes/${(await planted()).candidate}/regenerate`, body: {} }
    },
    settle: stopRuns,
  },
  {
    name: 'edit a question',
    prepare: async () => {
      upstream.script({ beforeHeaders: 'HOLD' })
      return { method: 'POST', route: `/v1/nodes/${(await planted()).question}/edit`, body: { text: 'otherwise' } }
    },
    settle: stopRuns,
  },
  {
    name: 'edit an answer',
    prepare: async () => ({ method: 'POST', route: `/v1/nodes/${(await planted()).candidate}/edit`, body: { text: 'otherwise' } }),
  },
  { name: 'fork', prepare: async () => ({ method: 'POST', route: `/v1/nodes/${(await planted()).question}/fork` }) },
  {
    name: 'switch candidates',
    prepare: async () => {
      const { candidate } = await planted()
      await call<Edited>(system, 'POST', `/v1/nodes/${candidate}/edit`, { text: 'otherwise' })
      return { method: 'POST', route: `/v1/nodes/${candidate}/adopt` }
    },
  },
  { name: 'delete a message', prepare: async () => ({ method: 'DELETE', route: `/v1/nodes/${(await planted()).candidate}` }) },
  { name: 'delete a tree', prepare: async () => ({ method: 'DELETE', route: `/v1/trees/${(await planted()).tree.id}` }) },
  {
    name: 'write a character',
    prepare: () =>
      Promise.resolve({ method: 'POST', route: '/v1/characters', body: { name: '阿澜', description: 'keeps the lighthouse' } }),
  },
  {
    name: 'write a character anew',
    prepare: async () => ({
      method: 'POST',
      route: `/v1/characters/${(await newCharacter()).id}/versions`,
      body: { name: '阿澜', description: 'left it' },
    }),
  },
  { name: 'delete a character', prepare: async () => ({ method: 'DELETE', route: `/v1/characters/${(await newCharacter()).id}` }) },
  {
    name: 'make an owner',
    prepare: () => Promise.resolve({ method: 'POST', route: '/v1/owners', body: { name: `third ${Date.now()}`, role: 'user' } }),
  },
  {
    name: 'give out a token',
    prepare: () => Promise.resolve({ method: 'POST', route: '/v1/tokens', body: { name: 'mine', scopes: ['read'] } }),
  },
  { name: 'set the kill switch', prepare: () => Promise.resolve({ method: 'PUT', route: `/v1/admin/kill/owner/${system.ownerBId}` }) },
  { name: 'lift the kill switch', prepare: () => Promise.resolve({ method: 'DELETE', route: `/v1/admin/kill/owner/${system.ownerBId}` }) },
  { name: 'canonize', prepare: async () => ({ method: 'POST', route: `/v1/nodes/${(await planted()).candidate}/canonize` }) },
  {
    name: 'withdraw',
    prepare: async () => {
      const { candidate } = await planted()
      const { canonization } = await call<{ canonization: { id: string } }>(system, 'POST', `/v1/nodes/${candidate}/canonize`)
      await eventually(async () => {
        const [open] = await system.system.database.query<{ count: number }>(
          'SELECT count(*)::int AS count FROM outbox WHERE closed_at IS NULL',
        )
        return open?.count === 0
      }, 'the end of the jobs')
      return { method: 'POST', route: `/v1/canonizations/${canonization.id}/withdraw` }
    },
  },
]

describe('a mutation whose event cannot be written', () => {
  it.each(mutations)('$name: leaves everything as it was, and can be done afterwards', async ({ prepare, settle }) => {
    const { method, route, body } = await prepare()
    const before = await everything()
    for (let nth = 1; ; nth++) {
      const broken = breakLog('append', nth)
      const response = await system.call(method, route, body === undefined ? {} : { body }).finally(broken.mend)
      if (broken.failed() === 0) {
        expect(response.status).toBeLessThan(300)
        // Each of them writes at least one event, so at least one failure was tried.
        expect(nth).toBeGreaterThan(1)
        break
      }
      expect(response.status).toBe(500)
      expect(await everything()).toEqual(before)
    }
    await settle?.()
  })
})

describe('a run whose event cannot be written', () => {
  it('at its first word: ends as ours to blame, without a trace of an answer, and the next one runs', async () => {
    const tree = await newTree(system)
    const gate = createGate()
    const steps = [gate, textChunk('never seen'), finishChunk(), usageChunk(1, 1), DONE]
    const accepted = await asked(world, tree.id, 'hello', { steps }, answer('Here I am.'))
    // The tree's event is written, the run's own is not.
    const broken = breakLog('write', 2)
    gate.open()
    const ended = (await follow(system, accepted.run_id)).at(-1)
    broken.mend()
    expect(broken.failed()).toBe(1)
    expect(ended).toMatchObject({ type: 'run.failed', code: 'harness_error', candidate_id: null, delta_count: 0 })
    expect((await system.call('GET', `/v1/nodes/${accepted.candidate_id}`)).status).toBe(404)
    expect((await recordedTypes(system, accepted.run_id)).at(-1)).toBe('run.failed')
    expect(spoken(await follow(system, (await ask(system, tree.id, 'again')).run_id))).toBe('Here I am.')
  })

  it('at its end: what was said is sealed as a partial, together with the event that says so', async () => {
    const tree = await newTree(system)
    const gate = createGate()
    const accepted = await asked(world, tree.id, 'hello', { steps: [textChunk('I was'), gate, finishChunk(), usageChunk(1, 1), DONE] })
    await heard(world, accepted.run_id, 'I was')
    const broken = breakLog('write', 2)
    gate.open()
    const ended = (await follow(system, accepted.run_id)).at(-1)
    broken.mend()
    expect(ended).toMatchObject({ type: 'run.failed', code: 'harness_error', partial: true, candidate_id: accepted.candidate_id })
    expect(await node(system, accepted.candidate_id)).toMatchObject({ text: 'I was', sealed: true, partial: true })
  })

  it('at its end and again: nothing is half-sealed, and whoever looks after dead runs ends it (case Q7)', async () => {
    const tree = await newTree(system)
    const gate = createGate()
    const accepted = await asked(world, tree.id, 'hello', { steps: [textChunk('I was'), gate, finishChunk(), usageChunk(1, 1), DONE] })
    await heard(world, accepted.run_id, 'I was')
    const broken = breakLog('write', 1, 2)
    gate.open()
    await eventually(() => Promise.resolve(broken.failed() === 2), 'the second failure')
    await eventually(() => Promise.resolve(system.system.conversation.seats.liveRuns === 0), 'the end of its host')
    broken.mend()
    expect(await node(system, accepted.candidate_id)).toMatchObject({ sealed: false, text: 'I was' })
    await system.system.database.execute(`UPDATE runs SET lease_until = now() - interval '1 second' WHERE id = $1::uuid`, [accepted.run_id])
    expect((await follow(system, accepted.run_id)).at(-1)).toMatchObject({
      type: 'run.interrupted',
      reason: 'lease_expired',
      partial: true,
    })
    expect(await node(system, accepted.candidate_id)).toMatchObject({ text: 'I was', sealed: true, partial: true })
  })

  it('in a batch: its neighbours’ words are written', async () => {
    const trees = [await newTree(system), await newTree(system, { token: system.ownerBToken })]
    const gate = createGate()
    const steps = [textChunk('one'), gate, textChunk(' two'), finishChunk(), usageChunk(1, 1), DONE]
    upstream.script({ steps }, { steps })
    const mine: RunAccepted = await ask(system, trees[0]?.id ?? '', 'hello')
    const theirs: RunAccepted = await ask(system, trees[1]?.id ?? '', 'hello', { token: system.ownerBToken })
    await heard(world, mine.run_id, 'one')
    await follow(system, theirs.run_id, { token: system.ownerBToken, until: (_, all) => spoken(all) === 'one' })
    // A segment that stands there already: the database refuses the whole statement for it.
    await system.system.database.execute(
      `INSERT INTO segments (run_id, ordinal, part, kind, body, salt) SELECT $1::uuid, 1, 0, 'text', 'x', salt FROM segments WHERE run_id = $1::uuid`,
      [mine.run_id],
    )
    gate.open()
    expect((await follow(system, theirs.run_id, { token: system.ownerBToken })).at(-1)?.type).toBe('run.finished')
    expect((await follow(system, mine.run_id)).at(-1)).toMatchObject({ type: 'run.failed', code: 'harness_error' })
  })
})

it('after all that, every chain still holds', async () => {
  expect(await call<VerifyReport>(system, 'POST', '/v1/admin/verify', {})).toMatchObject({ faults: [], intact: true })
})
