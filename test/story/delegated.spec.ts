/** Tasks in the background (天工): the built-in loop and an agent elsewhere as runtimes, bounded by what the task has left. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ApprovalView, CreateTask, EventPayload, EvidencePackage, GrantView, Problem, SetGrant, TaskView } from '#contracts'
import type { FakeResponse, FakeUpstream } from '../support/fake-upstream.ts'
import { createGate, CUT, DONE, deltaChunk, finishChunk, startFakeUpstream, textChunk, usageChunk } from '../support/fake-upstream.ts'
import { fakeContract, fakeTools, seen } from '../support/fake-target.ts'
import type { FakeTool } from '../support/fake-target.ts'
import { closeWhole } from '../support/replays.ts'
import { answer, askAndHear, call, eventually, newTree } from '../support/story.ts'
import { everyClass } from '../support/task-world.ts'
import { startTestSystem } from '../support/system.ts'
import { verifyEvidence } from '../support/verify-evidence.ts'
import type { World } from '../support/world.ts'

const tools = fakeTools(
  fakeContract('look.up'),
  fakeContract('mail.send', { capability: 'irreversible_external', consequence: 'lasting', egress: 'declared', priceMicros: 10 }),
)
let world: World
let agent: FakeUpstream
let characterId: string

beforeAll(async () => {
  agent = await startFakeUpstream()
  // Without canonizing there are no jobs: what asks for a response format here is a verifier, and is scripted.
  const upstream = await startFakeUpstream()
  const system = await startTestSystem({
    model: upstream.baseUrl,
    overrides: { tools: tools.catalogue },
    environment: { LINGTAI_AGENT_MODEL: 'agent-1', LINGTAI_AGENT_BASE_URL: agent.baseUrl, LINGTAI_MODEL_PRICE: '1000000,1000000' },
  })
  world = {
    system,
    upstream,
    close: async () => {
      await system.close()
      await upstream.close()
    },
  }
  const tree = await newTree(world.system)
  characterId = tree.character_ids[0] ?? ''
  await grant('/v1/grant', {})
  await grant(`/v1/characters/${characterId}/grant`, { tools: ['look.up', 'mail.send'] })
})
afterAll(async () => {
  try {
    await closeWhole(world)
  } finally {
    await agent.close()
  }
})
beforeEach(() => {
  for (const tool of tools.tools.values()) tool.happened = []
})
afterEach(async () => {
  world.upstream.unscript()
  agent.unscript()
})

function tool(name: string): FakeTool {
  const found = tools.tools.get(name)
  if (!found) throw new Error(`no tool ${name}`)
  return found
}

async function grant(path: string, changes: Partial<SetGrant>): Promise<void> {
  const { version } = await call<GrantView>(world.system, 'GET', path)
  await call<GrantView>(world.system, 'PUT', path, { mode: 'default', classes: everyClass, tools: null, exact: null, version, ...changes })
}

function calling(name: string, text: string): FakeResponse {
  const chunk = deltaChunk({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name, arguments: text } }] })
  return { headers: { 'content-type': 'text/event-stream' }, steps: [chunk, finishChunk('tool_calls'), usageChunk(40, 8), DONE] }
}

const shape = (expected: string): CreateTask['acceptance'] => ({
  contract_version: 1,
  checks: [{ id: 'shape', kind: 'schema', schema: { type: 'object', properties: { door: { const: expected } }, required: ['door'] } }],
})

type Given = Partial<Omit<CreateTask, 'budget'>> & { budget?: Partial<CreateTask['budget']> }
async function begun(runtime: 'builtin' | 'remote', given: Given): Promise<TaskView> {
  const task = await call<TaskView>(world.system, 'POST', '/v1/tasks', {
    character_id: characterId,
    instruction: 'Find the door.',
    acceptance: shape('third'),
    budget: {},
    ...given,
  })
  await call(world.system, 'POST', `/v1/tasks/${task.task_id}/attempts`, { runtimes: [runtime] })
  return task
}

const read = (task: TaskView): Promise<TaskView> => call<TaskView>(world.system, 'GET', `/v1/tasks/${task.task_id}`)
const evidence = (task: TaskView): Promise<EvidencePackage> =>
  call<EvidencePackage>(world.system, 'GET', `/v1/tasks/${task.task_id}/evidence`)
const reaches = (task: TaskView, status: TaskView['status']): Promise<TaskView> =>
  eventually(async () => {
    const now = await read(task)
    return now.status === status && now
  }, `a task that is ${status}`)

describe('the built-in loop', () => {
  it('goes on after a result that is larger than the window (case K5)', async () => {
    tool('look.up').script = [() => ({ type: 'done', observation: seen('第三扇门。'.repeat(60_000)), costMicros: null })]
    world.upstream.script(calling('look_up', '{"text":"door"}'), answer('{"door":', '"third"}'))
    const task = await begun('builtin', { tools: ['look.up'] })
    await reaches(task, 'verified')
    const sent = JSON.parse(world.upstream.requests.at(-1)?.bodyText ?? '{}') as { messages: { role: string; content: string }[] }
    const observed = sent.messages.find(({ role }) => role === 'tool')?.content ?? ''
    expect(observed).toMatch(/[0-9]+ of 300000 characters are left out here/)
    expect(sent.messages[1]?.content).toBe('Find the door.')
  })

  it('works with the task’s own tools, hands over its last words, and is charged to the task', async () => {
    tool('look.up').script = [() => ({ type: 'done', observation: seen('It is the third door.'), costMicros: null })]
    world.upstream.script(calling('look_up', '{"text":"door"}'), answer('{"door":', '"third"}'))
    const before = world.upstream.requests.length
    const task = await begun('builtin', { tools: ['look.up'], inputs: [{ media_type: 'text/plain', text: 'A map.', trust: 'workspace' }] })
    const verified = await reaches(task, 'verified')
    const [first] = world.upstream.requests.slice(before)
    const sent = JSON.parse(first?.bodyText ?? '{}') as {
      messages: { role: string; content: string }[]
      tools: { function: { name: string } }[]
    }
    expect(sent.tools.map(({ function: { name } }) => name)).toEqual(['look_up'])
    expect(sent.messages.slice(1)).toMatchObject([
      { role: 'user', content: 'Find the door.' },
      { role: 'user', content: 'A map.' },
    ])
    expect(verified.budget).toMatchObject({ used_actions: 1, reserved_micros: 0 })
    expect(verified.budget.spent_micros).toBeGreaterThan(0)
    const shown = await evidence(task)
    expect(shown.candidate).toMatchObject([{ producer: 'builtin', media_type: 'text/plain', trust: 'workspace' }])
    expect(shown.effects).toMatchObject([{ tool: 'look.up', state: 'done' }])
    expect(shown.proof.every(({ whole }) => whole)).toBe(true)
    expect(await verifyEvidence(JSON.stringify(shown))).toMatchObject({ code: 0, faults: '' })
    const run = shown.attempts[0]?.attempt_id ?? ''
    for (const turn of [1, 2]) {
      const explained = await call<{ rebuilt: string }>(world.system, 'GET', `/v1/runs/${run}/explanation?turn=${turn}`)
      expect(explained.rebuilt).toBe('identical')
    }
    const done = await call<TaskView>(world.system, 'POST', `/v1/tasks/${task.task_id}/commit`, {
      candidate_id: shown.candidate[0]?.candidate_id,
    })
    expect(done.status).toBe('done')
  })

  it('holds no seat: the character answers while it works', async () => {
    const gate = createGate()
    world.upstream.script({ ...answer('{"door":"third"}'), beforeHeaders: gate }, answer('Here I am.'))
    const before = world.upstream.requests.length
    const task = await begun('builtin', {})
    await world.upstream.request(before)
    const tree = await newTree(world.system)
    expect((await askAndHear(world.system, tree.id, 'Are you there?')).text).toBe('Here I am.')
    expect((await read(task)).status).toBe('open')
    gate.open()
    await reaches(task, 'verified')
  })

  it('waits for the owner where an action asks, and goes on by itself', async () => {
    world.upstream.script(calling('mail_send', '{"text":"Which door?"}'), answer('{"door":"third"}'))
    const task = await begun('builtin', { tools: ['mail.send'] })
    const asked = await eventually(async () => {
      const { items } = await call<{ items: ApprovalView[] }>(world.system, 'GET', '/v1/approvals?state=pending')
      return items.find(({ tool: name }) => name === 'mail.send')
    }, 'a question')
    expect(tool('mail.send').happened).toEqual([])
    await call(world.system, 'POST', `/v1/approvals/${asked.id}/decision`, { decision: 'approve', arguments_hash: asked.arguments_hash })
    await reaches(task, 'verified')
    expect(tool('mail.send').happened).toHaveLength(1)
    const { approvals } = await evidence(task)
    expect(approvals).toMatchObject([{ state: 'used', decided_by: world.system.ownerId }])
  })

  it('mends what a check found within its bound, in an attempt of its own that is told so', async () => {
    world.upstream.script(answer('{"door":"first"}'), answer('{"door":"third"}'))
    const before = world.upstream.requests.length
    const task = await begun('builtin', { max_repairs: 1 })
    const verified = await reaches(task, 'verified')
    expect(verified.repairs).toBe(1)
    const shown = await evidence(task)
    expect(shown.attempts.map(({ status, ordinal }) => [ordinal, status])).toEqual([
      [1, 'interrupted'],
      [2, 'candidate_verified'],
    ])
    expect(await verifyEvidence(JSON.stringify(shown))).toMatchObject({ code: 0, faults: '' })
    expect(world.upstream.requests[before + 1]?.bodyText).toContain('shape (schema): does_not_fit')

    world.upstream.script(answer('no'), answer('no'))
    const hopeless = await begun('builtin', { max_repairs: 1 })
    expect((await reaches(hopeless, 'needs_escalation')).repairs).toBe(1)
  })

  it('is bounded by what the task has left, in cost and in actions', async () => {
    world.upstream.script(answer('{"door":"third"}'))
    const poor = await begun('builtin', { budget: { max_cost_micros: 5 } })
    const ended = await eventually(async () => {
      const shown = await evidence(poor)
      return shown.attempts[0]?.ended_at !== null && shown
    }, 'the end of the attempt')
    expect(ended.attempts).toMatchObject([{ status: 'interrupted' }])
    expect(ended.task.budget).toMatchObject({ spent_micros: 0, reserved_micros: 0 })

    world.upstream.unscript()
    world.upstream.script(calling('look_up', '{}'), calling('look_up', '{}'), answer('{"door":"third"}'))
    const still = await begun('builtin', { tools: ['look.up'], budget: { max_actions: 1 } })
    await reaches(still, 'verified')
    const { effects, attempts } = await evidence(still)
    expect(effects).toHaveLength(1)
    const executed = await world.system.system.log.read(`run:${attempts[0]?.attempt_id}`, { types: ['tool.executed'] })
    const statuses = executed.map(({ record }) => (record.payload as EventPayload<'tool.executed'>).status)
    expect(statuses).toEqual(['done', 'denied'])
  })

  it('is cancelled with its task, also while it waits for a person', async () => {
    world.upstream.script(calling('mail_send', '{"text":"Which door?"}'))
    const task = await begun('builtin', { tools: ['mail.send'] })
    await eventually(async () => {
      const { items } = await call<{ items: ApprovalView[] }>(world.system, 'GET', '/v1/approvals?state=pending')
      return items.length > 0
    }, 'a question')
    await call<TaskView>(world.system, 'POST', `/v1/tasks/${task.task_id}/cancel`)
    await reaches(task, 'cancelled')
    const { attempts, approvals } = await evidence(task)
    expect([attempts[0]?.status, approvals[0]?.state]).toEqual(['cancelled', 'revoked'])
    expect(tool('mail.send').happened).toEqual([])
  })

  it('whose provider breaks leaves the task open for another attempt', async () => {
    world.upstream.script({ steps: [textChunk('{"do'), CUT] })
    const task = await begun('builtin', {})
    await eventually(async () => (await evidence(task)).attempts[0]?.status === 'interrupted', 'the end of the attempt')
    expect((await read(task)).status).toBe('open')
    world.upstream.script(answer('{"door":"third"}'))
    await call(world.system, 'POST', `/v1/tasks/${task.task_id}/attempts`, { runtimes: ['builtin'] })
    await reaches(task, 'verified')
  })
})

describe('an agent elsewhere', () => {
  it('is asked once, and what it answers is the candidate', async () => {
    agent.script(answer('{"door":"third"}'))
    const before = agent.requests.length
    const task = await begun('remote', {})
    await reaches(task, 'verified')
    expect(agent.requests.slice(before)).toHaveLength(1)
    const { candidate, attempts } = await evidence(task)
    expect(candidate).toMatchObject([{ producer: 'remote' }])
    expect(attempts).toMatchObject([{ runtime: 'remote', status: 'candidate_verified' }])
  })

  it('gets nothing that acts or is of high risk: what it cannot show is never scheduled past, and the loop takes it', async () => {
    for (const given of [{ tools: ['look.up'] }, { risk: 'high' as const }]) {
      const task = await call<TaskView>(world.system, 'POST', '/v1/tasks', {
        character_id: characterId,
        instruction: 'Find the door.',
        acceptance: shape('third'),
        budget: {},
        ...given,
      })
      const path = `/v1/tasks/${task.task_id}/attempts`
      const refused = await call<Problem>(world.system, 'POST', path, { runtimes: ['remote'] }, { status: 409 })
      expect(refused.data?.['missing']).toMatchObject({ remote: expect.arrayContaining(['structured_events']) as string[] })
      world.upstream.script(answer('{"door":"third"}'))
      expect(await call(world.system, 'POST', path, { runtimes: ['remote', 'builtin'] })).toMatchObject({ runtime: 'builtin' })
      await reaches(task, 'verified')
      world.upstream.unscript()
    }
  })
})

describe('a model as verifier', () => {
  const judged: CreateTask['acceptance'] = {
    contract_version: 1,
    checks: [{ id: 'polite', kind: 'model', criterion: 'It is polite.' }],
  }

  it('passes or fails a candidate by one recorded call, and no answer is no pass', async () => {
    const verdicts: [string, TaskView['status']][] = [
      ['{"meets":true}', 'verified'],
      ['{"meets":false}', 'needs_escalation'],
      ['It meets it.', 'needs_escalation'],
    ]
    for (const [verdict, status] of verdicts) {
      world.upstream.script(answer('Would you mind the third door?'), answer(verdict))
      const task = await begun('builtin', { acceptance: judged, max_repairs: 0 })
      await reaches(task, status)
      const { verification } = await evidence(task)
      expect(verification?.evidence_refs).toHaveLength(1)
      world.upstream.unscript()
    }
  })
})
