/** What a character handed on, when its parent, its task or the character itself is over. */
import { beforeAll, describe, expect, it } from 'vitest'
import type { TaskView } from '#contracts'
import { delegating, delegationStory, found, handsOn, held } from '../support/delegation-world.ts'
import type { DelegationWorld } from '../support/delegation-world.ts'
import { createGate } from '../support/fake-upstream.ts'
import { seen } from '../support/fake-target.ts'
import { answer, call, eventually, follow } from '../support/story.ts'
import type { TestSystem } from '../support/system.ts'
import { calling } from '../support/tool-calls.ts'

const story = delegationStory()
let world: DelegationWorld
let system: TestSystem
beforeAll(() => {
  world = story()
  system = world.system
})

describe('a parent that is cancelled', () => {
  it('takes what it handed on with it, however deep', async () => {
    const gate = createGate()
    world.thinks({
      character: ({ results }) =>
        results === 0 ? delegating({ instruction: 'Hand it on.', tools: ['delegate'] }) : held(gate, answer('It is under way.')),
      helper: ({ body, results }) => {
        if (body.includes('Sleep.') && !body.includes('Hand it on.')) return held(gate, found)
        return results === 0 ? delegating({ instruction: 'Sleep.' }) : held(gate, found)
      },
    })
    const accepted = await world.ask('Find somebody.')
    const child = await eventually(async () => (await world.childrenOf(accepted.run_id))[0], 'a task')
    const childRun = await world.runOf(child.task_id)
    const grandchild = await eventually(async () => (await world.childrenOf(childRun))[0], 'a task of that task')
    await call(system, 'POST', `/v1/runs/${accepted.run_id}/cancel`)
    const [first, second] = [await world.reaches(child.task_id, 'cancelled'), await world.reaches(grandchild.task_id, 'cancelled')]
    expect([first.status, second.status]).toEqual(['cancelled', 'cancelled'])
    for (const { task_id: id } of [child, grandchild]) {
      expect((await world.evidence(id)).attempts.map(({ status }) => status)).toEqual(['cancelled'])
      const changed = await system.system.log.read(`task:${id}`, { types: ['task.changed'] })
      expect(changed.map(({ record }) => record.payload)).toMatchObject([{ reason: 'parent_cancelled', by: null }, { reason: 'quiet' }])
    }
    expect(await system.system.tasks.delegations.delegate(await world.order(childRun))).toEqual({ refused: 'parent_ended' })
    gate.open()
  })

  it('is itself cancelled only when what it handed on is', async () => {
    const gate = createGate()
    const sent = Promise.withResolvers<void>()
    world.tool('look.up').script = [
      async () => {
        sent.resolve()
        await gate.opened
        return { type: 'done', observation: seen('It is the third door.'), costMicros: null }
      },
    ]
    world.thinks({
      character: handsOn({ instruction: 'Hand it on.', tools: ['delegate', 'look_up'] }),
      helper: ({ body, results }) => {
        if (results > 0) return found
        return body.includes('Hand it on.')
          ? delegating({ instruction: 'Look.', tools: ['look_up'] })
          : calling([{ name: 'look_up', arguments: '{}' }])
      },
    })
    const accepted = await world.ask('Find somebody.')
    await follow(system, accepted.run_id)
    const child = await world.onlyChild(accepted.run_id)
    await world.reaches(child.task_id, 'verified')
    const grandchild = await world.onlyChild(await world.runOf(child.task_id))
    await sent.promise
    try {
      // What is out is waited for, and all that it is part of waits with it.
      await call(system, 'POST', `/v1/tasks/${child.task_id}/cancel`)
      await system.system.tasks.keeper.continueCancel(child.task_id)
      expect([(await world.read(child.task_id)).status, (await world.read(grandchild.task_id)).status]).toEqual([
        'cancelling',
        'cancelling',
      ])
    } finally {
      gate.open()
    }
    await world.reaches(child.task_id, 'cancelled')
    expect((await world.read(grandchild.task_id)).status).toBe('cancelled')
  })

  it('leaves what is done as it is', async () => {
    const { run, end } = await world.underWay()
    const { delegations, store } = system.system.tasks
    await delegations.delegate(await world.order(run.run_id))
    const task = await world.onlyChild(run.run_id)
    await world.reaches(task.task_id, 'verified')
    const { candidate } = await world.evidence(task.task_id)
    await call(system, 'POST', `/v1/tasks/${task.task_id}/commit`, { candidate_id: candidate[0]?.candidate_id })
    await call(system, 'POST', `/v1/runs/${run.run_id}/cancel`)
    await end()
    expect((await store.orphaned(100)).map(({ id }) => id)).not.toContain(task.task_id)
    expect((await world.read(task.task_id)).status).toBe('done')
  })
})

