/** Delegated work under control: cases E1–E20 at a world that counts what really happened to it. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { LingtaiError, PolicyDecision, SubmitAction } from '#contracts'
import type { ActionView, ErrorCode, EventPayload, TaskView } from '#contracts'
import type { EffectCall, EffectOutcome } from '#kernel/ports/effect-target'
import { canonicalJson } from '#kernel/record/canonical-json'
import { sha256Hex } from '#kernel/record/chain'
import { fullTierServicesIfAny } from '../support/environment.ts'
import { createGate } from '../support/fake-upstream.ts'
import { happens, seen } from '../support/fake-target.ts'
import type { FakeTool } from '../support/fake-target.ts'
import { eventually } from '../support/story.ts'
import { approvalOf, claimsRunOut, decide, grantAll, startedTask, submit, TaskWorld } from '../support/task-world.ts'
import type { Plane } from '../support/task-world.ts'

const names = ['look.up', 'pay', 'post', 'unpriced', 'mail.send']
const isFull = fullTierServicesIfAny() !== null

let world: TaskWorld
/** The plane that most of a test happens at; it has no background work, so that nothing happens behind the test's back. */
let plane: Plane
let pay: FakeTool
let post: FakeTool

beforeAll(async () => {
  world = await TaskWorld.open()
  plane = await world.plane({ works: false })
  pay = world.tool('pay')
  post = world.tool('post')
})
afterAll(() => world.close())
beforeEach(async () => {
  for (const tool of world.tools.tools.values()) {
    tool.happened = []
    tool.lookUp = () => null
    tool.script = [does(tool)]
  }
  await grantAll(plane, names)
})
afterEach(async () => {
  expect((await plane.system.conversation.verify.verifyAll()).faults).toEqual([])
})

const does =
  (tool: FakeTool) =>
  (call: EffectCall): EffectOutcome => {
    happens(tool, call)
    return { type: 'done', observation: seen(`${tool.contract.name} did it`), costMicros: null }
  }

/** It happens, and its answer waits until the gate opens. */
function doesAndHangs(tool: FakeTool, outcome: EffectOutcome = { type: 'unknown', code: 'connection_lost' }) {
  const gate = createGate()
  const sent = Promise.withResolvers<EffectCall>()
  tool.script = [
    async (call) => {
      happens(tool, call)
      sent.resolve(call)
      await gate.opened
      return outcome
    },
  ]
  return { open: () => gate.open(), sent: sent.promise }
}

const asks = { class_rules: [{ capability: 'reversible_local' as const, verdict: 'ask' as const }] }
const forbids = { class_rules: [{ capability: 'reversible_local' as const, verdict: 'forbidden' as const }] }

const budgetOf = async (task: TaskView) => (await plane.tasks.get(plane.ownerId, task.task_id)).budget

async function decisions(task: TaskView, action: ActionView): Promise<string[]> {
  const events = await plane.system.log.read(`task:${task.task_id}`, { types: ['action.decided'] })
  return events
    .map(({ record }) => record.payload as EventPayload<'action.decided'>)
    .filter(({ action_id: id }) => id === action.action_id)
    .map(({ decision }) => decision)
}

async function refused(work: Promise<unknown>): Promise<{ code: ErrorCode; data: Readonly<Record<string, unknown>> }> {
  const error = await work.then(
    () => new Error('it was not refused'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof LingtaiError)) throw error
  return { code: error.code, data: error.data }
}

/** What a restart finds: the process before is gone, and its claims have run out. */
async function restarted(): Promise<Plane> {
  const next = await world.plane({ works: false })
  await claimsRunOut(next)
  return next
}

const recover = async (at: Plane, task: TaskView): Promise<boolean> => {
  const { items } = await at.tasks.attempts(at.ownerId, task.task_id)
  return at.system.tasks.keeper.recover(items.at(-1)?.attempt_id ?? '')
}

