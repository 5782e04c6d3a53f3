/** Redis is emptied, away, silent, or delivers twice: it costs time and nothing else (cases Q1, Q4, Q5). */
import { Queue } from 'bullmq'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Canonized } from '#contracts'
import { OutboxRepository } from '#infra/prisma/outbox.repository'
import { createGate, DONE, finishChunk, HOLD, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeResponse } from '../support/fake-upstream.ts'
import { proposed } from '../support/memory-world.ts'
import { answer, ask, call, eventually, follow, newTree, runEnded, spoken } from '../support/story.ts'
import { expectPartial, gated, heard, isWell, startTwoReplicas } from '../support/two-replicas.ts'
import type { TwoReplicas } from '../support/two-replicas.ts'

let two: TwoReplicas
beforeAll(async () => {
  two = await startTwoReplicas({ role: 'all' })
})
afterAll(() => two.close())
beforeEach(() => two.prepare())
afterEach(() => two.settle())

describe('Redis carries nothing that may not be lost', () => {
  it('emptied in mid-run: nothing changes (case Q5)', async () => {
    const [replica] = two.both
    const tree = await newTree(replica)
    const { response, gates, end } = gated(['One, ', 'two, ', 'three.'])
    two.upstream.script(response, answer('Next.'))
    const run = await ask(replica, tree.id, 'Count.')
    const waits = await ask(replica, (await newTree(replica)).id, 'And then?')
    gates[0]?.open()
    await heard(replica, run.run_id, 'One, ')
    const { other } = await two.hostOf(run.run_id)
    const watched = follow(other, run.run_id)
    await two.flushRedis()
    gates[1]?.open()
    await heard(other, run.run_id, 'One, two, ')
    await two.flushRedis()
    gates[2]?.open()
    end.open()
    expect(spoken(await watched)).toBe('One, two, three.')
    expect((await runEnded(other, waits.run_id)).state).toBe('finished')
  })

  it('away and back again in mid-run: runs go on, streams are read from the log, commands and new asks are taken in', async () => {
    const [replica] = two.both
    const tree = await newTree(replica)
    const { response, gates, end } = gated(['One, ', 'two, ', 'three.'])
    two.upstream.script(response, answer('Next.'), { steps: [textChunk('What I said'), HOLD] })
    const before = two.upstream.requests.length
    const run = await ask(replica, tree.id, 'Count.')
    gates[0]?.open()
    await heard(replica, run.run_id, 'One, ')
    const { other } = await two.hostOf(run.run_id)
    const watched = follow(other, run.run_id)
    for (const line of two.lines) await line.redis.close()

    gates[1]?.open()
    await heard(other, run.run_id, 'One, two, ')
    const waits = await ask(other, (await newTree(other)).id, 'And then?')
    expect(waits.queue_position).toBe(1)
    gates[2]?.open()
    end.open()
    expect(spoken(await watched)).toBe('One, two, three.')
    expect((await runEnded(other, waits.run_id)).state).toBe('finished')

    const cancelled = await ask(other, (await newTree(other)).id, 'Tell me.')
    await heard(other, cancelled.run_id, 'What I said')
    await call((await two.hostOf(cancelled.run_id)).other, 'POST', `/v1/runs/${cancelled.run_id}/cancel`)
    await runEnded(other, cancelled.run_id)
    await expectPartial(other, cancelled, 'cancelled')
    expect(await (await two.upstream.request(before + 2)).closed).toBe(true)

    await two.flushRedis()
    for (const line of two.lines) await line.redis.open()
    for (const one of two.both) await isWell(one)
    two.upstream.script(answer('Good ', 'again.'))
    const after = await ask(replica, tree.id, 'Well?')
    expect(spoken(await follow(other, after.run_id))).toBe('Good again.')
  })

  it('silent as if the network had swallowed it: runs and their readers do not wait for it', async () => {
    const [replica] = two.both
    const tree = await newTree(replica)
    two.upstream.script(answer('I ', 'speak.'))
    for (const line of two.lines) line.redis.block()
    const run = await ask(replica, tree.id, 'Are you there?')
    expect(spoken(await follow(two.both[1], run.run_id))).toBe('I speak.')
  })
})