describe('a task that is kept until it is done', () => {
  it('is forgotten when it is over, with all that its run did and made, and its record stays whole', async () => {
    world.tool('look.up').script = [() => ({ type: 'done', observation: seen('It is the third door.'), costMicros: null })]
    world.thinks({
      helper: ({ body, results }) => {
        if (body.includes('Sleep.') && !body.includes('Find the door.')) return found
        if (results === 0) return calling([{ name: 'look_up', arguments: '{"text":"door"}' }])
        return results === 1 ? delegating({ instruction: 'Sleep.' }) : found
      },
    })
    const { store, retention } = system.system.tasks
    const task = await call<TaskView>(system, 'POST', '/v1/tasks', {
      character_id: world.characterId,
      instruction: 'Find the door.',
      inputs: [{ media_type: 'text/plain', text: 'A map.' }],
      tools: ['look.up', 'delegate'],
      acceptance: { contract_version: 1, checks: [{ id: 'asked', kind: 'model', criterion: 'It names a door.' }] },
      budget: {},
      retention: 'until_done',
    })
    const id = task.task_id
    await call(system, 'POST', `/v1/tasks/${id}/attempts`, { runtimes: ['builtin'] })
    await world.reaches(id, 'verified')
    const before = await world.evidence(id)
    const runId = before.attempts[0]?.attempt_id ?? ''
    const child = await world.onlyChild(runId)
    await world.reaches(child.task_id, 'verified')
    const held = await store.contentIds(id)
    await retention.forget(id)
    const bodies = async () => [...(await system.system.contents.get(held)).values()].map(({ body }) => body)
    expect(await bodies()).not.toContain(null)

    await call(system, 'POST', `/v1/tasks/${id}/commit`, { candidate_id: before.candidate[0]?.candidate_id })
    // What it handed on is made of its texts, and not over yet.
    await retention.forget(id)
    expect(await bodies()).not.toContain(null)
    await call(system, 'POST', `/v1/tasks/${child.task_id}/cancel`)
    await world.reaches(child.task_id, 'cancelled')
    await eventually(async () => (await world.read(id)).instruction === null, 'its texts are erased')
    await Promise.all([retention.forget(id), retention.forget(id)])
    expect((await bodies()).filter((body) => body !== null)).toEqual([])
    const after = await world.evidence(id)
    expect(after).toMatchObject({ task: { status: 'done', instruction: null, acceptance: null }, final_commit: before.final_commit ?? {} })
    expect(after.inputs.map(({ digest, text }) => [digest, text])).toEqual(before.inputs.map(({ digest }) => [digest, null]))
    expect(after.candidate.map(({ hash }) => hash)).toEqual(before.candidate.map(({ hash }) => hash))
    expect(after.proof.every(({ whole }) => whole)).toBe(true)
    expect((await world.read(child.task_id)).instruction).toBeNull()
    // What it handed on was to be kept no longer than that either.
    await eventually(async () => (await retention.due(100)).length === 0, 'nothing is left to be forgotten')
  })

  it('is kept until then, however far it is', async () => {
    const task = await call<TaskView>(system, 'POST', '/v1/tasks', {
      character_id: world.characterId,
      instruction: 'Find the door.',
      acceptance: { contract_version: 1, checks: [{ id: 'shape', kind: 'schema', schema: { type: 'object' } }] },
      budget: {},
      retention: 'until_done',
    })
    const id = task.task_id
    const { retention } = system.system.tasks
    await call(system, 'POST', `/v1/tasks/${id}/attempts`, {})
    await retention.forget(id)
    await call(system, 'POST', `/v1/tasks/${id}/complete`, { artifacts: [{ media_type: 'application/json', text: '{}' }] })
    await retention.forget(id)
    expect(await world.read(id)).toMatchObject({ status: 'verified', instruction: 'Find the door.' })
    await call(system, 'POST', `/v1/tasks/${id}/cancel`)
    await retention.forget(id)
    expect(await world.read(id)).toMatchObject({ status: 'cancelled', instruction: null })
  })

  it('is kept where nothing else was said', async () => {
    const { run, end } = await world.underWay()
    await system.system.tasks.delegations.delegate(await world.order(run.run_id))
    const { task_id: id } = await world.onlyChild(run.run_id)
    await world.reaches(id, 'verified')
    await call(system, 'POST', `/v1/tasks/${id}/cancel`)
    await world.reaches(id, 'cancelled')
    await system.system.tasks.retention.forget(id)
    expect((await world.read(id)).instruction).toBe('Find the door.')
    await end()
  })
})

describe('a character that is gone', () => {
  it('leaves nothing of what it handed on under way', async () => {
    world.thinks({ character: handsOn({ instruction: 'Find the door.' }), judge: () => answer('{"meets":false}') })
    const accepted = await world.ask('Where is the door?')
    await follow(system, accepted.run_id)
    const task = await world.onlyChild(accepted.run_id)
    await world.reaches(task.task_id, 'needs_escalation')
    await call(system, 'DELETE', `/v1/characters/${world.characterId}`)
    await world.reaches(task.task_id, 'cancelled')
  })
})