describe('an action', () => {
  it('E1: policy DENY: no effect, nothing spent, a recorded refusal', async () => {
    await grantAll(plane, names, forbids)
    const task = await startedTask(plane, ['pay'])
    const action = await submit(plane, task, { key: 'e1', tool: 'pay' })
    expect(action).toMatchObject({ outcome: 'denied', reason: 'class_rule', effect_id: null, charged_micros: 0 })
    expect(action.observation).toMatchObject({ status: 'denied', diagnostics: 'class_rule', structured_result: null })
    expect(pay.happened).toEqual([])
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 0, reserved_micros: 0, used_actions: 0 })
    const { policies, effects } = await plane.tasks.evidence(plane.ownerId, task.task_id)
    expect(policies).toMatchObject([{ action_id: action.action_id, decision: 'DENY', reason_code: 'class_rule' }])
    expect(effects).toEqual([])
  })

  it('may use only what its task names, whatever its character was given', async () => {
    const task = await startedTask(plane, ['look.up'])
    expect(await submit(plane, task, { key: 'n1', tool: 'pay' })).toMatchObject({ outcome: 'denied', reason: 'not_granted' })
    expect(pay.happened).toEqual([])
  })

  it('E2: who was asked is waited for, also after a restart and when the policy allows; a second action waits too', async () => {
    await grantAll(plane, names, asks)
    const task = await startedTask(plane, ['pay'])
    const first = await submit(plane, task, { key: 'e2-1', tool: 'pay' })
    expect(first.outcome).toBe('waiting_for_approval')
    const after = await restarted()
    await grantAll(after, names)
    expect((await submit(after, task, { key: 'e2-1', tool: 'pay' })).outcome).toBe('waiting_for_approval')
    const second = await submit(after, task, { key: 'e2-2', tool: 'pay' })
    expect(second).toMatchObject({ outcome: 'waiting_for_approval', approval_id: null })
    expect(pay.happened).toEqual([])
    await decide(after, first, 'approve')
    await recover(after, task)
    expect(await after.tasks.action(after.ownerId, first.action_id)).toMatchObject({ outcome: 'committed' })
    expect(await after.tasks.action(after.ownerId, second.action_id)).toMatchObject({ outcome: 'committed' })
    expect(await decisions(task, first)).toEqual(['REQUIRE_APPROVAL', 'CONSTRAINED_ALLOW'])
    expect(pay.happened).toHaveLength(2)
  })

  it('that waits for nobody passes what waits, where it was declared independent', async () => {
    await grantAll(plane, names, { class_rules: [], mode: 'default' })
    const task = await startedTask(plane, ['look.up', 'mail.send'])
    expect((await submit(plane, task, { key: 'i1', tool: 'mail.send' })).outcome).toBe('waiting_for_approval')
    expect((await submit(plane, task, { key: 'i2', tool: 'look.up' })).outcome).toBe('waiting_for_approval')
    expect((await submit(plane, task, { key: 'i3', tool: 'look.up', independent: true })).outcome).toBe('committed')
  })

  it('E3: approved, then DENY right before dispatch: denied', async () => {
    await grantAll(plane, names, asks)
    const task = await startedTask(plane, ['pay'])
    const action = await submit(plane, task, { key: 'e3', tool: 'pay' })
    pay.lookUp = async () => {
      await grantAll(plane, names, { mode: 'plan' })
      return null
    }
    await decide(plane, action, 'approve')
    await recover(plane, task)
    expect(await plane.tasks.action(plane.ownerId, action.action_id)).toMatchObject({ outcome: 'denied', reason: 'plan_mode' })
    expect(pay.happened).toEqual([])
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 0, reserved_micros: 0 })
  })

  it('that is refused, or nobody answers, is denied', async () => {
    await grantAll(plane, names, asks)
    const task = await startedTask(plane, ['pay'])
    const action = await submit(plane, task, { key: 'r1', tool: 'pay' })
    await decide(plane, action, 'refuse')
    expect(await submit(plane, task, { key: 'r1', tool: 'pay' })).toMatchObject({ outcome: 'denied', reason: 'approval_refused' })
    expect(pay.happened).toEqual([])
  })

  it('E4: a yes to other arguments is a conflict, and so is the same key with other arguments', async () => {
    await grantAll(plane, names, asks)
    const task = await startedTask(plane, ['pay'])
    const action = await submit(plane, task, { key: 'e4', tool: 'pay', arguments: { text: 'ten' } })
    const { approvals } = plane.system.conversation.actions
    const { id } = await approvalOf(plane, action)
    const other = approvals.decide(plane.ownerId, id, { decision: 'approve', arguments_hash: '0'.repeat(64) })
    expect((await refused(other)).code).toBe('conflict')
    expect((await refused(submit(plane, task, { key: 'e4', tool: 'pay', arguments: { text: 'eleven' } }))).code).toBe('conflict')
    expect(pay.happened).toEqual([])
  })

  it('E5: after the commit, other arguments, target, cost, key or action id are a conflict, and it is still one effect', async () => {
    const task = await startedTask(plane, ['pay', 'post'])
    const done = { key: 'e5', tool: 'pay', resource: 'account/1', cost_micros: 10, arguments: { text: 'a' } }
    const action = await submit(plane, task, done)
    const other = await submit(plane, task, { ...done, key: 'e5-other' })
    expect([action.outcome, other.outcome]).toEqual(['committed', 'committed'])
    const { action_id: actionId } = action
    const changes = [
      { ...done, arguments: { text: 'b' } },
      { ...done, tool: 'post' },
      { ...done, resource: 'account/2' },
      { ...done, cost_micros: 11 },
      { ...done, action_id: actionId, key: 'e5-new' },
      { ...done, action_id: other.action_id },
    ]
    for (const change of changes) {
      expect((await refused(submit(plane, task, change))).code, JSON.stringify(change)).toBe('conflict')
    }
    const second = await startedTask(plane, ['pay'])
    expect((await refused(submit(plane, second, done))).code).toBe('conflict')
    // Another owner does not even learn that there is one.
    const stranger = await plane.system.identity.owners.create({ name: `stranger-${Date.now()}`, role: 'user', actor: 'owner' })
    const foreign = plane.tasks.submit(stranger.id, task.task_id, SubmitAction.parse(done))
    expect((await refused(foreign)).code).toBe('not_found')
    expect(await submit(plane, task, done)).toMatchObject({ action_id: actionId, outcome: 'committed' })
    expect(await submit(plane, task, { ...done, action_id: actionId })).toMatchObject({ outcome: 'committed' })
    expect(pay.happened).toHaveLength(2)
  })

  it('E6: two control planes race on one action: both report committed, the target counted one', async () => {
    const task = await startedTask(plane, ['pay'])
    // The light tier is one process: there the two are two requests.
    const other = isFull ? await world.plane({ works: false }) : plane
    // Who comes while another has it in hand is told so, and asks again.
    const committed = async (at: typeof plane) => {
      const answer = await submit(at, task, { key: 'e6', tool: 'pay' })
      expect(['committed', 'pending']).toContain(answer.outcome)
      return answer.outcome === 'committed' ? answer.action_id : null
    }
    const reports = await Promise.all([plane, other, plane, other].map((at) => eventually(() => committed(at), 'it is committed')))
    expect(new Set(reports).size).toBe(1)
    expect(pay.happened).toHaveLength(1)
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 10, reserved_micros: 0, used_actions: 1 })
  })

  it('E7: the receipt is lost, restart, resubmit: unknown, dispatches nothing; fresh authoritative proof settles it', async () => {
    const task = await startedTask(plane, ['pay'])
    const hanging = doesAndHangs(pay)
    const lost = submit(plane, task, { key: 'e7', tool: 'pay' })
    const call = await hanging.sent
    const after = await restarted()
    expect((await submit(after, task, { key: 'e7', tool: 'pay' })).outcome).toBe('unknown')
    expect((await submit(after, task, { key: 'e7', tool: 'pay' })).outcome).toBe('unknown')
    expect(pay.happened).toHaveLength(1)
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 10, reserved_micros: 0 })
    const unknown = await after.system.conversation.actions.effects.unknown(after.ownerId)
    expect(unknown.items.map(({ action_id: id }) => id)).toContain(
      (await after.tasks.actions(after.ownerId, task.task_id)).items[0]?.action_id,
    )
    pay.lookUp = () => ({ type: 'committed', argumentsHash: call.argumentsHash, observation: seen('It is paid.') })
    const settled = await submit(after, task, { key: 'e7', tool: 'pay' })
    expect(settled).toMatchObject({ outcome: 'committed', charged_micros: 10 })
    expect(settled.observation?.structured_result).toContain('It is paid.')
    expect(pay.happened).toHaveLength(1)
    hanging.open()
    await lost
  })

  it('E7: a person’s word settles it too, and nothing is sent again', async () => {
    const task = await startedTask(plane, ['pay'])
    pay.script = [
      (call) => {
        happens(pay, call)
        return { type: 'unknown', code: 'connection_lost' }
      },
    ]
    const action = await submit(plane, task, { key: 'e7-p', tool: 'pay' })
    expect(action.outcome).toBe('unknown')
    await plane.system.conversation.actions.effects.reconcile(plane.ownerId, action.effect_id ?? '', { as: 'failed' })
    await recover(plane, task)
    expect(await plane.tasks.action(plane.ownerId, action.action_id)).toMatchObject({ outcome: 'failed', reason: 'reconciled_failed' })
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 0, reserved_micros: 0 })
    expect(pay.happened).toHaveLength(1)
  })

  it('E8: a look-up that is stale, empty or unavailable: never replayed, nothing more spent', async () => {
    const task = await startedTask(plane, ['pay'])
    pay.script = [
      (call) => {
        happens(pay, call)
        return { type: 'unknown', code: 'connection_lost' }
      },
    ]
    expect((await submit(plane, task, { key: 'e8', tool: 'pay' })).outcome).toBe('unknown')
    const answers: FakeTool['lookUp'][] = [
      () => ({ type: 'absent' }),
      () => ({ type: 'unavailable' }),
      () => null,
      () => ({ type: 'committed', argumentsHash: sha256Hex(canonicalJson({ text: 'other' })), observation: null }),
      () => {
        throw new Error('the look-up itself is broken')
      },
    ]
    for (const lookUp of answers) {
      pay.lookUp = lookUp
      expect((await submit(plane, task, { key: 'e8', tool: 'pay' })).outcome).toBe('unknown')
      await recover(plane, task)
    }
    expect(pay.happened).toHaveLength(1)
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 10, reserved_micros: 0, used_actions: 1 })
  })

  it('E8: a fresh one whose look-up is unavailable is pending; what depends on it waits; later it is done, once', async () => {
    const task = await startedTask(plane, ['pay', 'post'])
    pay.lookUp = () => ({ type: 'unavailable' })
    const action = await submit(plane, task, { key: 'e8-f', tool: 'pay' })
    expect(action.outcome).toBe('pending')
    expect((await submit(plane, task, { key: 'e8-n', tool: 'post' })).outcome).toBe('pending')
    expect([pay.happened, post.happened]).toEqual([[], []])
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 0, reserved_micros: 10 })
    pay.lookUp = () => ({ type: 'absent' })
    await recover(plane, task)
    const { items } = await plane.tasks.actions(plane.ownerId, task.task_id)
    expect(items.map(({ outcome }) => outcome)).toEqual(['committed', 'committed'])
    expect([pay.happened.length, post.happened.length]).toEqual([1, 1])
  })

  it('E9: executing at the crash, and the target says "absent": still unknown', async () => {
    const task = await startedTask(plane, ['pay'])
    const hanging = doesAndHangs(pay)
    const lost = submit(plane, task, { key: 'e9', tool: 'pay' })
    await hanging.sent
    pay.lookUp = () => ({ type: 'absent' })
    const after = await restarted()
    await recover(after, task)
    expect((await submit(after, task, { key: 'e9', tool: 'pay' })).outcome).toBe('unknown')
    expect(pay.happened).toHaveLength(1)
    hanging.open()
    await lost
  })

  it('E10: 12 concurrent submissions of one action: one reservation, one effect, spent once', async () => {
    const task = await startedTask(plane, ['pay'])
    const answers = await Promise.all(Array.from({ length: 12 }, () => submit(plane, task, { key: 'e10', tool: 'pay' })))
    expect(new Set(answers.map(({ action_id: id }) => id)).size).toBe(1)
    expect(answers.every(({ outcome }) => outcome === 'committed')).toBe(true)
    expect(pay.happened).toHaveLength(1)
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 10, reserved_micros: 0, used_actions: 1 })
    const dispatched = await plane.system.log.read(`task:${task.task_id}`, { types: ['action.dispatched'] })
    expect(dispatched).toHaveLength(1)
  })

  it('E14: 12 parallel actions, budget for 3: exactly 3 committed, 9 budget exhausted', async () => {
    const task = await startedTask(plane, ['pay'], { budget: { max_cost_micros: 30 } })
    const other = isFull ? await world.plane({ works: false }) : plane
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        submit(index % 2 ? plane : other, task, { key: `e14-${index}`, tool: 'pay', independent: true }),
      ),
    )
    const outcomes = answers.map(({ outcome }) => outcome).sort()
    expect(outcomes).toEqual([...Array<string>(9).fill('budget_exhausted'), ...Array<string>(3).fill('committed')])
    expect(pay.happened).toHaveLength(3)
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 30, reserved_micros: 0, used_actions: 3 })
  })

  it('without a known price is not affordable under a bound on cost', async () => {
    const task = await startedTask(plane, ['unpriced'], { budget: { max_cost_micros: 1000 } })
    expect(await submit(plane, task, { key: 'u1', tool: 'unpriced' })).toMatchObject({
      outcome: 'budget_exhausted',
      reason: 'price_unknown',
    })
    expect(await submit(plane, task, { key: 'u2', tool: 'unpriced', cost_micros: 5 })).toMatchObject({
      outcome: 'committed',
      charged_micros: 0,
    })
  })

  it('E15: a cost of -1, 0, 1.5 or true is invalid', () => {
    for (const cost of [-1, 0, 1.5, true, '1', null]) {
      expect(SubmitAction.safeParse({ key: 'e15', tool: 'pay', arguments: {}, cost_micros: cost }).success, String(cost)).toBe(false)
    }
    expect(SubmitAction.safeParse({ key: 'e15', tool: 'pay', arguments: {}, cost_micros: 1 }).success).toBe(true)
  })

  it('E16: a late time-out after the commit was recorded cannot demote it', async () => {
    for (const outcome of [
      { type: 'unknown', code: 'timed_out' },
      { type: 'failed', code: 'not_there', observation: null },
    ] satisfies EffectOutcome[]) {
      const key = `e16-${outcome.type}`
      const task = await startedTask(plane, ['pay'])
      const hanging = doesAndHangs(pay, outcome)
      const late = submit(plane, task, { key, tool: 'pay' })
      const call = await hanging.sent
      pay.lookUp = () => ({ type: 'committed', argumentsHash: call.argumentsHash, observation: seen('Paid.') })
      const after = await restarted()
      expect((await submit(after, task, { key, tool: 'pay' })).outcome).toBe('committed')
      hanging.open()
      expect((await late).outcome).toBe('committed')
      expect((await submit(after, task, { key, tool: 'pay' })).outcome).toBe('committed')
      expect(await budgetOf(task)).toMatchObject({ spent_micros: 10, reserved_micros: 0 })
      pay.lookUp = () => null
    }
  })

  it('E16: a late receipt settles what was lost meanwhile, once', async () => {
    const task = await startedTask(plane, ['pay'])
    const hanging = doesAndHangs(pay, { type: 'done', observation: seen('Paid, late.'), costMicros: 7 })
    const late = submit(plane, task, { key: 'e16-r', tool: 'pay' })
    await hanging.sent
    const after = await restarted()
    expect((await submit(after, task, { key: 'e16-r', tool: 'pay' })).outcome).toBe('unknown')
    hanging.open()
    expect((await late).outcome).toBe('committed')
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 10, reserved_micros: 0 })
    expect(pay.happened).toHaveLength(1)
  })

  it('E17: a decision with an unknown value, or ALLOW with constraints, is rejected before defaults are filled in', async () => {
    const messages: ((actionId: string) => unknown)[] = [
      (id) => ({ action_id: id, decision: 'MAYBE', policy_version: 1 }),
      (id) => ({ action_id: id, decision: 'ALLOW', policy_version: 1, constraints: {} }),
      (id) => ({ action_id: id, decision: 'ALLOW', policy_version: 1, constraints: [] }),
      (id) => ({ action_id: id, decision: 'CONSTRAINED_ALLOW', policy_version: 1, reason_code: 'x' }),
      (id) => ({ action_id: id, decision: 'CONSTRAINED_ALLOW', policy_version: 1, constraints: [], reason_code: 'x' }),
      (id) => ({ action_id: id, decision: 'CONSTRAINED_ALLOW', policy_version: 1, constraints: ['undoable'] }),
      () => ({ action_id: '00000000-0000-7000-8000-000000000000', decision: 'ALLOW', policy_version: 1 }),
      () => null,
      () => 'ALLOW',
    ]
    let message: (actionId: string) => unknown = () => null
    const judged = await world.plane({ works: false, policy: { evaluate: async (id) => message(id) } })
    const task = await startedTask(judged, ['pay'])
    for (const [index, next] of messages.entries()) {
      message = next
      const action = await submit(judged, task, { key: `e17-${index}`, tool: 'pay' })
      expect(action, `message ${index}`).toMatchObject({ outcome: 'denied', reason: 'unknown_value' })
    }
    expect(pay.happened).toEqual([])
    // What is valid is taken, with its defaults; and no policy widens what admission says.
    message = (id) => ({ action_id: id, decision: 'ALLOW', policy_version: 1 })
    expect((await submit(judged, task, { key: 'e17-ok', tool: 'pay' })).outcome).toBe('committed')
    await grantAll(judged, names, forbids)
    expect((await submit(judged, task, { key: 'e17-wide', tool: 'pay' })).outcome).toBe('denied')
    expect(PolicyDecision.safeParse(message('01a22968-84d7-71a4-bf1f-6eeb557de500')).success).toBe(true)
  })

  it('E18: an exception between reserve and settle is settled from the durable ledger', async () => {
    const task = await startedTask(plane, ['pay'])
    const { catalogue } = world.tools
    const { find } = catalogue
    pay.script = [
      (call) => {
        happens(pay, call)
        catalogue.find = () => {
          catalogue.find = find
          throw new Error('something of ours breaks before it is written down')
        }
        return { type: 'done', observation: seen('Paid.'), costMicros: null }
      },
    ]
    await expect(submit(plane, task, { key: 'e18', tool: 'pay' })).rejects.toThrow('something of ours breaks')
    const { items } = await plane.tasks.actions(plane.ownerId, task.task_id)
    expect(items).toMatchObject([{ outcome: 'unknown', charged_micros: 10 }])
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 10, reserved_micros: 0 })
    expect(pay.happened).toHaveLength(1)
  })

  it('E18: a crash between reserve and dispatch: what was never sent is sent once, and charged once', async () => {
    const task = await startedTask(plane, ['pay'])
    const gate = createGate()
    const asked = Promise.withResolvers<void>()
    pay.lookUp = async () => {
      asked.resolve()
      await gate.opened
      return null
    }
    const stuck = submit(plane, task, { key: 'e18-c', tool: 'pay' })
    await asked.promise
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 0, reserved_micros: 10 })
    pay.lookUp = () => null
    const after = await restarted()
    await recover(after, task)
    expect((await submit(after, task, { key: 'e18-c', tool: 'pay' })).outcome).toBe('committed')
    gate.open()
    expect((await stuck).outcome).toBe('committed')
    expect(pay.happened).toHaveLength(1)
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 10, reserved_micros: 0 })
  })

  it('E19: an approved call with other arguments is not served by that approval and asks again', async () => {
    await grantAll(plane, names, asks)
    const task = await startedTask(plane, ['pay'])
    const first = await submit(plane, task, { key: 'e19', tool: 'pay', arguments: { text: 'one' }, independent: true })
    await decide(plane, first, 'approve')
    const again = await submit(plane, task, { key: 'e19-again', tool: 'pay', arguments: { text: 'two' }, independent: true })
    expect(again.outcome).toBe('waiting_for_approval')
    expect(again.approval_id).not.toBe(first.approval_id)
    expect((await refused(submit(plane, task, { key: 'e19', tool: 'pay', arguments: { text: 'two' }, independent: true }))).code).toBe(
      'conflict',
    )
    expect((await submit(plane, task, { key: 'e19', tool: 'pay', arguments: { text: 'one' }, independent: true })).outcome).toBe(
      'committed',
    )
    expect(pay.happened.map(({ argumentsText }) => argumentsText)).toEqual(['{"text":"one"}'])
    // A yes serves once: the same action is not done a second time by it.
    expect((await approvalOf(plane, first)).state).toBe('used')
  })

  it('E20: a crash on the third of one step: the first two are read back, not run again', async () => {
    const task = await startedTask(plane, ['pay', 'post'])
    expect((await submit(plane, task, { key: 'e20-1', tool: 'post' })).outcome).toBe('committed')
    expect((await submit(plane, task, { key: 'e20-2', tool: 'post' })).outcome).toBe('committed')
    const hanging = doesAndHangs(pay)
    const third = submit(plane, task, { key: 'e20-3', tool: 'pay' })
    await hanging.sent
    const after = await restarted()
    await recover(after, task)
    const again = []
    for (const [index, tool] of ['post', 'post', 'pay'].entries()) again.push(await submit(after, task, { key: `e20-${index + 1}`, tool }))
    expect(again.map(({ outcome }) => outcome)).toEqual(['committed', 'committed', 'unknown'])
    expect([post.happened.length, pay.happened.length]).toEqual([2, 1])
    hanging.open()
    await third
  })

  it('E22: a submitter’s name is correlation only: ids are ours, and another action’s id is no name', async () => {
    const task = await startedTask(plane, ['pay'])
    const first = await submit(plane, task, { key: 'e22', tool: 'pay' })
    const named = await submit(plane, task, { key: first.action_id, tool: 'pay' })
    expect(named.action_id).not.toBe(first.action_id)
    expect(
      (await refused(submit(plane, task, { action_id: '01a22968-84d7-71a4-bf1f-6eeb557de500', key: 'e22-new', tool: 'pay' }))).code,
    ).toBe('not_found')
    expect((await refused(submit(plane, task, { action_id: named.action_id, key: 'e22', tool: 'pay' }))).code).toBe('conflict')
    expect(pay.happened).toHaveLength(2)
  })
})

