import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { EventPayload } from '#contracts'
import { startedTask, TaskWorld } from '../support/task-world.ts'
import type { Plane } from '../support/task-world.ts'

/* The runs of delegated work, as their own streams tell of them ("Events"). */
vi.setConfig({ testTimeout: 120_000 })

let world: TaskWorld
let plane: Plane

beforeAll(async () => {
  world = await TaskWorld.open()
  plane = await world.plane({ works: false })
})
afterAll(() => world.close())

it('an attempt that is stuck fails, says so, and is not taken up again', async () => {
  const task = await startedTask(plane, ['pay'], {
    acceptance: { contract_version: 1, checks: [{ id: 'paid', kind: 'committed', tool: 'pay', at_least: 1 }] },
    max_repairs: 0,
  })
  const ended = await plane.tasks.complete(plane.ownerId, task.task_id, { artifacts: [{ media_type: 'text/plain', text: 'Done.' }] })
  expect(ended.verdict).toBe('needs_escalation')
  const { attempts } = await plane.tasks.evidence(plane.ownerId, task.task_id)
  const runId = attempts[0]?.attempt_id ?? ''
  const row = await plane.system.conversation.runStore.get(runId)
  expect(row).toMatchObject({ kind: 'delegated', seated: false, state: 'failed', reason: 'stuck' })
  const events = await plane.system.log.read(`run:${runId}`)
  expect(events.map(({ record }) => record.type)).toEqual(['run.requested', 'run.suspended', 'run.resumed', 'run.failed'])
  for (const { record } of events) expect(record).toMatchObject({ run_id: runId, owner_id: plane.ownerId, trace_id: row?.trace_id })
  expect(events.at(-1)?.record.payload as EventPayload<'run.failed'>).toMatchObject({ code: 'stuck', candidate_id: null })
  expect(await plane.system.conversation.runStore.requeue(runId)).toBe(false)
  expect(await plane.system.conversation.runStore.takeQueued(runId, 'me')).toBeNull()
})
