/** What looks at a candidate acts and costs within its task's bounds, and asks nobody (K2, K6). */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CreateTask, StartAttempt } from '#contracts'
import type { AcceptanceCheck, CompletionView, EvidencePackage, TaskView } from '#contracts'
import { seen } from '../support/fake-target.ts'
import { createGate, DONE, finishChunk, startFakeUpstream, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeUpstream } from '../support/fake-upstream.ts'
import { answer, eventually } from '../support/story.ts'
import { refused } from '../support/task-story.ts'
import { characterOf, grantAll, startedTask, TaskWorld } from '../support/task-world.ts'
import type { Plane } from '../support/task-world.ts'
import { verifyEvidence } from '../support/verify-evidence.ts'

let world: TaskWorld
let upstream: FakeUpstream
let plane: Plane
const names = ['look.up', 'look.paid']
beforeAll(async () => {
  upstream = await startFakeUpstream()
  world = await TaskWorld.open({
    OPENAI_BASE_URL: upstream.baseUrl,
    LINGTAI_MODEL: 'test-model',
    OPENAI_API_KEY: 'test-key',
    LINGTAI_MODEL_PRICE: '1000000,1000000',
  })
  plane = await world.plane()
  for (const name of names) world.tool(name).script = [() => ({ type: 'done', observation: seen('Open.'), costMicros: null })]
})
afterAll(async () => {
  try {
    expect((await plane.system.conversation.verify.verifyAll()).faults).toEqual([])
  } finally {
    await world.close()
    await upstream.close()
  }
})
beforeEach(async () => {
  upstream.unscript()
  await grantAll(plane, names)
})

const given = { artifacts: [{ media_type: 'text/plain' as const, text: 'Done.' }] }
const sees = (id: string, tool: string, text = 'east'): AcceptanceCheck => ({
  id,
  kind: 'tool',
  tool,
  arguments: { text },
  expect: { type: 'string', const: 'Open.' },
})
const polite: AcceptanceCheck = { id: 'polite', kind: 'model', criterion: 'It is polite.' }
const within = (max_cost_micros: number | null, ...checks: AcceptanceCheck[]) => ({
  tools: names,
  acceptance: { contract_version: 1 as const, checks },
  budget: { max_cost_micros },
})

/** By the loop, to its verdict; with its evidence, that holds. */
async function looped(changes: ReturnType<typeof within>): Promise<EvidencePackage> {
  const task = await plane.tasks.create(
    plane.ownerId,
    CreateTask.parse({ character_id: await characterOf(plane), instruction: 'Find the door.', ...changes }),
  )
  await plane.tasks.start(plane.ownerId, task.task_id, StartAttempt.parse({ runtimes: ['builtin'] }))
  await eventually(async () => (await plane.tasks.get(plane.ownerId, task.task_id)).status !== 'open', 'a verdict')
  const evidence = await plane.tasks.evidence(plane.ownerId, task.task_id)
  expect(await verifyEvidence(JSON.stringify(evidence))).toMatchObject({ code: 0, faults: '' })
  const { state } = await plane.system.tasks.keeper.rebuild(task.task_id, null)
  expect(evidence.task.budget).toMatchObject(state.budget)
  return evidence
}
async function handedOver(changes: ReturnType<typeof within>): Promise<CompletionView> {
  const task = await startedTask(plane, names, changes)
  const completed = await plane.tasks.complete(plane.ownerId, task.task_id, given)
  const { state } = await plane.system.tasks.keeper.rebuild(task.task_id, null)
  expect(completed.task.budget).toMatchObject(state.budget)
  return completed
}
const codes = (checks: readonly { code: string }[] | undefined): string[] | undefined => checks?.map(({ code }) => code)

