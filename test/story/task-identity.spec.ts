/** Delegated actions by their names: the same one happens once, whoever asks (cases E5, E6, E10, E22). */
import { beforeAll, describe, expect, it } from 'vitest'
import { SubmitAction } from '#contracts'
import type { FakeTool } from '../support/fake-target.ts'
import { eventually } from '../support/story.ts'
import { budgetOf, isFull, refused, taskStory } from '../support/task-story.ts'
import { startedTask, submit } from '../support/task-world.ts'
import type { Plane, TaskWorld } from '../support/task-world.ts'

const story = taskStory()
let plane: Plane
let world: TaskWorld
let pay: FakeTool
beforeAll(() => {
  ;({ plane, world, pay } = story())
})

describe('an action', () => {
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
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 10, reserved_micros: 0, used_actions: 1 })
  })

  it('E10: 12 concurrent submissions of one action: one reservation, one effect, spent once', async () => {
    const task = await startedTask(plane, ['pay'])
    const answers = await Promise.all(Array.from({ length: 12 }, () => submit(plane, task, { key: 'e10', tool: 'pay' })))
    expect(new Set(answers.map(({ action_id: id }) => id)).size).toBe(1)
    expect(answers.every(({ outcome }) => outcome === 'committed')).toBe(true)
    expect(pay.happened).toHaveLength(1)
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 10, reserved_micros: 0, used_actions: 1 })
    const dispatched = await plane.system.log.read(`task:${task.task_id}`, { types: ['action.dispatched'] })
    expect(dispatched).toHaveLength(1)
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
