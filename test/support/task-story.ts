/** What the stories of delegated work share: one plane beside two tools that count what really happened to them. */
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { LingtaiError } from '#contracts'
import type { ActionView, ErrorCode, EventPayload, TaskView } from '#contracts'
import type { EffectCall, EffectOutcome } from '#kernel/ports/effect-target'
import { fullTierServicesIfAny } from './environment.ts'
import { brought, happening, happens } from './fake-target.ts'
import type { FakeTool } from './fake-target.ts'
import { createGate } from './fake-upstream.ts'
import { claimsRunOut, grantAll, TaskWorld } from './task-world.ts'
import type { Plane } from './task-world.ts'

export const names = ['look.up', 'pay', 'post', 'unpriced', 'mail.send']
export const isFull = fullTierServicesIfAny() !== undefined

export type TaskStory = {
  world: TaskWorld
  /** The plane that most of a test happens at; it has no background work, so that nothing happens behind the test's back. */
  plane: Plane
  pay: FakeTool
  post: FakeTool
}

/** Opens the world for a file's tests, sets its tools back before each, and verifies the record after each. */
export function taskStory(): () => TaskStory {
  let story: TaskStory | undefined
  const opened = (): TaskStory => {
    if (!story) throw new Error('the world of tasks is not open yet')
    return story
  }
  beforeAll(async () => {
    const world = await TaskWorld.open()
    story = { world, plane: await world.plane({ works: false }), pay: world.tool('pay'), post: world.tool('post') }
  })
  afterAll(async () => {
    const { plane, world } = opened()
    try {
      expect((await plane.system.conversation.verify.verifyAll()).faults).toEqual([])
    } finally {
      await world.close()
    }
  })
  beforeEach(async () => {
    for (const tool of opened().world.tools.tools.values()) {
      tool.happened = []
      tool.lookUp = () => null
      tool.script = [happening(tool, brought(`${tool.contract.name} did it`))]
    }
    await grantAll(opened().plane, names)
  })
  return opened
}

/** It happens, and its answer waits until the gate opens. */
export function doesAndHangs(tool: FakeTool, outcome: EffectOutcome = { type: 'unknown', code: 'connection_lost' }) {
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

export const asks = { class_rules: [{ capability: 'reversible_local' as const, verdict: 'ask' as const }] }
export const forbids = { class_rules: [{ capability: 'reversible_local' as const, verdict: 'forbidden' as const }] }

export const budgetOf = async (plane: Plane, task: Pick<TaskView, 'task_id'>): Promise<TaskView['budget']> =>
  (await plane.tasks.get(plane.ownerId, task.task_id)).budget

export async function decisions(plane: Plane, task: TaskView, action: ActionView): Promise<string[]> {
  const events = await plane.system.log.read(`task:${task.task_id}`, { types: ['action.decided'] })
  return events
    .map(({ record }) => record.payload as EventPayload<'action.decided'>)
    .filter(({ action_id: id }) => id === action.action_id)
    .map(({ decision }) => decision)
}

export async function refused(work: Promise<unknown>): Promise<{ code: ErrorCode; data: Readonly<Record<string, unknown>> }> {
  const error = await work.then(
    () => new Error('it was not refused'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof LingtaiError)) throw error
  return { code: error.code, data: error.data }
}

/** What a restart finds: the process before is gone, and its claims have run out. */
export async function restarted(world: TaskWorld): Promise<Plane> {
  const next = await world.plane({ works: false })
  await claimsRunOut(next)
  return next
}

export const recover = async (at: Plane, task: Pick<TaskView, 'task_id'>): Promise<boolean> => {
  const { items } = await at.tasks.attempts(at.ownerId, task.task_id)
  return at.system.tasks.keeper.recover(items.at(-1)?.attempt_id ?? '')
}
