/** Delegated actions that were sent: lost, read back, late (cases E7–E9, E16, E20). */
import { beforeAll, describe, expect, it } from 'vitest'
import type { EffectOutcome } from '#kernel/ports/effect-target'
import { canonicalJson } from '#kernel/record/canonical-json'
import { sha256Hex } from '#kernel/record/chain'
import { happens, seen } from '../support/fake-target.ts'
import type { FakeTool } from '../support/fake-target.ts'
import { budgetOf, doesAndHangs, recover, restarted, taskStory } from '../support/task-story.ts'
import { startedTask, submit } from '../support/task-world.ts'
import type { Plane, TaskWorld } from '../support/task-world.ts'

const story = taskStory()
let plane: Plane
let world: TaskWorld
let pay: FakeTool
let post: FakeTool
beforeAll(() => {
  ;({ plane, world, pay, post } = story())
})

describe('an action', () => {
  it('E7: the receipt is lost, restart, resubmit: unknown, dispatches nothing; fresh authoritative proof settles it', async () => {
    const task = await startedTask(plane, ['pay'])
    const hanging = doesAndHangs(pay)
    const lost = submit(plane, task, { key: 'e7', tool: 'pay' })
    const call = await hanging.sent
    const after = await restarted(world)
    expect((await submit(after, task, { key: 'e7', tool: 'pay' })).outcome).toBe('unknown')
    expect((await submit(after, task, { key: 'e7', tool: 'pay' })).outcome).toBe('unknown')
    expect(pay.happened).toHaveLength(1)
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 10, reserved_micros: 0 })
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
    const { effects } = plane.system.conversation.actions
    const { items } = await effects.unknown(plane.ownerId)
    expect(items.find(({ id }) => id === action.effect_id)).toMatchObject({ state: 'unknown', settled_at: null })
    const told = await effects.reconcile(plane.ownerId, action.effect_id ?? '', { as: 'failed' })
    expect(told).toMatchObject({ state: 'reconciled_failed', settled_at: expect.any(String) })
    await recover(plane, task)
    expect(await plane.tasks.action(plane.ownerId, action.action_id)).toMatchObject({ outcome: 'failed', reason: 'reconciled_failed' })
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 0, reserved_micros: 0 })
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
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 10, reserved_micros: 0, used_actions: 1 })
  })

  it('E8: a fresh one whose look-up is unavailable is pending; what depends on it waits; later it is done, once', async () => {
    const task = await startedTask(plane, ['pay', 'post'])
    pay.lookUp = () => ({ type: 'unavailable' })
    const action = await submit(plane, task, { key: 'e8-f', tool: 'pay' })
    expect(action.outcome).toBe('pending')
    expect((await submit(plane, task, { key: 'e8-n', tool: 'post' })).outcome).toBe('pending')
    expect([pay.happened, post.happened]).toEqual([[], []])
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 0, reserved_micros: 10 })
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
    const after = await restarted(world)
    await recover(after, task)
    expect((await submit(after, task, { key: 'e9', tool: 'pay' })).outcome).toBe('unknown')
    expect(pay.happened).toHaveLength(1)
    hanging.open()
    await lost
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
      const after = await restarted(world)
      expect((await submit(after, task, { key, tool: 'pay' })).outcome).toBe('committed')
      hanging.open()
      expect((await late).outcome).toBe('committed')
      expect((await submit(after, task, { key, tool: 'pay' })).outcome).toBe('committed')
      expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 10, reserved_micros: 0 })
      pay.lookUp = () => null
    }
  })

  it('E16: a late receipt settles what was lost meanwhile, once', async () => {
    const task = await startedTask(plane, ['pay'])
    const hanging = doesAndHangs(pay, { type: 'done', observation: seen('Paid, late.'), costMicros: 7 })
    const late = submit(plane, task, { key: 'e16-r', tool: 'pay' })
    await hanging.sent
    const after = await restarted(world)
    expect((await submit(after, task, { key: 'e16-r', tool: 'pay' })).outcome).toBe('unknown')
    hanging.open()
    expect((await late).outcome).toBe('committed')
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 10, reserved_micros: 0 })
    expect(pay.happened).toHaveLength(1)
  })

  it('E20: a crash on the third of one step: the first two are read back, not run again', async () => {
    const task = await startedTask(plane, ['pay', 'post'])
    expect((await submit(plane, task, { key: 'e20-1', tool: 'post' })).outcome).toBe('committed')
    expect((await submit(plane, task, { key: 'e20-2', tool: 'post' })).outcome).toBe('committed')
    const hanging = doesAndHangs(pay)
    const third = submit(plane, task, { key: 'e20-3', tool: 'pay' })
    await hanging.sent
    const after = await restarted(world)
    await recover(after, task)
    const again = []
    for (const [index, tool] of ['post', 'post', 'pay'].entries()) again.push(await submit(after, task, { key: `e20-${index + 1}`, tool }))
    expect(again.map(({ outcome }) => outcome)).toEqual(['committed', 'committed', 'unknown'])
    expect([post.happened.length, pay.happened.length]).toEqual([2, 1])
    hanging.open()
    await third
  })
})