describe('a tool that looks at a candidate', () => {
  it.each(['builtin', 'external'])('whose owner wants to be asked is no pass, and nobody is asked (%s)', async (runtime) => {
    await grantAll(plane, names, { class_rules: [{ capability: 'read_only', verdict: 'ask' }] })
    upstream.script(answer('It is open.'))
    const changes = within(null, sees('seen', 'look.up'))
    if (runtime === 'external') {
      expect(await handedOver(changes)).toMatchObject({
        verdict: 'needs_escalation',
        verification: { checks: [{ code: 'approval_required' }] },
      })
      return
    }
    const { task, actions, approvals, verification, attempts } = await looped(changes)
    expect(task.status).toBe('needs_escalation')
    expect(codes(verification?.checks)).toEqual(['approval_required'])
    expect([approvals, actions.map(({ outcome }) => outcome), attempts[0]?.status]).toEqual([[], ['denied'], 'needs_escalation'])
  })

  it('is paid by what the attempt left of the task’s budget', async () => {
    upstream.script(answer('It is open.'))
    const { task, verification } = await looped(within(100_000, sees('seen', 'look.paid')))
    expect([task.status, codes(verification?.checks)]).toEqual(['verified', ['passed']])
    expect(task.budget).toMatchObject({ reserved_micros: 0, used_actions: 1 })
    expect(task.budget.spent_micros).toBeGreaterThan(5)
  })

  it('looks for each of two checks whose ids begin alike', async () => {
    const ids = ['door-is-open-after-the-visit-east', 'door-is-open-after-the-visit-west']
    const { verdict, verification } = await handedOver(within(null, ...ids.map((id) => sees(id, 'look.up', id.slice(-4)))))
    expect([verdict, codes(verification?.checks)]).toEqual(['verified', ['passed', 'passed']])
  })
})

describe('a model that is asked about a candidate', () => {
  it('is not asked where that could cost more than the task has left, or where nothing is', async () => {
    upstream.script(answer('{"meets":true}'))
    for (const left of [1, 0]) {
      const before = upstream.requests.length
      const { verdict, verification, task } = await handedOver(within(left, polite))
      expect([verdict, codes(verification?.checks)]).toEqual(['needs_escalation', ['budget_exhausted']])
      expect(upstream.requests).toHaveLength(before)
      expect(task.budget).toMatchObject({ spent_micros: 0, reserved_micros: 0 })
    }
  })

  it.each([100_000, null])('is charged to the task, bounded or not (%s)', async (bound) => {
    upstream.script(answer('{"meets":true}'))
    const { verdict, task } = await handedOver(within(bound, polite))
    expect([verdict, task.budget.reserved_micros]).toEqual(['verified', 0])
    expect(task.budget.spent_micros).toBeGreaterThan(0)
  })

  it('holds what it may cost until that is known; a cancellation waits for it, and it is charged', async () => {
    const gate = createGate()
    const steps = [textChunk('{"meets":true}'), finishChunk('stop'), usageChunk(9, 9), DONE]
    upstream.script({ headers: { 'content-type': 'text/event-stream' }, beforeHeaders: gate, steps })
    const sent = upstream.requests.length
    const task = await startedTask(plane, names, within(100_000, polite))
    const completing = plane.tasks.complete(plane.ownerId, task.task_id, given)
    await upstream.request(sent)
    const budget = async (): Promise<TaskView['budget']> => (await plane.tasks.get(plane.ownerId, task.task_id)).budget
    expect(await budget()).toMatchObject({ spent_micros: 0, reserved_micros: 100_000 })
    expect((await refused(plane.tasks.complete(plane.ownerId, task.task_id, given))).code).toBe('wrong_state')
    expect((await plane.tasks.cancel(plane.ownerId, task.task_id)).status).toBe('cancelling')
    const ended = plane.system.database.execute(
      `UPDATE task_attempts SET status = 'cancelled', ended_at = now() WHERE task_id = $1::uuid`,
      [task.task_id],
    )
    await expect(ended).rejects.toThrow(/no_check_out/)
    gate.open()
    expect(await completing).toMatchObject({ verdict: 'cancelled', task: { status: 'cancelled' } })
    expect(await budget()).toMatchObject({ spent_micros: 18, reserved_micros: 0 })
  })
})
