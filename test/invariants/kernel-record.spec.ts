import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { ApprovalView, EventPayload, EventRecord, RunView, TreeView } from '#contracts'
import { eventDictionary } from '#contracts'
import { admit } from '#kernel/admission/admit'
import type { RunRow } from '#kernel/ports/run-store'
import { fakeContract, fakeTools } from '../support/fake-target.ts'
import { expectReplays } from '../support/replays.ts'
import { answer, ask, askAndHear, call, eventually, follow } from '../support/story.ts'
import { calling, grant, treeWithTools } from '../support/tool-calls.ts'
import { startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* What the record says of runs (K1–K5, "Events"): one that reads, asks, waits, sends and answers; another beside it; and a job's. */
vi.setConfig({ testTimeout: 120_000 })

const fakes = fakeTools(
  fakeContract('look.up'),
  fakeContract('mail.send', { capability: 'irreversible_external', consequence: 'lasting', egress: 'declared', priceMicros: 10 }),
)
let world: World
let tree: TreeView
let acted: RunRow
let beside: RunRow
let job: RunRow
let records: EventRecord[]
let shown: { type: string }[]

beforeAll(async () => {
  world = await startWorld({ overrides: { tools: fakes.catalogue } })
  const { system, upstream } = world
  tree = await treeWithTools(system, ['look.up', 'mail.send'])
  upstream.script(
    calling([{ name: 'look_up', arguments: '{ "text" : "door" }' }], 'Let me see. '),
    calling([{ name: 'mail_send', arguments: '{"text":"hello"}' }], 'I will write. '),
    answer('Done.'),
    answer('Another one.'),
  )
  const accepted = await ask(system, tree.id, 'Write to her.')
  const approval = await eventually(async () => {
    const { items } = await call<{ items: ApprovalView[] }>(system, 'GET', '/v1/approvals?state=pending')
    return items.find((item) => item.run_id === accepted.run_id)
  }, 'the question')
  await call(system, 'POST', `/v1/approvals/${approval.id}/decision`, { decision: 'approve', arguments_hash: approval.arguments_hash })
  shown = await follow(system, accepted.run_id)
  const again = await call<{ run_id: string }>(system, 'POST', `/v1/nodes/${accepted.candidate_id}/regenerate`, {})
  await follow(system, again.run_id)
  await call(system, 'POST', `/v1/nodes/${accepted.candidate_id}/canonize`)
  job = await eventually(async () => {
    const [row] = await system.system.database.query<{ id: string }>(
      `SELECT id FROM runs WHERE kind = 'maintenance' AND ended_at IS NOT NULL`,
    )
    return row ? runOf(row.id) : null
  }, 'the end of the job’s run')
  acted = await runOf(accepted.run_id)
  beside = await runOf(again.run_id)
  records = await recordsOf(acted)
})
afterAll(() => world.close())

async function runOf(runId: string): Promise<RunRow> {
  const row = await world.system.system.conversation.runStore.get(runId)
  if (!row) throw new Error(`there is no run ${runId}`)
  return row
}
const recordsOf = async (run: RunRow): Promise<EventRecord[]> =>
  (await world.system.system.log.read(`run:${run.id}`)).map(({ record }) => record)
const ofType = <T extends keyof typeof eventDictionary>(all: readonly EventRecord[], type: T): EventPayload<T & EventRecord['type']>[] =>
  all.filter((record) => record.type === type).map((record) => record.payload as EventPayload<T & EventRecord['type']>)

describe('a run’s envelope', () => {
  it('names run, owner and trace on every event; a delta leaves that to the first one', async () => {
    for (const run of [acted, beside, job]) {
      const all = await recordsOf(run)
      expect(all.length).toBeGreaterThan(5)
      for (const record of all) {
        expect(record).toMatchObject({ stream: `run:${run.id}`, version: eventDictionary[record.type].version })
        if (record.type === 'llm.delta') continue
        expect(record, record.type).toMatchObject({
          protocol_version: 1,
          owner_id: run.owner_id,
          character_id: run.character_id,
          run_id: run.id,
          trace_id: run.trace_id,
        })
        expect(record.actor).toMatch(/^[a-z]+$/)
        expect(['untrusted', 'workspace', 'trusted']).toContain(record.trust)
      }
      expect(all.map(({ seq }) => seq)).toEqual(all.map((_, index) => index + 1))
    }
  })

  it('shows each event to whom its type says, and to its owner the public ones alone', async () => {
    const { database } = world.system.system
    const rows = await database.query<{ type: keyof typeof eventDictionary; visibility: string }>(
      'SELECT DISTINCT type, visibility FROM events',
    )
    expect(rows.length).toBeGreaterThan(20)
    for (const { type, visibility } of rows) expect(visibility, type).toBe(eventDictionary[type].visibility)
    const types = new Set(shown.map(({ type }) => type))
    expect([...types].filter((type) => eventDictionary[type as keyof typeof eventDictionary].visibility !== 'public')).toEqual([])
  })

  it('binds a run to its owner, bundle and resolved profile; another layer makes another profile', async () => {
    const { system, upstream } = world
    const [started] = ofType(records, 'run.started')
    const [pinned] = await system.system.database.query<{ hash: string; owner_id: string; profile: string }>(
      `SELECT encode(p.hash, 'hex') AS hash, p.owner_id, p.profile FROM profile_versions p JOIN runs r ON r.profile_version_id = p.id WHERE r.id = $1::uuid`,
      [acted.id],
    )
    expect(started).toMatchObject({ profile_hash: pinned?.hash, persona_version_id: acted.persona_version_id })
    expect(pinned?.owner_id).toBe(system.ownerId)
    expect(JSON.parse(pinned?.profile ?? '{}')).toMatchObject({ bundle: started?.bundle })
    const bounded = await treeWithTools(system, ['look.up'])
    await grant(system, `/v1/trees/${bounded.id}/grant`, { max_cost_micros: 1_000_000_000 })
    upstream.script(answer('Cheaply.'))
    const { accepted } = await askAndHear(system, bounded.id, 'And now?')
    const [other] = ofType(await recordsOf(await runOf(accepted.run_id)), 'run.started')
    expect(other?.bundle).toBe(started?.bundle)
    expect(other?.profile_hash).not.toBe(started?.profile_hash)
  })

  it('names the cause of every event', async () => {
    const known = [
      'ask',
      'job',
      'start',
      'context_projected',
      'segments',
      'model_finished',
      'call_assessed',
      'effect_settled',
      'resume',
      'accepted',
    ]
    for (const run of [acted, beside, job]) {
      for (const { type, cause } of await recordsOf(run)) expect(known, `${type} of ${cause.tag}`).toContain(cause.tag)
    }
    const settled = records.find(({ type }) => type === 'tool.done')
    expect(settled?.cause).toMatchObject({ tag: 'effect_settled', readings: { outcome: 'done', cost_micros: 0 } })
  })
})

describe('a run’s story', () => {
  it('tells a run with actions in order', () => {
    const types = records.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1])
    const acting = ['tool.pre_execute', 'policy.decided']
    const sent = ['budget.reserved', 'effect.intent', 'tool.done', 'budget.settled', 'tool.executed', 'result.pre_accept']
    const asks = ['context.projected', 'policy.decided', 'budget.reserved', 'llm.requested', 'llm.delta', 'llm.completed', 'budget.settled']
    expect(types.filter((type) => type !== 'run.queued')).toEqual([
      'run.requested',
      'run.started',
      'turn.started',
      ...asks,
      ...acting,
      ...sent,
      'turn.finished',
      'turn.started',
      ...asks,
      ...acting,
      'approval.requested',
      'run.suspended',
      'run.resumed',
      'policy.decided',
      ...sent,
      'turn.finished',
      'turn.started',
      ...asks,
      'turn.finished',
      'result.pre_accept',
      'run.finished',
    ])
  })

  it('has the gate’s word before every model request, of answers and of jobs', async () => {
    for (const run of [acted, beside, job]) {
      const all = await recordsOf(run)
      const requests = all.flatMap(({ type }, index) => (type === 'llm.requested' ? [index] : []))
      expect(requests.length).toBeGreaterThan(0)
      for (const at of requests) {
        const projected = all.findLastIndex(({ type }, index) => type === 'context.projected' && index < at)
        const between = ofType(all.slice(projected, at), 'policy.decided')
        expect(between).toMatchObject([{ gate: 'forbidden', verdict: 'autonomous' }])
      }
    }
  })

  it('decides every recorded verdict again from its recorded facts', () => {
    const decided = ofType(records, 'policy.decided').filter(({ gate }) => gate === 'admission')
    expect(decided.map(({ verdict }) => verdict)).toEqual(['autonomous', 'ask', 'rule_bound'])
    for (const { facts, verdict, reason, policy_version } of decided) {
      if (!facts) throw new Error('a verdict without facts')
      expect(admit(facts)).toMatchObject({ verdict, reason, policy_version })
    }
  })

  it('names in each intent what is sent, by whom it was admitted and as what, its arguments as content', async () => {
    const intents = records.filter(({ type }) => type === 'effect.intent')
    expect(intents.map(({ payload }) => payload)).toMatchObject([
      { tool: 'look.up', capability: 'read_only', consequence: 'none', approval_id: null },
      { tool: 'mail.send', capability: 'irreversible_external', consequence: 'lasting', constraints: ['exact_arguments', 'single_use'] },
    ])
    const contents = await world.system.system.contents.get(intents.map(({ payload }) => String(payload.content_id)))
    expect([...contents.values()].map(({ body }) => body).toSorted()).toEqual(['{"text":"door"}', '{"text":"hello"}'])
    for (const { payload, content_digests: digests } of intents) {
      expect(digests).toEqual([{ content_id: payload.content_id, digest: payload.arguments_hash }])
      expect(payload.effect_id).not.toBe(payload.action_id)
    }
  })

  it('counts as a use of a tool what ended in tool.done, and nothing else', () => {
    const used = new Set(ofType(records, 'tool.done').map(({ effect_id: id }) => id))
    const intents = ofType(records, 'effect.intent').map(({ effect_id: id }) => id)
    expect([...used].toSorted()).toEqual(intents.toSorted())
    for (const { effect_id: id } of ofType(records, 'llm.requested')) expect(used.has(id)).toBe(false)
    for (const { content_id: id } of ofType(records, 'tool.done')) expect(id).not.toBeNull()
  })

  it('decides stored runs again, byte for byte', async () => {
    await expectReplays(world.system)
    const { replays } = world.system.system.conversation
    for (const run of [acted, beside, job]) expect((await replays.commands(run)).result).toBe('identical')
  })
})

