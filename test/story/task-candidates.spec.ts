/** Delegated work at its end: cancelled, or verified and committed (cases E11–E13). */
import { generateKeyPairSync, sign } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import type { EvidencePackage } from '#contracts'
import { canonicalJson } from '#kernel/record/canonical-json'
import { happens, seen } from '../support/fake-target.ts'
import type { FakeTool } from '../support/fake-target.ts'
import { eventually } from '../support/story.ts'
import { asks, budgetOf, doesAndHangs, names, refused, restarted, taskStory } from '../support/task-story.ts'
import { decide, grantAll, startedTask, submit } from '../support/task-world.ts'
import type { Plane, TaskWorld } from '../support/task-world.ts'
import { verifyEvidence } from '../support/verify-evidence.ts'

/** The package as somebody would make it who has changed it and signs it with a key of their own. */
function forged(evidence: EvidencePackage, change: (changed: EvidencePackage) => void): string {
  const { public_key: _, signature: __, ...rest } = structuredClone(evidence)
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const changed = { ...rest, public_key: '', signature: '' }
  change(changed)
  const { public_key: ___, signature: ____, ...unsigned } = changed
  return JSON.stringify({
    ...unsigned,
    public_key: Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64'),
    signature: sign(null, Buffer.from(canonicalJson(unsigned)), privateKey).toString('base64'),
  })
}

/** It holds for whoever has the file alone, and shows what somebody changed even where they sign it anew. */
async function expectChecked(evidence: EvidencePackage): Promise<void> {
  expect(await verifyEvidence(JSON.stringify(evidence), '--key', evidence.public_key)).toMatchObject({ code: 0, faults: '' })
  const resigned = await verifyEvidence(
    forged(evidence, () => undefined),
    '--key',
    evidence.public_key,
  )
  expect(resigned.faults).toMatch(/^the key is .*, not /)
  const lies: [(changed: EvidencePackage) => void, RegExp][] = [
    [(e) => Object.assign(e.proof[0]?.events[1] ?? {}, { canonical: '{}' }), /hash does not follow/],
    [(e) => e.proof[0]?.events.pop(), /events say otherwise/],
    [(e) => e.proof.pop(), /not those of the task and its attempts/],
    [(e) => Object.assign(e.task, { status: 'open' }), /said to be open/],
    [(e) => Object.assign(e.actions[0] ?? {}, { arguments_hash: '0'.repeat(64) }), /another one was submitted/],
    [(e) => Object.assign(e.actions[0] ?? {}, { charged_micros: 0 }), /its events say otherwise/],
    [(e) => e.policies.pop(), /something else was decided/],
    [(e) => Object.assign(e.candidate[0] ?? {}, { hash: '0'.repeat(64) }), /another one was sealed/],
    [(e) => Object.assign(e.verification ?? {}, { status: 'failed' }), /verification/],
    [(e) => Object.assign(e.final_commit ?? {}, { by: e.task.task_id }), /commit: /],
    [(e) => e.effects.pop(), /is left out/],
  ]
  for (const [change, fault] of lies) {
    const { code, faults } = await verifyEvidence(forged(evidence, change))
    expect(faults).toMatch(fault)
    expect(code).toBe(1)
  }
}

const story = taskStory()
let plane: Plane
let world: TaskWorld
let pay: FakeTool
beforeAll(() => {
  ;({ plane, world, pay } = story())
})

