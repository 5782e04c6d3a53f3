/** What an attempt that others drive waits for, as its run's own record tells of it ("Events"). */
import { beforeAll, describe, expect, it } from 'vitest'
import type { EventPayload, TaskView } from '#contracts'
import { doesAndHangs, isFull, names, recover, refused, restarted, taskStory, asks } from '../support/task-story.ts'
import { decide, grantAll, startedTask, submit } from '../support/task-world.ts'
import type { Plane, TaskWorld } from '../support/task-world.ts'
import type { FakeTool } from '../support/fake-target.ts'

const story = taskStory()
let plane: Plane
let world: TaskWorld
let pay: FakeTool
beforeAll(() => {
  ;({ plane, world, pay } = story())
})

const artifact = { artifacts: [{ media_type: 'text/plain' as const, text: 'Done.' }] }

async function runOf(task: TaskView) {
  const { attempts, checkpoints } = await plane.tasks.evidence(plane.ownerId, task.task_id)
  const id = attempts.at(-1)?.attempt_id ?? ''
  const row = await plane.system.conversation.runStore.get(id)
  if (!row) throw new Error('an attempt is a run')
  const stored = await plane.system.log.read(`run:${id}`, {})
  return { id, row, checkpoints, told: stored.map(({ record }) => record) }
}

/** The run's events as short words; and that each rests on a checkpoint that is there, and each resumption on the one before it. */
async function told(task: TaskView): Promise<string[]> {
  const { checkpoints, told: records } = await runOf(task)
  let waiting: string | null = null
  return records.map(({ type, payload }) => {
    if (type === 'run.suspended') {
      const { reason, checkpoint_id: id } = payload as EventPayload<'run.suspended'>
      expect(waiting).toBeNull()
      expect(checkpoints.map((checkpoint) => checkpoint.checkpoint_id)).toContain(id)
      waiting = id
      return reason
    }
    if (type === 'run.resumed') {
      const { fence, checkpoint_id: id } = payload as EventPayload<'run.resumed'>
      expect(id).toBe(waiting)
      expect(fence).toBeGreaterThan(0)
      waiting = null
      return 'resumed'
    }
    return type
  })
}