describe('streams beside each other', () => {
  it('resumes in the same chain, and forks into one of its own, with what lies before in common', async () => {
    const types = records.map(({ type }) => type)
    expect(types.indexOf('run.resumed')).toBe(types.indexOf('run.suspended') + 1)
    const other = await recordsOf(beside)
    expect(other[0]).toMatchObject({ type: 'run.requested', seq: 1, stream: `run:${beside.id}` })
    expect(records.at(-1)?.type).toBe('run.finished')
    const question = (all: readonly EventRecord[]) => ofType(all, 'context.projected')[0]?.pieces.find((piece) => piece.kind === 'path')
    expect(question(other)).toEqual(question(records))
  })

  it('gives each call of a job a stream, a fence and a budget of its own', async () => {
    const all = await recordsOf(job)
    expect(job).toMatchObject({ kind: 'maintenance', seated: false, tree_id: null })
    expect(job.fence).toBeGreaterThan(0)
    expect(all.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['run.requested', 'run.started', 'budget.reserved', 'budget.settled']),
    )
    expect(ofType(all, 'turn.started')).toHaveLength(1)
    const [pinned] = await world.system.system.database.query<{ profile: string }>(
      'SELECT p.profile FROM profile_versions p JOIN runs r ON r.profile_version_id = p.id WHERE r.id = $1::uuid',
      [job.id],
    )
    expect(JSON.parse(pinned?.profile ?? '{}')).toMatchObject({ max_turns: 1, max_steers: 0 })
    const view = await call<RunView>(world.system, 'GET', `/v1/runs/${acted.id}`)
    expect(view.state).toBe('finished')
  })

  it('rebuilds the calls of jobs too', async () => {
    const rebuilt = await world.system.system.conversation.replays.everyContext(job)
    expect(rebuilt).toEqual([{ turn: 1, result: 'identical' }])
  })
})