describe('jobs', () => {
  type Row = { outcome: string | null; attempts: number }

  /** Something was said and canonized; the extraction's request is with the provider, which answers as scripted. */
  async function canonize(extractions: (questionId: string) => FakeResponse[]) {
    const [replica] = two.both
    const tree = await newTree(replica)
    two.upstream.script(answer('You like tea.'))
    const run = await ask(replica, tree.id, 'I like tea.')
    await runEnded(replica, run.run_id)
    const before = two.upstream.requests.length
    two.upstream.script(...extractions(run.question_id))
    const { canonization } = await call<Canonized>(replica, 'POST', `/v1/nodes/${run.candidate_id}/canonize`)
    const request = await two.upstream.request(before)
    const [row] = await two.observer.database.query<{ id: string }>(
      `SELECT id::text FROM outbox WHERE payload ->> 'canonization_id' = $1`,
      [canonization.id],
    )
    return { run, canonization, request, before, outboxId: row?.id ?? '' }
  }

  const rowOf = async (outboxId: string): Promise<Row | undefined> => {
    const rows = await two.observer.database.query<Row>('SELECT outcome, attempts FROM outbox WHERE id = $1::uuid', [outboxId])
    return rows[0]
  }
  const ended = (outboxId: string): Promise<Row> =>
    eventually(async () => {
      const row = await rowOf(outboxId)
      return row && row.outcome !== null && row
    }, `the end of job ${outboxId}`)

  /** What the queue of the replicas holds, seen and added to from outside. */
  async function withQueue(work: (queue: Queue) => Promise<void>): Promise<void> {
    const connection = two.redis.duplicate({ maxRetriesPerRequest: null })
    const queue = new Queue('outbox', { connection, prefix: two.observer.redisPrefix })
    try {
      await work(queue)
    } finally {
      await queue.close()
      connection.disconnect()
    }
  }
  /** Delivers a row once more for each of these names, and waits until that was worked off. */
  async function deliver(queue: Queue, outboxId: string, ...names: string[]): Promise<void> {
    const added = await queue.addBulk(names.map((name) => ({ name: 'row', data: { outboxId }, opts: { jobId: `${name}-${outboxId}` } })))
    const states = async () => Promise.all(added.map((job) => job.getState()))
    await eventually(async () => (await states()).every((state) => state === 'completed'), `the deliveries ${names.join(', ')}`)
  }

  it('delivered more than once are done once (case Q1)', async () => {
    const gate = createGate()
    const { outboxId, before } = await canonize(() => [
      { steps: [gate, textChunk('{"proposals":[]}'), finishChunk(), usageChunk(1, 1), DONE] },
    ])
    await withQueue(async (queue) => {
      await deliver(queue, outboxId, 'a', 'b', 'c', 'd', 'e')
      gate.open()
      expect(await ended(outboxId)).toEqual({ outcome: 'done', attempts: 1 })
      await deliver(queue, outboxId, 'late')
    })
    expect(two.upstream.requests.length - before).toBe(1)
    expect(await rowOf(outboxId)).toEqual({ outcome: 'done', attempts: 1 })
  })

  it('of a worker that stood still for longer than its claim are done by another, and what it finds after that is not stored too (case Q1)', async () => {
    const gate = createGate()
    const { run, request, outboxId } = await canonize((questionId) => {
      const steps = [textChunk(JSON.stringify(proposed(questionId))), finishChunk(), usageChunk(1, 1), DONE]
      return [{ steps: [gate, ...steps] }, { steps }]
    })
    const { database } = two.observer
    const [asking] = await database.query<{ holder: string }>(`SELECT holder FROM runs WHERE NOT seated AND state = 'running'`)
    const { host } = two.holder(asking?.holder ?? '')
    host.pause()
    await database.execute(`UPDATE outbox SET claimed_until = clock_timestamp() - interval '1 second' WHERE id = $1::uuid`, [outboxId])
    await withQueue(async (queue) => {
      await deliver(queue, outboxId, 'again')
      expect(await rowOf(outboxId)).toEqual({ outcome: 'done', attempts: 2 })
      host.goOn()
      gate.open()
      expect(await request.closed).toBe(false)
      await eventually(async () => (await queue.getJob(`row-${outboxId}`)) === undefined, 'the end of the first worker’s job')
    })
    const memories = await database.query('SELECT m.id FROM memories m JOIN runs r ON r.owner_id = m.owner_id WHERE r.id = $1::uuid', [
      run.run_id,
    ])
    expect(memories).toHaveLength(1)
    expect(await rowOf(outboxId)).toEqual({ outcome: 'done', attempts: 2 })
  })

  it('whose transaction commits when later ones have been done are done all the same (case Q4)', async () => {
    const { canonization, outboxId } = await canonize(() => [answer('{"proposals":[]}')])
    await ended(outboxId)
    const { database, ids } = two.observer
    const outbox = new OutboxRepository(database)
    const add = (id: string) => outbox.add({ id, ownerId: null, topic: 'memory.extract', payload: { canonization_id: canonization.id } })
    const [early, late] = [ids.next(), ids.next()]
    const [written, held] = [createGate(), createGate()]
    const slow = database.run(async () => {
      await add(early)
      written.open()
      await held.opened
    })
    await written.opened
    await add(late)
    expect(await ended(late)).toEqual({ outcome: 'done', attempts: 1 })
    expect(await rowOf(early)).toBeUndefined()
    held.open()
    await slow
    expect(await ended(early)).toEqual({ outcome: 'done', attempts: 1 })
  })
})