describe('a cancelled task', () => {
  it('E11: cancel, restart, then approve, submit, complete: all answer cancelled', async () => {
    await grantAll(plane, names, asks)
    const task = await startedTask(plane, ['pay'])
    const action = await submit(plane, task, { key: 'e11', tool: 'pay' })
    expect((await plane.tasks.cancel(plane.ownerId, task.task_id)).status).toBe('cancelled')
    const after = await restarted()
    await grantAll(after, names)
    const approved = await refused(decide(after, action, 'approve'))
    expect(approved).toEqual({ code: 'run_ended', data: { reason: 'cancelled' } })
    expect((await submit(after, task, { key: 'e11', tool: 'pay' })).outcome).toBe('cancelled')
    expect((await submit(after, task, { key: 'e11-new', tool: 'pay' })).outcome).toBe('cancelled')
    const completed = await after.tasks.complete(after.ownerId, task.task_id, { artifacts: [{ media_type: 'text/plain', text: 'Done.' }] })
    expect(completed).toMatchObject({ verdict: 'cancelled', task: { status: 'cancelled' }, artifacts: [] })
    expect((await after.tasks.cancel(after.ownerId, task.task_id)).status).toBe('cancelled')
    expect(pay.happened).toEqual([])
  })

  it('E12: with an unknown effect it is cancelling until that is reconciled', async () => {
    const task = await startedTask(plane, ['pay'])
    pay.script = [
      (call) => {
        happens(pay, call)
        return { type: 'unknown', code: 'connection_lost' }
      },
    ]
    const action = await submit(plane, task, { key: 'e12', tool: 'pay' })
    expect((await plane.tasks.cancel(plane.ownerId, task.task_id)).status).toBe('cancelling')
    await plane.system.tasks.keeper.continueCancel(task.task_id)
    expect((await plane.tasks.get(plane.ownerId, task.task_id)).status).toBe('cancelling')
    expect((await submit(plane, task, { key: 'e12-new', tool: 'pay' })).outcome).toBe('cancelled')
    await plane.system.conversation.actions.effects.reconcile(plane.ownerId, action.effect_id ?? '', { as: 'done' })
    await plane.system.tasks.keeper.continueCancel(task.task_id)
    const ended = await plane.tasks.get(plane.ownerId, task.task_id)
    expect(ended.status).toBe('cancelled')
    // What happened, happened.
    expect(await plane.tasks.action(plane.ownerId, action.action_id)).toMatchObject({ outcome: 'committed' })
    expect(pay.happened).toHaveLength(1)
  })

  it('while an action is out: it hears of it, and is cancelled when that is over', async () => {
    const task = await startedTask(plane, ['pay', 'post'])
    const hanging = doesAndHangs(pay, { type: 'done', observation: seen('Paid.'), costMicros: 10 })
    const out = submit(plane, task, { key: 'c1', tool: 'pay' })
    const call = await hanging.sent
    const cancelling = plane.tasks.cancel(plane.ownerId, task.task_id)
    await eventually(async () => call.signal.aborted, 'the action hears of it')
    hanging.open()
    expect((await out).outcome).toBe('committed')
    await cancelling
    await plane.system.tasks.keeper.continueCancel(task.task_id)
    expect((await plane.tasks.get(plane.ownerId, task.task_id)).status).toBe('cancelled')
  })

  it('right before dispatch: nothing is sent', async () => {
    const task = await startedTask(plane, ['pay'])
    let cancelled: Promise<unknown> = Promise.resolve()
    pay.lookUp = async () => {
      cancelled = plane.tasks.cancel(plane.ownerId, task.task_id)
      await eventually(async () => (await plane.tasks.get(plane.ownerId, task.task_id)).status !== 'open', 'the cancellation')
      return null
    }
    expect((await submit(plane, task, { key: 'c2', tool: 'pay' })).outcome).toBe('cancelled')
    await cancelled
    expect(pay.happened).toEqual([])
    expect((await plane.tasks.get(plane.ownerId, task.task_id)).status).toBe('cancelled')
    expect(await budgetOf(task)).toMatchObject({ spent_micros: 0, reserved_micros: 0 })
  })
})

