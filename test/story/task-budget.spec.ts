/** Delegated actions and what they may cost (cases E14, E15, E18). */
import { beforeAll, describe, expect, it } from 'vitest'
import { SubmitAction } from '#contracts'
import { createGate } from '../support/fake-upstream.ts'
import { happens, seen } from '../support/fake-target.ts'
import type { FakeTool } from '../support/fake-target.ts'
import { budgetOf, isFull, recover, restarted, taskStory } from '../support/task-story.ts'
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
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 30, reserved_micros: 0, used_actions: 3 })
  })

  it('without a known price is not affordable under a bound on cost', async () => {
    const task = await startedTask(plane, ['unpriced'], { budget: { max_cost_micros: 1000 } })
    expect(await submit(plane, task, { key: 'u1', tool: 'unpriced' })).toMatchObject({
      outcome: 'budget_exhausted',
      reason: 'price_unknown',
    })
    const answers = await Promise.all(
      [1, 5, 1000].map((cost) => submit(plane, task, { key: `u-${cost}`, tool: 'unpriced', cost_micros: cost, independent: true })),
    )
    for (const answer of answers) expect(answer).toMatchObject({ outcome: 'budget_exhausted', reason: 'price_unknown' })
    expect(world.tool('unpriced').happened).toEqual([])
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 0, reserved_micros: 0, used_actions: 0 })
  })

  it('without a known price goes where no cost is promised', async () => {
    const task = await startedTask(plane, ['unpriced'])
    expect(await submit(plane, task, { key: 'free', tool: 'unpriced', cost_micros: 5 })).toMatchObject({ outcome: 'committed' })
  })

  it('is reserved and charged what its submitter names above its price, and its price where that is more', async () => {
    const task = await startedTask(plane, ['pay'], { budget: { max_cost_micros: 300 } })
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        submit(plane, task, { key: `named-${index}`, tool: 'pay', cost_micros: 100, independent: true }),
      ),
    )
    const committed = answers.filter(({ outcome }) => outcome === 'committed')
    expect(committed.map(({ charged_micros: charged }) => charged)).toEqual([100, 100, 100])
    expect(answers.filter(({ outcome }) => outcome === 'budget_exhausted')).toHaveLength(9)
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 300, reserved_micros: 0, used_actions: 3 })
    const other = await startedTask(plane, ['pay'], { budget: { max_cost_micros: 30 } })
    expect(await submit(plane, other, { key: 'less', tool: 'pay', cost_micros: 1 })).toMatchObject({ charged_micros: 10 })
  })

  it('is charged what its target says that it cost, where it says so', async () => {
    const task = await startedTask(plane, ['pay'], { budget: { max_cost_micros: 300 } })
    pay.script = [() => ({ type: 'done', observation: seen('Paid.'), costMicros: 4 })]
    expect(await submit(plane, task, { key: 'own', tool: 'pay', cost_micros: 100 })).toMatchObject({ charged_micros: 4 })
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 4, reserved_micros: 0 })
  })

  it('E15: a cost of -1, 0, 1.5 or true is invalid', () => {
    for (const cost of [-1, 0, 1.5, true, '1', null]) {
      expect(SubmitAction.safeParse({ key: 'e15', tool: 'pay', arguments: {}, cost_micros: cost }).success, String(cost)).toBe(false)
    }
    expect(SubmitAction.safeParse({ key: 'e15', tool: 'pay', arguments: {}, cost_micros: 1 }).success).toBe(true)
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
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 10, reserved_micros: 0 })
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
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 0, reserved_micros: 10 })
    pay.lookUp = () => null
    const after = await restarted(world)
    await recover(after, task)
    expect((await submit(after, task, { key: 'e18-c', tool: 'pay' })).outcome).toBe('committed')
    gate.open()
    expect((await stuck).outcome).toBe('committed')
    expect(pay.happened).toHaveLength(1)
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 10, reserved_micros: 0 })
  })
})
