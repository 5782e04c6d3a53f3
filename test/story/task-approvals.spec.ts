/** Delegated actions as they are judged: denied, asked about, answered (cases E1–E4, E17, E19). */
import { beforeAll, describe, expect, it } from 'vitest'
import { PolicyDecision } from '#contracts'
import type { FakeTool } from '../support/fake-target.ts'
import { asks, budgetOf, decisions, forbids, names, recover, refused, restarted, taskStory } from '../support/task-story.ts'
import { approvalOf, decide, grantAll, startedTask, submit } from '../support/task-world.ts'
import type { Plane, TaskWorld } from '../support/task-world.ts'

const story = taskStory()
let plane: Plane
let world: TaskWorld
let pay: FakeTool
beforeAll(() => {
  ;({ plane, world, pay } = story())
})

describe('an action', () => {
  it('E1: policy DENY: no effect, nothing spent, a recorded refusal', async () => {
    await grantAll(plane, names, forbids)
    const task = await startedTask(plane, ['pay'])
    const action = await submit(plane, task, { key: 'e1', tool: 'pay' })
    expect(action).toMatchObject({ outcome: 'denied', reason: 'class_rule', effect_id: null, charged_micros: 0 })
    expect(action.observation).toMatchObject({ status: 'denied', diagnostics: 'class_rule', structured_result: null })
    expect(pay.happened).toEqual([])
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 0, reserved_micros: 0, used_actions: 0 })
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
    const after = await restarted(world)
    await grantAll(after, names)
    expect((await submit(after, task, { key: 'e2-1', tool: 'pay' })).outcome).toBe('waiting_for_approval')
    const second = await submit(after, task, { key: 'e2-2', tool: 'pay' })
    expect(second).toMatchObject({ outcome: 'waiting_for_approval', approval_id: null })
    expect(pay.happened).toEqual([])
    await decide(after, first, 'approve')
    await recover(after, task)
    expect(await after.tasks.action(after.ownerId, first.action_id)).toMatchObject({ outcome: 'committed' })
    expect(await after.tasks.action(after.ownerId, second.action_id)).toMatchObject({ outcome: 'committed' })
    expect(await decisions(plane, task, first)).toEqual(['REQUIRE_APPROVAL', 'CONSTRAINED_ALLOW'])
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
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 0, reserved_micros: 0 })
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

  it('E5: a yes for one version of a tool sends nothing to the next, bound or not', async () => {
    await grantAll(plane, names, asks)
    const { contract } = pay
    const task = await startedTask(plane, ['pay'])
    const asked = { key: 'e5-asked', tool: 'pay', independent: true }
    const bound = { key: 'e5-bound', tool: 'pay', independent: true }
    const waiting = await submit(plane, task, asked)
    pay.lookUp = () => ({ type: 'unavailable' })
    await decide(plane, await submit(plane, task, bound), 'approve')
    expect((await submit(plane, task, bound)).outcome).toBe('pending')
    try {
      pay.contract = { ...contract, description: 'Pays somebody else.', version: 'f'.repeat(64) }
      pay.lookUp = () => null
      expect(await submit(plane, task, bound)).toMatchObject({ outcome: 'denied', reason: 'tool_changed', charged_micros: 0 })
      await decide(plane, waiting, 'approve')
      expect(await submit(plane, task, asked)).toMatchObject({ outcome: 'denied', reason: 'approval_does_not_fit' })
      expect(pay.happened).toEqual([])
    } finally {
      pay.contract = contract
    }
  })
})