describe('a candidate', () => {
  const artifact = (text: string, media_type: 'text/plain' | 'application/json' = 'text/plain') => ({ artifacts: [{ media_type, text }] })
  const paid = { contract_version: 1 as const, checks: [{ id: 'paid', kind: 'committed' as const, tool: 'pay', at_least: 1 }] }

  it('E13: committed but checks empty or false: not complete, verification failed', async () => {
    const unchecked = await startedTask(plane, ['pay'])
    expect((await submit(plane, unchecked, { key: 'e13', tool: 'pay' })).outcome).toBe('committed')
    const empty = await plane.tasks.complete(plane.ownerId, unchecked.task_id, artifact('Done.'))
    expect(empty).toMatchObject({ verdict: 'needs_escalation', verification: { status: 'failed', checks: [] } })
    expect(
      (await refused(plane.tasks.commit(plane.ownerId, unchecked.task_id, { candidate_id: empty.artifacts[0]?.candidate_id ?? '' }))).code,
    ).toBe('wrong_state')

    const task = await startedTask(plane, ['pay', 'post'], { acceptance: paid, max_repairs: 1 })
    expect((await submit(plane, task, { key: 'e13-f', tool: 'post' })).outcome).toBe('committed')
    const first = await plane.tasks.complete(plane.ownerId, task.task_id, artifact('Done.'))
    expect(first).toMatchObject({ verdict: 'repair', task: { status: 'open', repairs: 1 }, verification: { status: 'failed' } })
    const second = await plane.tasks.complete(plane.ownerId, task.task_id, artifact('Done, really.'))
    expect(second).toMatchObject({ verdict: 'needs_escalation', task: { status: 'needs_escalation' } })
    const sql = plane.system.database.execute(`UPDATE tasks SET status = 'done', ended_at = now() WHERE id = $1::uuid`, [task.task_id])
    await expect(sql).rejects.toThrow()
  })

  it('is done only when it was verified and its owner committed exactly it', async () => {
    const checks = [
      ...paid.checks,
      { id: 'shape', kind: 'schema' as const, schema: { type: 'object', required: ['paid'], properties: { paid: { type: 'boolean' } } } },
      {
        id: 'seen',
        kind: 'tool' as const,
        tool: 'look.up',
        arguments: { text: 'receipt' },
        expect: { type: 'string', const: 'A receipt.' },
      },
    ]
    world.tool('look.up').script = [() => ({ type: 'done', observation: seen('A receipt.'), costMicros: null })]
    const task = await startedTask(plane, ['pay', 'look.up'], { acceptance: { contract_version: 1, checks } })
    expect((await submit(plane, task, { key: 'd1', tool: 'pay' })).outcome).toBe('committed')
    const wrong = await plane.tasks.complete(plane.ownerId, task.task_id, artifact('{"paid":"yes"}', 'application/json'))
    expect(wrong.verdict).toBe('repair')
    expect(wrong.verification?.checks.map(({ id, status, code }) => [id, status, code])).toEqual([
      ['paid', 'passed', 'passed'],
      ['shape', 'failed', 'does_not_fit'],
      ['seen', 'passed', 'passed'],
    ])
    const right = await plane.tasks.complete(plane.ownerId, task.task_id, artifact('{"paid":true}', 'application/json'))
    expect(right).toMatchObject({ verdict: 'verified', task: { status: 'verified' } })
    expect((await refused(submit(plane, task, { key: 'd2', tool: 'pay' }))).code).toBe('wrong_state')
    const candidateId = right.artifacts[0]?.candidate_id ?? ''
    const other = plane.tasks.commit(plane.ownerId, task.task_id, { candidate_id: wrong.artifacts[0]?.candidate_id ?? '' })
    expect((await refused(other)).code).toBe('conflict')
    for (const _ of [1, 2])
      expect((await plane.tasks.commit(plane.ownerId, task.task_id, { candidate_id: candidateId })).status).toBe('done')

    const evidence = await plane.tasks.evidence(plane.ownerId, task.task_id)
    expect(evidence).toMatchObject({ verification: { status: 'passed' }, final_commit: { by: plane.ownerId } })
    expect(evidence.candidate.map(({ hash }) => hash)).toEqual(right.artifacts.map(({ hash }) => hash))
    expect(evidence.proof.map(({ stream, whole }) => [stream.split(':')[0], whole])).toEqual([
      ['task', true],
      ['run', true],
    ])
    expect(evidence.effects.map(({ state }) => state)).toEqual(['done', 'done', 'done'])
    expect(evidence.inputs[0]?.text).toBe('Do it.')
    const fold = await plane.system.tasks.keeper.rebuild(task.task_id, null)
    expect(fold.state).toMatchObject({ status: 'done', budget: evidence.task.budget.max_cost_micros === null ? { spent_micros: 10 } : {} })
    expect(fold.state.budget).toMatchObject({ spent_micros: 10, reserved_micros: 0, used_actions: 3 })
    expect((await plane.tasks.cancel(plane.ownerId, task.task_id)).status).toBe('done')
  })

  it('is none while an action is open', async () => {
    const task = await startedTask(plane, ['mail.send'], { acceptance: paid })
    await submit(plane, task, { key: 'o1', tool: 'mail.send' })
    const { code, data } = await refused(plane.tasks.complete(plane.ownerId, task.task_id, artifact('Done.')))
    expect([code, data['open']]).toMatchObject(['wrong_state', [{ state: 'waiting' }]])
  })

  it('that needs a person can be tried once more by one', async () => {
    const task = await startedTask(plane, ['pay'], { acceptance: paid, max_repairs: 0 })
    expect((await plane.tasks.complete(plane.ownerId, task.task_id, artifact('Done.'))).verdict).toBe('needs_escalation')
    expect((await plane.tasks.start(plane.ownerId, task.task_id, { runtimes: ['external'] })).ordinal).toBe(2)
    expect((await submit(plane, task, { key: 'again', tool: 'pay' })).outcome).toBe('committed')
    expect((await plane.tasks.complete(plane.ownerId, task.task_id, artifact('Done.'))).verdict).toBe('verified')
  })
})