describe('an attempt that waits for its user', () => {
  it('suspends its run with a checkpoint, and the answer resumes it', async () => {
    const task = await startedTask(plane, ['pay'])
    expect(await told(task)).toEqual(['run.requested', 'waiting_for_user'])
    expect((await runOf(task)).row).toMatchObject({ state: 'suspended', reason: 'waiting_for_user', holder: null })
    const hanging = doesAndHangs(pay, { type: 'failed', code: 'not_there', observation: null })
    const out = submit(plane, task, { key: 'w-1', tool: 'pay' })
    await hanging.sent
    expect(await told(task)).toEqual(['run.requested', 'waiting_for_user', 'resumed'])
    expect((await runOf(task)).row).toMatchObject({ state: 'queued', reason: null })
    hanging.open()
    await out
    expect(await told(task)).toEqual(['run.requested', 'waiting_for_user', 'resumed', 'waiting_for_user'])
    expect((await runOf(task)).row).toMatchObject({ state: 'suspended', reason: 'waiting_for_user' })
  })

  it('says what it waits for instead, and when that is there', async () => {
    await grantAll(plane, names, asks)
    const task = await startedTask(plane, ['pay'])
    const action = await submit(plane, task, { key: 'w-2', tool: 'pay' })
    const asked = ['run.requested', 'waiting_for_user', 'resumed', 'waiting_for_approval']
    expect(await told(task)).toEqual(asked)
    expect((await runOf(task)).row).toMatchObject({ state: 'suspended', reason: 'waiting_for_approval' })
    await decide(plane, action, 'approve')
    await recover(plane, task)
    expect(await told(task)).toEqual([...asked, 'resumed', 'waiting_for_user'])
    expect(pay.happened).toHaveLength(1)
  })

  it('is resumed by a candidate too, and waits again where that is not good enough', async () => {
    const acceptance = { contract_version: 1 as const, checks: [{ id: 'paid', kind: 'committed' as const, tool: 'pay', at_least: 1 }] }
    const task = await startedTask(plane, ['pay'], { acceptance, max_repairs: 1 })
    expect((await plane.tasks.complete(plane.ownerId, task.task_id, artifact)).verdict).toBe('repair')
    const again = ['run.requested', 'waiting_for_user', 'resumed', 'waiting_for_user']
    expect(await told(task)).toEqual(again)
    await submit(plane, task, { key: 'w-3', tool: 'pay' })
    expect((await plane.tasks.complete(plane.ownerId, task.task_id, artifact)).verdict).toBe('verified')
    expect(await told(task)).toEqual([...again, 'resumed', 'waiting_for_user', 'resumed', 'run.finished'])
    expect((await runOf(task)).row).toMatchObject({ state: 'finished', reason: null })
  })

  it('is cancelled where it waits, by its task and by its run', async () => {
    const task = await startedTask(plane, ['pay'])
    expect((await plane.tasks.cancel(plane.ownerId, task.task_id)).status).toBe('cancelled')
    expect(await told(task)).toEqual(['run.requested', 'waiting_for_user', 'run.interrupted'])
    expect((await runOf(task)).row).toMatchObject({ state: 'interrupted', reason: 'cancelled' })

    const other = await startedTask(plane, ['pay'])
    const { id } = await runOf(other)
    await plane.system.conversation.runs.cancel(plane.ownerId, id)
    expect(await told(other)).toEqual(['run.requested', 'waiting_for_user', 'run.interrupted'])
    await plane.system.tasks.keeper.overtake(id)
    expect((await plane.tasks.attempt(plane.ownerId, id)).status).toBe('interrupted')
    expect((await refused(submit(plane, other, { key: 'w-4', tool: 'pay' }))).code).toBe('wrong_state')
    expect(pay.happened).toEqual([])
  })

  it('is suspended and resumed once, however often and wherever that is said at once', async () => {
    const task = await startedTask(plane, ['pay'])
    const { id } = await runOf(task)
    // The light tier is one process: there the two are two requests.
    const other = isFull ? await world.plane({ works: false }) : plane
    await Promise.all([plane, other, plane, other].map((at) => at.system.tasks.keeper.sync(id)))
    expect(await told(task)).toEqual(['run.requested', 'waiting_for_user'])
    await Promise.all([plane, other, plane, other].map((at) => submit(at, task, { key: 'w-5', tool: 'pay' })))
    await Promise.all([plane, other].map((at) => at.system.tasks.keeper.sync(id)))
    const events = await told(task)
    expect(events.slice(0, 3)).toEqual(['run.requested', 'waiting_for_user', 'resumed'])
    expect(events.at(-1)).toBe('waiting_for_user')
    expect(pay.happened).toHaveLength(1)
    expect((await runOf(task)).row).toMatchObject({ state: 'suspended', reason: 'waiting_for_user' })
  })

  it('is found where it stood after a crash in between, and nothing is half written', async () => {
    const task = await startedTask(plane, ['pay'])
    const { id } = await runOf(task)
    const broken = await world.plane({ works: false })
    const { store } = broken.system.tasks
    const park = store.park.bind(store)
    store.park = async (...given) => {
      await park(...given)
      throw new Error('the process is gone')
    }
    await expect(submit(broken, task, { key: 'w-6', tool: 'pay' })).rejects.toThrow('the process is gone')
    // The action was done; that the run waits again was not written, nor anything of it.
    const before = ['run.requested', 'waiting_for_user', 'resumed']
    expect(await told(task)).toEqual(before)
    expect((await runOf(task)).row).toMatchObject({ state: 'queued', reason: null })
    const after = await restarted(world)
    expect((await after.system.tasks.store.queuedAttempts(10)).map((attempt) => attempt.id)).toContain(id)
    await recover(after, task)
    expect(await told(task)).toEqual([...before, 'waiting_for_user'])
    expect(pay.happened).toHaveLength(1)
    await expect(startedTask(broken, ['pay'])).rejects.toThrow('the process is gone')
  })
})
