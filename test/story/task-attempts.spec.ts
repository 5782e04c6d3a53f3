/** Attempts at delegated work: one process at a time, on its own, by who can. */
import { beforeAll, describe, expect, it } from 'vitest'
import { createGate } from '../support/fake-upstream.ts'
import type { FakeTool } from '../support/fake-target.ts'
import { eventually } from '../support/story.ts'
import { asks, names, recover, refused, taskStory } from '../support/task-story.ts'
import { decide, grantAll, startedTask, submit } from '../support/task-world.ts'
import type { Plane, TaskWorld } from '../support/task-world.ts'

const story = taskStory()
let plane: Plane
let world: TaskWorld
let pay: FakeTool
let post: FakeTool
beforeAll(() => {
  ;({ plane, world, pay, post } = story())
})

describe('an attempt', () => {
  it('is looked after by one process at a time, from its checkpoint and the events after it', async () => {
    await grantAll(plane, names, asks)
    const task = await startedTask(plane, ['pay'])
    const action = await submit(plane, task, { key: 'l1', tool: 'pay' })
    const { checkpoints } = await plane.tasks.evidence(plane.ownerId, task.task_id)
    // Where it waited for its first action, and where for the answer.
    expect(checkpoints).toHaveLength(2)
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
      acceptance: { contract_version: 1, checks: [] },
      budget: { max_cost_micros: null, max_actions: 1 },
      risk: 'high',
      needs: {},
    })
    const { code, data } = await refused(plane.tasks.start(plane.ownerId, task.task_id, { runtimes: ['external'] }))
    expect([code, data]).toEqual(['wrong_state', { missing: { external: ['raw_event_provenance'] } }])
  })
})