describe('an attempt', () => {
  it('is looked after by one process at a time, from its checkpoint and the events after it', async () => {
    await grantAll(plane, names, asks)
    const task = await startedTask(plane, ['pay'])
    const action = await submit(plane, task, { key: 'l1', tool: 'pay' })
    const { checkpoints } = await plane.tasks.evidence(plane.ownerId, task.task_id)
    expect(checkpoints).toHaveLength(1)
    await decide(plane, action, 'approve')
    const gate = createGate()
    const asked = Promise.withResolvers<void>()
    pay.lookUp = async () => {
      asked.resolve()
      await gate.opened
      return null
    }
    const one = recover(plane, task)
    await asked.promise
    expect(await recover(plane, task)).toBe(false)
    gate.open()
    expect(await one).toBe(true)
    expect(await plane.tasks.action(plane.ownerId, action.action_id)).toMatchObject({ outcome: 'committed' })
    expect(pay.happened).toHaveLength(1)
  })

  it('goes on by itself where somebody works: an answer, a crash and a look-up that comes back need no submitter', async () => {
    await grantAll(plane, names, asks)
    const waiting = await startedTask(plane, ['pay'])
    const asked = await submit(plane, waiting, { key: 'w1', tool: 'pay' })
    await grantAll(plane, names)
    const pending = await startedTask(plane, ['post'])
    post.lookUp = () => ({ type: 'unavailable' })
    const later = await submit(plane, pending, { key: 'w2', tool: 'post' })
    expect([asked.outcome, later.outcome]).toEqual(['waiting_for_approval', 'pending'])
    post.lookUp = () => null
    const working = await world.plane()
    await decide(working, asked, 'approve')
    for (const { action_id: id } of [asked, later]) {
      await eventually(async () => (await working.tasks.action(working.ownerId, id)).outcome === 'committed', `action ${id}`)
    }
    expect([pay.happened.length, post.happened.length]).toEqual([1, 1])
  })

  it('is not started where no runtime can do what the task needs, and says what is missing', async () => {
    const task = await plane.tasks.create(plane.ownerId, {
      ...(await plane.tasks.get(plane.ownerId, (await startedTask(plane, ['pay'])).task_id)),
      instruction: 'Handle with care.',
      inputs: [],
      acceptance: paidAcceptance,
      budget: { max_cost_micros: null, max_actions: 1 },
      risk: 'high',
      needs: {},
    })
    const { code, data } = await refused(plane.tasks.start(plane.ownerId, task.task_id, { runtimes: ['external'] }))
    expect([code, data]).toEqual(['wrong_state', { missing: { external: ['raw_event_provenance'] } }])
  })
})

const paidAcceptance = { contract_version: 1 as const, checks: [] }
