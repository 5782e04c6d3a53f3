/** A server stops, dies, leaves or loses PostgreSQL in the middle of a run: the other goes on, and nothing is made up (M7; cases Q2, Q3, Q7). */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createGate, DONE, finishChunk, HOLD, textChunk, usageChunk } from '../support/fake-upstream.ts'
import { answer, ask, call, eventually, follow, newTree, node, path, runEnded, spoken } from '../support/story.ts'
import { expectPartial, heard, isWell, startTwoReplicas } from '../support/two-replicas.ts'
import type { TwoReplicas } from '../support/two-replicas.ts'

// A lease has to run out by itself.
vi.setConfig({ testTimeout: 120_000 })
/** Seconds in which a lease (15 s) runs out by itself and somebody has noticed, on a busy machine. */
const LEASE_OVER = 60

let two: TwoReplicas
beforeAll(async () => {
  two = await startTwoReplicas({ role: 'bff' })
})
afterAll(() => two.close())
beforeEach(() => two.prepare())
afterEach(() => two.settle())

describe('an owner that is gone', () => {
  it('paused past its lease: the other seals what was said and goes on; back again, it writes nothing (cases Q2, Q3)', async () => {
    const { first, second, request } = await two.startTwo()
    const { host, other } = await two.hostOf(first.run_id)
    const held = await two.rowOf(first.run_id)
    host.pause()
    // Whatever Redis knew of who holds the seat is gone as well.
    await two.flushRedis()
    expect(await runEnded(other, first.run_id, LEASE_OVER)).toMatchObject({ state: 'interrupted', reason: 'lease_expired' })
    await expectPartial(other, first, 'lease_expired')
    expect((await runEnded(other, second.run_id)).state).toBe('finished')
    const [taken, next] = [await two.rowOf(first.run_id), await two.rowOf(second.run_id)]
    expect(taken.fence).toBeGreaterThan(held.fence)
    expect(next.fence).toBeGreaterThan(taken.fence)
    const head = await two.observer.log.head(`run:${first.run_id}`)
    host.goOn()
    // It finds out with its next sign of life, long before the run's own time would be over, and leaves the provider.
    await eventually(() => Promise.resolve(request.isAbandoned), 'the owner to leave the provider')
    expect(await two.observer.log.head(`run:${first.run_id}`)).toEqual(head)
    expect(await two.rowOf(first.run_id)).toEqual(taken)
    await expectPartial(host, first, 'lease_expired')
  })

  it('paused past its lease while the provider speaks on: the database refuses what it still has to say (cases Q2, Q3)', async () => {
    const [replica] = two.both
    const tree = await newTree(replica)
    const gate = createGate()
    two.upstream.script({ steps: [textChunk('What I said'), gate, textChunk(', and more'), finishChunk(), usageChunk(1, 1), DONE] })
    const before = two.upstream.requests.length
    const run = await ask(replica, tree.id, 'Tell me.')
    await heard(replica, run.run_id, 'What I said')
    const { host, other } = await two.hostOf(run.run_id)
    host.pause()
    gate.open()
    const request = await two.upstream.request(before)
    expect(await request.closed).toBe(false)
    expect(await runEnded(other, run.run_id, LEASE_OVER)).toMatchObject({ reason: 'lease_expired' })
    const [head, row] = [await two.observer.log.head(`run:${run.run_id}`), await two.rowOf(run.run_id)]
    // Its sign of life, which would tell it, and its writes are on their way before either is answered.
    const { postgres } = two.linesOf(host)
    postgres.block()
    host.goOn()
    for (let turn = 0; turn < 5; turn++) expect((await host.call('GET', '/health/live')).status).toBe(200)
    await postgres.open()
    await isWell(host)
    two.upstream.script(answer('Yes.'))
    const late = await ask(host, tree.id, 'Still there?', { parent_id: run.candidate_id })
    expect(spoken(await follow(host, late.run_id))).toBe('Yes.')
    expect(await two.observer.log.head(`run:${run.run_id}`)).toEqual(head)
    expect(await two.rowOf(run.run_id)).toEqual(row)
    await expectPartial(host, run, 'lease_expired')
  })

  it('killed: the other takes over when the lease is over, seals what was said, and the next in line runs (case Q7)', async () => {
    const { first, second } = await two.startTwo()
    const { host, other } = await two.hostOf(first.run_id)
    const watched = follow(other, first.run_id)
    await host.kill()
    // Nobody reads "streaming" for ever: whoever watches is told the end, whoever looks later sees it.
    expect((await watched).at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'lease_expired' })
    await expectPartial(other, first, 'lease_expired')
    expect((await runEnded(other, second.run_id)).state).toBe('finished')
    const tree = await path(other, first.tree_id)
    expect(tree.tree.head_node_id).toBe(first.candidate_id)
  })

  it('stopped in the middle of a transaction: what it had locked is free before a lease is over', async () => {
    const { first, second } = await two.startTwo()
    const { host, other } = await two.hostOf(first.run_id)
    const held = Promise.withResolvers<void>()
    const stopped = two.observer.database.run(async () => {
      await two.observer.database.query('SELECT 1 FROM runs r JOIN seats s USING (character_id) WHERE r.id = $1::uuid FOR UPDATE', [
        first.run_id,
      ])
      await held.promise
    })
    const broken = stopped.then(
      () => 'committed',
      () => 'rolled back',
    )
    await host.kill()
    await expectPartial(other, first, 'lease_expired')
    expect((await runEnded(other, second.run_id)).state).toBe('finished')
    held.resolve()
    expect(await broken).toBe('rolled back')
  })

  it('asked to end: it seals what was said at once, and the other runs the next in line', async () => {
    const { first, second } = await two.startTwo()
    const { host, other } = await two.hostOf(first.run_id)
    await host.end()
    await expectPartial(other, first, 'drained')
    expect((await runEnded(other, second.run_id)).state).toBe('finished')
  })
})