describe('a cancelled task', () => {
  it('E11: cancel, restart, then approve, submit, complete: all answer cancelled', async () => {
    await grantAll(plane, names, asks)
    const task = await startedTask(plane, ['pay'])
    const action = await submit(plane, task, { key: 'e11', tool: 'pay' })
    expect((await plane.tasks.cancel(plane.ownerId, task.task_id)).status).toBe('cancelled')
    const after = await restarted(world)
    await grantAll(after, names)
    const approved = await refused(decide(after, action, 'approve'))
    expect(approved).toEqual({ code: 'run_ended', data: { reason: 'cancelled' } })
    expect((await submit(after, task, { key: 'e11', tool: 'pay' })).outcome).toBe('cancelled')
    expect((await submit(after, task, { key: 'e11-new', tool: 'pay' })).outcome).toBe('cancelled')
    const completed = await after.tasks.complete(after.ownerId, task.task_id, { artifacts: [{ media_type: 'text/plain', text: 'Done.' }] })
    expect(completed).toMatchObject({ verdict: 'cancelled', task: { status: 'cancelled' }, artifacts: [] })
    expect((await after.tasks.cancel(after.ownerId, task.task_id)).status).toBe('cancelled')
    expect(pay.happened).toEqual([])
  })

  it('E12: with an unknown effect it is cancelling until that is reconciled', async () => {
    const task = await startedTask(plane, ['pay'])
    pay.script = [
      (call) => {
        happens(pay, call)
        return { type: 'unknown', code: 'connection_lost' }
      },
    ]
    const action = await submit(plane, task, { key: 'e12', tool: 'pay' })
    expect((await plane.tasks.cancel(plane.ownerId, task.task_id)).status).toBe('cancelling')
    await plane.system.tasks.keeper.continueCancel(task.task_id)
    expect((await plane.tasks.get(plane.ownerId, task.task_id)).status).toBe('cancelling')
    expect((await submit(plane, task, { key: 'e12-new', tool: 'pay' })).outcome).toBe('cancelled')
    await plane.system.conversation.actions.effects.reconcile(plane.ownerId, action.effect_id ?? '', { as: 'done' })
    await plane.system.tasks.keeper.continueCancel(task.task_id)
    const ended = await plane.tasks.get(plane.ownerId, task.task_id)
    expect(ended.status).toBe('cancelled')
    // What happened, happened.
    expect(await plane.tasks.action(plane.ownerId, action.action_id)).toMatchObject({ outcome: 'committed' })
    expect(pay.happened).toHaveLength(1)
  })

  it('while an action is out: it hears of it, and is cancelled when that is over', async () => {
    const task = await startedTask(plane, ['pay', 'post'])
    const hanging = doesAndHangs(pay, { type: 'done', observation: seen('Paid.'), costMicros: 10 })
    const out = submit(plane, task, { key: 'c1', tool: 'pay' })
    const call = await hanging.sent
    const cancelling = plane.tasks.cancel(plane.ownerId, task.task_id)
    await eventually(async () => call.signal.aborted, 'the action hears of it')
    hanging.open()
    expect((await out).outcome).toBe('committed')
    await cancelling
    await plane.system.tasks.keeper.continueCancel(task.task_id)
    expect((await plane.tasks.get(plane.ownerId, task.task_id)).status).toBe('cancelled')
  })

  it('right before dispatch: nothing is sent', async () => {
    const task = await startedTask(plane, ['pay'])
    let cancelled: Promise<unknown> = Promise.resolve()
    pay.lookUp = async () => {
      cancelled = plane.tasks.cancel(plane.ownerId, task.task_id)
      await eventually(async () => (await plane.tasks.get(plane.ownerId, task.task_id)).status !== 'open', 'the cancellation')
      return null
    }
    expect((await submit(plane, task, { key: 'c2', tool: 'pay' })).outcome).toBe('cancelled')
    await cancelled
    expect(pay.happened).toEqual([])
    expect((await plane.tasks.get(plane.ownerId, task.task_id)).status).toBe('cancelled')
    expect(await budgetOf(plane, task)).toMatchObject({ spent_micros: 0, reserved_micros: 0 })
  })
})

