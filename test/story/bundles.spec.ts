/** The platform's layer of every run: named by content, accepted and activated by people alone, pinned per run (K7, K8, decision 21). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BundleContent, BundleView, EventPayload } from '#contracts'
import { RELEASE_BUNDLE } from '#runtime/turn/context-projector'
import { expectReplays } from '../support/replays.ts'
import { answer, ask, askAndHear, call, newTree } from '../support/story.ts'
import { follow } from '../support/story.ts'
import { createGate, DONE, finishChunk, textChunk } from '../support/fake-upstream.ts'
import { startWorld, steer } from '../support/world.ts'
import type { World } from '../support/world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(async () => {
  await expectReplays(world.system)
  expect((await world.system.system.conversation.verify.verifyAll()).faults).toEqual([])
  await world.close()
})

const list = async () => (await call<{ items: BundleView[] }>(world.system, 'GET', '/v1/admin/bundles')).items
const active = async (): Promise<BundleView> => {
  const found = (await list()).find((bundle) => bundle.active)
  if (!found) throw new Error('no bundle is active')
  return found
}
const propose = (changes: Partial<BundleContent>) =>
  call<BundleView>(world.system, 'POST', '/v1/admin/bundles', { ...RELEASE_BUNDLE, ...changes })
const evaluate = (hash: string, accepted: boolean) =>
  call<BundleView>(world.system, 'POST', `/v1/admin/bundles/${hash}/evaluations`, { accepted })
const activate = async (hash: string, reason: 'promote' | 'rollback', from?: string) =>
  world.system.call('POST', `/v1/admin/bundles/${hash}/activation`, { body: { from: from ?? (await active()).hash, reason } })
async function startedWith(runId: string): Promise<string> {
  const [started] = await world.system.system.log.read(`run:${runId}`, { types: ['run.started'] })
  if (!started) throw new Error('the run was not started')
  return (started.record.payload as EventPayload<'run.started'>).bundle
}

describe('bundles', () => {
  it('begin with the release’s own, which every run is pinned to', async () => {
    const bundle = await active()
    expect(bundle).toMatchObject({ accepted: true, content: { name: 'lingtai/builtin/1' } })
    world.upstream.script(answer('Hello.'))
    const { accepted } = await askAndHear(world.system, (await newTree(world.system)).id, 'Hello?')
    expect(await startedWith(accepted.run_id)).toBe(bundle.hash)
  })

  it('are the same by the same content, and activate nothing by being proposed or accepted', async () => {
    const before = await active()
    const limits = { ...RELEASE_BUNDLE.limits, max_turns: 2 }
    const first = await propose({ name: 'careful/1', limits })
    expect(await propose({ name: 'careful/1', limits })).toEqual(first)
    expect(first).toMatchObject({ accepted: null, active: false })
    await evaluate(first.hash, true)
    expect((await active()).hash).toBe(before.hash)
  })

  it('never raise the platform’s limits', async () => {
    const body = { ...RELEASE_BUNDLE, limits: { ...RELEASE_BUNDLE.limits, max_turns: 1_000 } }
    expect((await world.system.call('POST', '/v1/admin/bundles', { body })).status).toBe(400)
    const withMore = { ...RELEASE_BUNDLE, grants: ['everything'] }
    expect((await world.system.call('POST', '/v1/admin/bundles', { body: withMore })).status).toBe(400)
  })

  it('are activated only after they were accepted, from what is active, by an admin', async () => {
    const rejected = await propose({ name: 'wild/1', temperatures: { low: 2, medium: 2, high: 2 } })
    expect((await activate(rejected.hash, 'promote')).status).toBe(409)
    await evaluate(rejected.hash, true)
    await evaluate(rejected.hash, false)
    expect((await activate(rejected.hash, 'promote')).status).toBe(409)
    expect((await activate(rejected.hash, 'rollback')).status).toBe(409)
    const other = await propose({ name: 'other/1' })
    await evaluate(other.hash, true)
    expect((await activate(other.hash, 'promote', 'a'.repeat(64))).status).toBe(412)
    for (const scopes of [['read', 'write', 'approve'] as const]) {
      const token = await world.system.tokenWith(scopes)
      const body = { from: (await active()).hash, reason: 'promote' }
      expect((await world.system.call('POST', `/v1/admin/bundles/${other.hash}/activation`, { body, token })).status).toBe(403)
    }
    const { database } = world.system.system
    const move = (to: string, from: string, by: string | null) =>
      database.execute(`INSERT INTO bundle_promotions (from_hash, to_hash, reason, promoted_by) VALUES ($1, $2, 'promote', $3::uuid)`, [
        from,
        to,
        by,
      ])
    const current = (await active()).hash
    await expect(move(rejected.hash, current, world.system.ownerId)).rejects.toThrow(/was not accepted/)
    await expect(move(other.hash, rejected.hash, world.system.ownerId)).rejects.toThrow(/is not the active one/)
    await expect(move(other.hash, current, world.system.ownerBId)).rejects.toThrow(/only an admin/)
    await expect(move(other.hash, current, null)).rejects.toThrow(/check/)
    for (const table of ['bundles', 'bundle_evaluations', 'bundle_promotions']) {
      await expect(database.execute(`DELETE FROM ${table}`)).rejects.toThrow()
    }
    expect((await active()).hash).toBe(current)
  })

  it('hold for what starts afterwards: what runs keeps its own; the way back is one move', async () => {
    const first = await active()
    const careful = await propose({ name: 'careful/2', limits: { ...RELEASE_BUNDLE.limits, max_turns: 1 } })
    await evaluate(careful.hash, true)
    const gate = createGate()
    world.upstream.script(
      { headers: { 'content-type': 'text/event-stream' }, steps: [textChunk('Slow. '), gate, finishChunk('stop'), DONE] },
      answer('Two turns.'),
    )
    const running = await ask(world.system, (await newTree(world.system)).id, 'Take your time.')
    await follow(world.system, running.run_id, { until: (event) => event.type === 'llm.delta' })
    expect((await activate(careful.hash, 'promote')).status).toBe(200)
    await steer(world, running.run_id, 'And more.')
    gate.open()
    expect((await follow(world.system, running.run_id)).at(-1)).toMatchObject({ type: 'run.finished' })
    expect(await startedWith(running.run_id)).toBe(first.hash)

    const tight = createGate()
    world.upstream.script({
      headers: { 'content-type': 'text/event-stream' },
      steps: [textChunk('One. '), tight, finishChunk('stop'), DONE],
    })
    const bounded = await ask(world.system, (await newTree(world.system)).id, 'Once.')
    await follow(world.system, bounded.run_id, { until: (event) => event.type === 'llm.delta' })
    await steer(world, bounded.run_id, 'And more.')
    tight.open()
    expect((await follow(world.system, bounded.run_id)).at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'budget_exhausted' })
    expect(await startedWith(bounded.run_id)).toBe(careful.hash)

    expect((await activate(first.hash, 'rollback')).status).toBe(200)
    expect((await active()).hash).toBe(first.hash)
    const moves = await world.system.system.log.read('admin:platform', { types: ['bundle.activated'] })
    expect(moves.map(({ record }) => record.payload)).toMatchObject([
      { from: null, to: first.hash, reason: 'release', by: null },
      { from: first.hash, to: careful.hash, reason: 'promote', by: world.system.ownerId },
      { from: careful.hash, to: first.hash, reason: 'rollback', by: world.system.ownerId },
    ])
  })

  it('of two moves at once one counts', async () => {
    const from = (await active()).hash
    const [one, two] = await Promise.all([propose({ name: 'race/1' }), propose({ name: 'race/2' })])
    await Promise.all([evaluate(one.hash, true), evaluate(two.hash, true)])
    const statuses = await Promise.all([activate(one.hash, 'promote', from), activate(two.hash, 'promote', from)])
    expect(statuses.map(({ status }) => status).sort()).toEqual([200, 412])
  })
})