describe('PostgreSQL lost in mid-stream', () => {
  it('for a moment: the run ends, saying so, with what had been written', async () => {
    const { first, second, request } = await two.startTwo()
    const { host, other } = await two.hostOf(first.run_id)
    const watched = follow(other, first.run_id)
    two.linesOf(host).postgres.cut()
    await call(other, 'POST', `/v1/runs/${first.run_id}/cancel`)
    const end = (await watched).at(-1)
    expect(end?.type).toMatch(/^run\.(?:failed|interrupted)$/)
    expect(await node(other, first.candidate_id)).toMatchObject({ sealed: true, partial: true, text: 'What I said' })
    expect(await request.closed).toBe(true)
    expect((await runEnded(other, second.run_id)).state).toBe('finished')
    // The replica itself is well again.
    two.upstream.script(answer('Still here.'))
    const after = await ask(host, first.tree_id, 'Well?')
    expect(spoken(await follow(host, after.run_id))).toBe('Still here.')
  })

  it('while the provider speaks: what was written before stands, what came after is not made up', async () => {
    const [replica] = two.both
    const tree = await newTree(replica)
    const gate = createGate()
    two.upstream.script({ steps: [textChunk('What I said'), gate, textChunk(', and more'), HOLD] })
    const before = two.upstream.requests.length
    const run = await ask(replica, tree.id, 'Tell me.')
    await heard(replica, run.run_id, 'What I said')
    const { host, other } = await two.hostOf(run.run_id)
    await two.linesOf(host).postgres.close()
    gate.open()
    // The owner cannot say anything about it; when its lease is over, the other does.
    const events = await follow(other, run.run_id)
    expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'lease_expired', partial: true })
    await expectPartial(other, run, 'lease_expired')
    await two.linesOf(host).postgres.open()
    await isWell(host)
    expect(await (await two.upstream.request(before)).closed).toBe(true)
    await expectPartial(host, run, 'lease_expired')
  })
})
