/** What follows the end of a loop's attempt: judged by one process, once, and gone on with wherever whoever did it is gone. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CreateTask, StartAttempt } from '#contracts'
import type { TaskView } from '#contracts'
import type { AttemptRow } from '#kernel/ports/task-store'
import { createGate, DONE, finishChunk, startFakeUpstream, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeUpstream, Gate } from '../support/fake-upstream.ts'
import { answer, eventually } from '../support/story.ts'
import { isFull, refused } from '../support/task-story.ts'
import { characterOf, grantAll, startedTask, TaskWorld } from '../support/task-world.ts'
import type { Plane } from '../support/task-world.ts'

let world: TaskWorld
let upstream: FakeUpstream
let plane: Plane
beforeAll(async () => {
  upstream = await startFakeUpstream()
  world = await TaskWorld.open({ OPENAI_BASE_URL: upstream.baseUrl, LINGTAI_MODEL: 'test-model', OPENAI_API_KEY: 'test-key' })
  await grantAll(await world.plane({ works: false }), ['look.up'])
})
afterAll(async () => {
  try {
    const last = await world.plane({ works: false })
    expect((await last.system.conversation.verify.verifyAll()).faults).toEqual([])
  } finally {
    await world.close()
    await upstream.close()
  }
})
beforeEach(async () => {
  upstream.unscript()
  plane = await opened()
})
afterEach(async () => {
  for (const each of planes.splice(0)) await each.system.close()
})

const planes: Plane[] = []
/** A process that ends with the test. */
async function opened(options: { works?: boolean } = {}): Promise<Plane> {
  const made = await world.plane(options)
  planes.push(made)
  return made
}

const shaped: CreateTask['acceptance'] = { contract_version: 1, checks: [{ id: 'shape', kind: 'schema', schema: { type: 'object' } }] }
const judged: CreateTask['acceptance'] = { contract_version: 1, checks: [{ id: 'ok', kind: 'model', criterion: 'It is done.' }] }
const held = (beforeHeaders: Gate, text: string) => ({
  headers: { 'content-type': 'text/event-stream' },
  beforeHeaders,
  steps: [textChunk(text), finishChunk('stop'), usageChunk(9, 9), DONE],
})

async function begun(acceptance: CreateTask['acceptance']): Promise<TaskView> {
  const task = await plane.tasks.create(
    plane.ownerId,
    CreateTask.parse({ character_id: await characterOf(plane), instruction: 'Do it.', budget: {}, acceptance }),
  )
  await plane.tasks.start(plane.ownerId, task.task_id, StartAttempt.parse({ runtimes: ['builtin'] }))
  return task
}

const attempts = ({ system }: Plane, task: TaskView): Promise<AttemptRow[]> => system.tasks.store.attempts(task.task_id)
const verified = (at: Plane, task: TaskView): Promise<unknown> =>
  eventually(async () => (await at.tasks.get(at.ownerId, task.task_id)).status === 'verified', 'a verified result')

/** From now on the process dies whenever it is about to begin an attempt. */
function diesBeforeTheNext({ system }: Plane): () => Promise<unknown> {
  let deaths = 0
  system.tasks.keeper.start = () => {
    deaths += 1
    return Promise.reject(new Error('the process is gone'))
  }
  return () => eventually(async () => deaths > 0, 'the death')
}

/** Another process, after one is gone for good: what that one held is nobody's by now. */
async function after(gone: Plane): Promise<Plane> {
  await gone.system.close()
  const next = await opened({ works: false })
  await next.system.database.execute(`UPDATE task_attempts SET conclusion_until = clock_timestamp() - interval '1 second'
                                      WHERE conclusion_until IS NOT NULL AND ended_at IS NULL`)
  return next
}

const works = ({ system }: Plane): Promise<unknown> => system.lifecycle.startWork('all')

const count = async ({ system }: Plane, task: TaskView, type: 'candidate.sealed' | 'candidate.verified'): Promise<number> =>
  (await system.log.read(`task:${task.task_id}`, { types: [type] })).length