describe('a candidate', () => {
  const artifact = (text: string, media_type: 'text/plain' | 'application/json' = 'text/plain') => ({ artifacts: [{ media_type, text }] })
  const paid = { contract_version: 1 as const, checks: [{ id: 'paid', kind: 'committed' as const, tool: 'pay', at_least: 1 }] }

  it('E13: committed but checks empty or false: not complete, verification failed', async () => {
    const unchecked = await startedTask(plane, ['pay'])
    expect((await submit(plane, unchecked, { key: 'e13', tool: 'pay' })).outcome).toBe('committed')
    const empty = await plane.tasks.complete(plane.ownerId, unchecked.task_id, artifact('Done.'))
    expect(empty).toMatchObject({ verdict: 'needs_escalation', verification: { status: 'failed', checks: [] } })
    expect(
      (await refused(plane.tasks.commit(plane.ownerId, unchecked.task_id, { candidate_id: empty.artifacts[0]?.candidate_id ?? '' }))).code,
    ).toBe('wrong_state')

    const task = await startedTask(plane, ['pay', 'post'], { acceptance: paid, max_repairs: 1 })
    expect((await submit(plane, task, { key: 'e13-f', tool: 'post' })).outcome).toBe('committed')
    const first = await plane.tasks.complete(plane.ownerId, task.task_id, artifact('Done.'))
    expect(first).toMatchObject({ verdict: 'repair', task: { status: 'open', repairs: 1 }, verification: { status: 'failed' } })
    const second = await plane.tasks.complete(plane.ownerId, task.task_id, artifact('Done, really.'))
    expect(second).toMatchObject({ verdict: 'needs_escalation', task: { status: 'needs_escalation' } })
    const sql = plane.system.database.execute(`UPDATE tasks SET status = 'done', ended_at = now() WHERE id = $1::uuid`, [task.task_id])
    await expect(sql).rejects.toThrow()
  })

  it('is done only when it was verified and its owner committed exactly it', async () => {
    const checks = [
      ...paid.checks,
      { id: 'shape', kind: 'schema' as const, schema: { type: 'object', required: ['paid'], properties: { paid: { type: 'boolean' } } } },
      {
        id: 'seen',
        kind: 'tool' as const,
        tool: 'look.up',
        arguments: { text: 'receipt' },
        expect: { type: 'string', const: 'A receipt.' },
      },
    ]
    world.tool('look.up').script = [() => ({ type: 'done', observation: seen('A receipt.'), costMicros: null })]
    const task = await startedTask(plane, ['pay', 'look.up'], { acceptance: { contract_version: 1, checks } })
    expect((await submit(plane, task, { key: 'd1', tool: 'pay' })).outcome).toBe('committed')
    const wrong = await plane.tasks.complete(plane.ownerId, task.task_id, artifact('{"paid":"yes"}', 'application/json'))
    expect(wrong.verdict).toBe('repair')
    expect(wrong.verification?.checks.map(({ id, status, code }) => [id, status, code])).toEqual([
      ['paid', 'passed', 'passed'],
      ['shape', 'failed', 'does_not_fit'],
      ['seen', 'passed', 'passed'],
    ])
    const right = await plane.tasks.complete(plane.ownerId, task.task_id, artifact('{"paid":true}', 'application/json'))
    expect(right).toMatchObject({ verdict: 'verified', task: { status: 'verified' } })
    expect((await refused(submit(plane, task, { key: 'd2', tool: 'pay' }))).code).toBe('wrong_state')
    const candidateId = right.artifacts[0]?.candidate_id ?? ''
    const other = plane.tasks.commit(plane.ownerId, task.task_id, { candidate_id: wrong.artifacts[0]?.candidate_id ?? '' })
    expect((await refused(other)).code).toBe('conflict')
    for (const _ of [1, 2])
      expect((await plane.tasks.commit(plane.ownerId, task.task_id, { candidate_id: candidateId })).status).toBe('done')

    const evidence = await plane.tasks.evidence(plane.ownerId, task.task_id)
    expect(evidence).toMatchObject({ verification: { status: 'passed' }, final_commit: { by: plane.ownerId } })
    expect(evidence.candidate.map(({ hash }) => hash)).toEqual(right.artifacts.map(({ hash }) => hash))
    expect(evidence.proof.map(({ stream, whole }) => [stream.split(':')[0], whole])).toEqual([
      ['task', true],
      ['run', true],
    ])
    expect(evidence.effects.map(({ state }) => state)).toEqual(['done', 'done', 'done'])
    expect(evidence.inputs[0]?.text).toBe('Do it.')
    await expectChecked(evidence)
    const fold = await plane.system.tasks.keeper.rebuild(task.task_id, null)
    expect(fold.state).toMatchObject({ status: 'done', budget: evidence.task.budget.max_cost_micros === null ? { spent_micros: 10 } : {} })
    expect(fold.state.budget).toMatchObject({ spent_micros: 10, reserved_micros: 0, used_actions: 3 })
    expect((await plane.tasks.cancel(plane.ownerId, task.task_id)).status).toBe('done')
  })

  it('is none while an action is open', async () => {
    const task = await startedTask(plane, ['mail.send'], { acceptance: paid })
    await submit(plane, task, { key: 'o1', tool: 'mail.send' })
    const { code, data } = await refused(plane.tasks.complete(plane.ownerId, task.task_id, artifact('Done.')))
    expect([code, data['open']]).toMatchObject(['wrong_state', [{ state: 'waiting' }]])
  })

  it('that needs a person can be tried once more by one', async () => {
    const task = await startedTask(plane, ['pay'], { acceptance: paid, max_repairs: 0 })
    expect((await plane.tasks.complete(plane.ownerId, task.task_id, artifact('Done.'))).verdict).toBe('needs_escalation')
    expect((await plane.tasks.start(plane.ownerId, task.task_id, { runtimes: ['external'] })).ordinal).toBe(2)
    expect((await submit(plane, task, { key: 'again', tool: 'pay' })).outcome).toBe('committed')
    expect((await plane.tasks.complete(plane.ownerId, task.task_id, artifact('Done.'))).verdict).toBe('verified')
  })
})