describe('a loop’s attempt', () => {
  it('whose candidate has to be mended is followed, though the process dies after the verdict; not while the switch is set', async () => {
    const gate = createGate()
    upstream.script(held(gate, 'not json'), answer('{}'))
    const task = await begun(shaped)
    const died = diesBeforeTheNext(plane)
    gate.open()
    await died()
    expect(await attempts(plane, task)).toMatchObject([{ status: 'interrupted' }])
    const flag = { scope: 'owner' as const, scopeId: plane.ownerId, by: plane.ownerId }
    const next = await after(plane)
    await next.system.governance.killSwitch.set(flag)
    await works(next)
    await next.system.tasks.sweeper.sweep()
    expect(await next.system.tasks.store.unfollowedAttempts({ attemptId: null, limit: 9 })).toEqual([])
    expect(await attempts(next, task)).toHaveLength(1)
    await next.system.governance.killSwitch.lift(flag)
    await verified(next, task)
    expect((await attempts(next, task)).map(({ status }) => status)).toEqual(['interrupted', 'candidate_verified'])
    expect(upstream.requests.at(-1)?.bodyText).toContain('shape (schema): not_json')
  })

  it('that its process left is followed, though that one dies before the next begins', async () => {
    const gate = createGate()
    upstream.script(held(gate, '{}'), answer('{}'))
    const sent = upstream.requests.length
    const task = await begun(shaped)
    await upstream.request(sent)
    const died = diesBeforeTheNext(plane)
    const next = await after(plane)
    await died()
    gate.open()
    await works(next)
    await verified(next, task)
    expect((await attempts(next, task)).map(({ status }) => status)).toEqual(['interrupted', 'candidate_verified'])
  })

  it('that nobody can carry on with any more is left to a person', async () => {
    const gate = createGate()
    upstream.script(held(gate, 'not json'))
    const task = await begun(shaped)
    const died = diesBeforeTheNext(plane)
    gate.open()
    await died()
    const next = await after(plane)
    const { runtimes } = next.system.tasks.keeper
    for (const runtime of runtimes) runtime.available = false
    await next.system.tasks.sweeper.start()
    await eventually(async () => (await next.tasks.get(next.ownerId, task.task_id)).status === 'needs_escalation', 'a person is asked')
    await next.system.tasks.sweeper.stop()
  })

  it('has one candidate, which the next process judges where the one that sealed it is gone', async () => {
    const gate = createGate()
    upstream.script(answer('Done.'), held(gate, '{"meets":true}'), answer('{"meets":true}'))
    const sent = upstream.requests.length
    const task = await begun(judged)
    await upstream.request(sent + 1)
    plane.system.tasks.store.insertVerification = () => Promise.reject(new Error('the process is gone'))
    gate.open()
    const next = await after(plane)
    expect(await count(next, task, 'candidate.verified')).toBe(0)
    await works(next)
    await verified(next, task)
    expect([await count(next, task, 'candidate.sealed'), await count(next, task, 'candidate.verified')]).toEqual([1, 1])
    const second = next.system.database.execute(
      `INSERT INTO artifacts (id, owner_id, task_id, attempt_id, candidate_id, ordinal, content_id, hash, media_type, producer,
                              classification, retention_policy, trust, created_at)
       SELECT gen_random_uuid(), owner_id, task_id, attempt_id, gen_random_uuid(), ordinal, content_id, hash, media_type, producer,
              classification, retention_policy, trust, created_at FROM artifacts WHERE task_id = $1::uuid`,
      [task.task_id],
    )
    await expect(second).rejects.toThrow(/has its candidate/)
  })

  it('is judged by one process while that one lives', async () => {
    const gate = createGate()
    upstream.script(answer('Done.'), held(gate, '{"meets":true}'))
    const sent = upstream.requests.length
    const task = await begun(judged)
    await upstream.request(sent + 1)
    const { store, sweeper } = plane.system.tasks
    const [{ id } = { id: '' }] = await attempts(plane, task)
    const other = { holder: 'another process', alone: false }
    expect(await store.claimConclusion(id, other)).toBeNull()
    expect(await store.overtakenAttempts(other, 9)).toEqual([])
    if (isFull) {
      const replica = await opened({ works: false })
      await replica.system.tasks.sweeper.start()
      await replica.system.tasks.sweeper.stop()
    }
    await sweeper.sweep()
    gate.open()
    await verified(plane, task)
    expect(await count(plane, task, 'candidate.sealed')).toBe(1)
    expect(upstream.requests.slice(sent)).toHaveLength(2)
  })
})

describe('a candidate that somebody hands over', () => {
  const given = { artifacts: [{ media_type: 'text/plain' as const, text: 'Done.' }] }

  it('is not looked at beside another one of the attempt', async () => {
    const gate = createGate()
    upstream.script(held(gate, '{"meets":true}'))
    const sent = upstream.requests.length
    const task = await startedTask(plane, [], { acceptance: judged })
    const first = plane.tasks.complete(plane.ownerId, task.task_id, given)
    await upstream.request(sent)
    expect((await refused(plane.tasks.complete(plane.ownerId, task.task_id, given))).code).toBe('wrong_state')
    gate.open()
    expect((await first).verdict).toBe('verified')
    expect(await count(plane, task, 'candidate.sealed')).toBe(1)
  })

  it('is none of an attempt that a loop drives', async () => {
    const gate = createGate()
    upstream.script(held(gate, '{}'))
    const task = await begun(shaped)
    expect((await refused(plane.tasks.complete(plane.ownerId, task.task_id, given))).code).toBe('wrong_state')
    gate.open()
    await verified(plane, task)
  })
})
