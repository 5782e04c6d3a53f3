/**
 * Two servers on one PostgreSQL and one Redis, each in a process of its own and reached by lines that can be cut: they contend for one
 * seat, read each other's streams, and one goes on where the other ends (M5, M7; cases Q1–Q7).
 */
import { randomUUID } from 'node:crypto'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { RunAccepted, RunStreamEvent, RunView, TreeView } from '#contracts'
import { loadConfig } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import { composeSystem } from '../../apps/bff/composition/compose-system.ts'
import type { System } from '../../apps/bff/composition/compose-system.ts'
import { fullTierServices } from '../support/environment.ts'
import { createGate, DONE, finishChunk, HOLD, startFakeUpstream, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeRequest, FakeResponse, FakeUpstream, Gate } from '../support/fake-upstream.ts'
import { createFullDatabase } from '../support/full-database.ts'
import type { FullDatabase } from '../support/full-database.ts'
import { makeTestHome } from '../support/light-database.ts'
import { buildServer, startReplica } from '../support/replica.ts'
import type { Replica } from '../support/replica.ts'
import { answer, ask, call, eventually, follow, newTree, node, path, runEnded, spoken } from '../support/story.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'

// A lease has to run out by itself more than once.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })

/** The other processes' ways to the services, one each, so that one can be cut off alone. */
type Lines = { postgres: TcpProxy; redis: TcpProxy }

let database: FullDatabase
let upstream: FakeUpstream
/** Looks at the database beside the replicas and does no work. */
let observer: System
let token: string
let lines: Lines[]
let replicas: Replica[]
let redis: Redis

beforeAll(async () => {
  await buildServer()
  const { databaseUrl, redisUrl } = fullTierServices()
  database = await createFullDatabase(databaseUrl)
  upstream = await startFakeUpstream()
  redis = new Redis(redisUrl)
  observer = await composeSystem({
    config: loadConfig({ ...environmentOf(database.url, redisUrl), LINGTAI_HOME: makeTestHome() }),
    logger: createLogger('silent'),
  })
  lines = [await openLines(), await openLines()]
})
afterAll(async () => {
  await observer.close()
  for (const { postgres, redis: line } of lines) await Promise.all([postgres.close(), line.close()])
  redis.disconnect()
  await upstream.close()
  await database.close()
})
beforeEach(async () => {
  token = await newOwner()
  replicas = await startReplicas()
})
afterEach(async () => {
  for (const { postgres, redis: line } of lines) await Promise.all([postgres.open(), line.open()])
  await Promise.all(replicas.map((replica) => replica.end()))
  upstream.unscript()
  const report = await observer.conversation.verify.verifyAll()
  expect(report.faults).toEqual([])
})

/** Each test has a character of its own, since a character has one seat. */
async function newOwner(): Promise<string> {
  const owner = await observer.identity.owners.create({ name: randomUUID(), role: 'user', actor: 'system' })
  const scopes = ['read', 'write'] as const
  const { token: issued } = await observer.identity.tokens.create({
    ownerId: owner.id,
    name: 'test',
    scopes,
    grantable: new Set(scopes),
    actor: 'operator',
  })
  if (issued === null) throw new Error('a fresh token is shown')
  return issued
}

function startReplicas(more: Record<string, string> = {}): Promise<Replica[]> {
  return Promise.all(
    lines.map((line) => startReplica({ environment: { ...environmentOf(line.postgres.url, line.redis.url), ...more }, token })),
  )
}

async function openLines(): Promise<Lines> {
  return { postgres: await startTcpProxy(database.url), redis: await startTcpProxy(fullTierServices().redisUrl) }
}

function environmentOf(databaseUrl: string, redisUrl: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    OPENAI_BASE_URL: upstream.baseUrl,
    OPENAI_API_KEY: 'test-key',
    LINGTAI_MODEL: 'test-model',
  }
}

function both(): [Replica, Replica] {
  const [first, second] = replicas
  if (!first || !second) throw new Error('there are two replicas')
  return [first, second]
}

/** The replica that runs a run, and the other one. */
async function hostOf(runId: string): Promise<{ host: Replica; other: Replica }> {
  const holder = await eventually(async () => (await observer.conversation.runStore.get(runId))?.holder, `a holder of run ${runId}`)
  const [first, second] = both()
  return holder.includes(`:${first.pid}:`) ? { host: first, other: second } : { host: second, other: first }
}

/** An answer that says its pieces one by one, each when its gate is opened, and then waits once more before it ends. */
function gated(pieces: readonly string[]): { response: FakeResponse; gates: Gate[]; end: Gate } {
  const gates = pieces.map(() => createGate())
  const end = createGate()
  const steps = pieces.flatMap((piece, index) => [gates[index] ?? end, textChunk(piece)])
  return { response: { steps: [...steps, end, finishChunk(), usageChunk(10, pieces.length), DONE] }, gates, end }
}

/** Waits until a reader of the stream has heard this much. */
function heard(replica: Replica, runId: string, text: string): Promise<RunStreamEvent[]> {
  return follow(replica, runId, { until: (_event, all) => spoken(all) === text })
}

const viewOf = (replica: Replica, runId: string): Promise<RunView> => call<RunView>(replica, 'GET', `/v1/runs/${runId}`)

/** A run that has said something and goes on for ever, and one that waits behind it. */
async function startTwo(): Promise<{ first: RunAccepted; second: RunAccepted; request: FakeRequest }> {
  const [replica] = both()
  const trees = [await newTree(replica), await newTree(replica)]
  const before = upstream.requests.length
  upstream.script({ steps: [textChunk('What I said'), HOLD] }, answer('My turn.'))
  const first = await ask(replica, trees[0]?.id ?? '', 'Tell me.')
  await heard(replica, first.run_id, 'What I said')
  const second = await ask(replica, trees[1]?.id ?? '', 'And you?')
  expect(second.queue_position).toBe(1)
  return { first, second, request: await upstream.request(before) }
}

async function expectPartial(replica: Replica, run: RunAccepted, reason: string): Promise<void> {
  const events = await follow(replica, run.run_id)
  expect(spoken(events)).toBe('What I said')
  expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', reason, partial: true, candidate_id: run.candidate_id })
  expect(await node(replica, run.candidate_id)).toMatchObject({ sealed: true, partial: true, text: 'What I said' })
}

describe('one seat', () => {
  it('two asks for one character at once: one runs, the other knows its place, then runs', async () => {
    const trees: TreeView[] = await Promise.all(both().map((replica) => newTree(replica)))
    const gate = createGate()
    upstream.script(
      { steps: [textChunk('One moment. '), gate, textChunk('Yes.'), finishChunk(), usageChunk(1, 1), DONE] },
      answer('And you.'),
    )
    const asked = await Promise.all(both().map((replica, index) => ask(replica, trees[index]?.id ?? '', 'May I?')))
    expect(new Set(asked.map((run) => run.queue_position))).toEqual(new Set([0, 1]))
    const [runs, waits] = asked[0]?.queue_position === 0 ? asked : asked.toReversed()
    if (!runs || !waits) throw new Error('both were accepted')

    await heard(both()[0], runs.run_id, 'One moment. ')
    for (const replica of both()) {
      expect(await viewOf(replica, runs.run_id)).toMatchObject({ state: 'running', queue_position: 0 })
      expect(await viewOf(replica, waits.run_id)).toMatchObject({
        state: 'queued',
        queue_position: 1,
        seat_held_by: { run_id: runs.run_id, tree_id: runs.tree_id },
      })
    }
    const waiting = follow(both()[0], waits.run_id)
    gate.open()
    const events = await waiting
    expect(events.map((event) => event.type).slice(0, 3)).toEqual(['run.requested', 'run.queued', 'run.started'])
    expect(spoken(events)).toBe('And you.')
    const ended = await Promise.all(asked.map((run) => runEnded(both()[1], run.run_id)))
    expect(ended.map((run) => run.state)).toEqual(['finished', 'finished'])
    const [before, after] = ended[0]?.id === runs.run_id ? ended : ended.toReversed()
    expect(Date.parse(after?.started_at ?? '')).toBeGreaterThanOrEqual(Date.parse(before?.ended_at ?? ''))
  })

  it('many asks through both at once are answered one after another, each once, in the order of their places', async () => {
    const trees = await Promise.all(Array.from({ length: 6 }, (_, index) => newTree(both()[index % 2] ?? both()[0])))
    upstream.script(...trees.map((_, index) => answer(`Answer ${index}.`)))
    const before = upstream.requests.length
    const asked = await Promise.all(trees.map((tree, index) => ask(both()[index % 2] ?? both()[0], tree.id, 'Well?')))
    const ended = await Promise.all(asked.map((run) => runEnded(both()[0], run.run_id)))
    expect(ended.map((run) => run.state)).toEqual(asked.map(() => 'finished'))
    expect(upstream.requests.length - before).toBe(6)
    const inLine = asked
      .map((run, index) => ({ place: run.queue_position, run: ended[index] }))
      .toSorted((left, right) => left.place - right.place)
    for (const [index, { run }] of inLine.slice(1).entries()) {
      expect(Date.parse(run?.started_at ?? '')).toBeGreaterThanOrEqual(Date.parse(inLine[index]?.run?.ended_at ?? ''))
    }
  })
})

describe('a stream read from the replica that does not run it', () => {
  it('comes as it is made, and can be left and taken up again anywhere without a gap or a double', async () => {
    const tree = await newTree(both()[0])
    const pieces = Array.from({ length: 6 }, (_, index) => `灯${index} `)
    const { response, gates, end } = gated(pieces)
    upstream.script(response)
    const { run_id: runId, candidate_id: candidateId } = await ask(both()[0], tree.id, 'Count the lamps.')
    const { host, other } = await hostOf(runId)

    const watched = follow(other, runId)
    const heardParts: RunStreamEvent[] = []
    let said = ''
    for (const [index, gate] of gates.entries()) {
      gate.open()
      said += pieces[index] ?? ''
      // Each piece is there before the next one is said. Every other one is read by a stream that is cut and taken up on the other side.
      const reader = index % 2 === 0 ? other : host
      const after = heardParts.at(-1)?.seq ?? 0
      heardParts.push(...(await follow(reader, runId, { after, until: (_event, all) => spoken([...heardParts, ...all]) === said })))
    }
    end.open()
    heardParts.push(...(await follow(other, runId, { after: heardParts.at(-1)?.seq ?? 0 })))
    const whole = await watched
    expect(spoken(whole)).toBe(pieces.join(''))
    expect(whole.at(-1)?.type).toBe('run.finished')
    expect(heardParts).toEqual(whole)
    expect(await follow(host, runId)).toEqual(whole)
    expect((await node(other, candidateId)).text).toBe(pieces.join(''))
  })
})

describe('commands through the other replica', () => {
  it('cancel stops the run where it is: partial sealed, upstream left', async () => {
    const { first, second, request } = await startTwo()
    const { other } = await hostOf(first.run_id)
    await call(other, 'POST', `/v1/runs/${first.run_id}/cancel`)
    await runEnded(other, first.run_id)
    await expectPartial(other, first, 'cancelled')
    expect(await request.closed).toBe(true)
    expect((await runEnded(other, second.run_id)).state).toBe('finished')
  })

  it('cancel takes a waiting run out of the line, and the one behind it moves up', async () => {
    const { first, second } = await startTwo()
    const [one, two] = both()
    const third = await ask(two, (await newTree(two)).id, 'And I?')
    expect(third.queue_position).toBe(2)
    await call(one, 'POST', `/v1/runs/${second.run_id}/cancel`)
    expect(await viewOf(two, second.run_id)).toMatchObject({ state: 'interrupted', reason: 'cancelled' })
    expect(await viewOf(two, third.run_id)).toMatchObject({ state: 'queued', queue_position: 1 })
    await call(two, 'POST', `/v1/runs/${first.run_id}/cancel`)
    expect((await runEnded(one, third.run_id)).state).toBe('finished')
  })

  it('an interjection reaches the run, whose next turn knows it', async () => {
    const [replica] = both()
    const tree = await newTree(replica)
    const gate = createGate()
    upstream.script({ steps: [textChunk('To the left'), gate, finishChunk(), usageChunk(1, 1), DONE] }, answer(', no, right.'))
    const run = await ask(replica, tree.id, 'Where to?')
    await heard(replica, run.run_id, 'To the left')
    const { other } = await hostOf(run.run_id)
    await call(other, 'POST', `/v1/runs/${run.run_id}/steer`, { text: 'The other right!' })
    gate.open()
    const events = await follow(other, run.run_id)
    expect(spoken(events)).toBe('To the left, no, right.')
    expect(events.find((event) => event.type === 'steer.received')).toMatchObject({ used: true, text: 'The other right!' })
    expect(upstream.requests.at(-1)?.bodyText).toContain('The other right!')
  })
})

describe('an owner that is gone', () => {
  it('paused past its lease: the other seals what was said and goes on; back again, it writes nothing (case Q3)', async () => {
    const { first, second, request } = await startTwo()
    const { host, other } = await hostOf(first.run_id)
    host.pause()
    const run = await runEnded(other, first.run_id)
    expect(run).toMatchObject({ state: 'interrupted', reason: 'lease_expired' })
    await expectPartial(other, first, 'lease_expired')
    expect((await runEnded(other, second.run_id)).state).toBe('finished')
    const head = await observer.log.head(`run:${first.run_id}`)
    const row = await observer.conversation.runStore.get(first.run_id)
    host.goOn()
    // It finds out with its next sign of life, and leaves the provider.
    expect(await request.closed).toBe(true)
    expect(await observer.log.head(`run:${first.run_id}`)).toEqual(head)
    expect(await observer.conversation.runStore.get(first.run_id)).toEqual(row)
    await expectPartial(host, first, 'lease_expired')
  })

  it('paused past its lease while the provider speaks on: nothing of that is written (case Q3)', async () => {
    const [replica] = both()
    const tree = await newTree(replica)
    const gate = createGate()
    upstream.script({ steps: [textChunk('What I said'), gate, textChunk(', and more'), finishChunk(), usageChunk(1, 1), DONE] })
    const before = upstream.requests.length
    const run = await ask(replica, tree.id, 'Tell me.')
    await heard(replica, run.run_id, 'What I said')
    const { host, other } = await hostOf(run.run_id)
    host.pause()
    gate.open()
    const request = await upstream.request(before)
    expect(await request.closed).toBe(false)
    await runEnded(other, run.run_id)
    const head = await observer.log.head(`run:${run.run_id}`)
    host.goOn()
    // It answers again, and has read what the provider had sent meanwhile: the run is none of its any more.
    await eventually(async () => (await host.call('GET', '/health/ready')).status === 200, 'the answer of the replica that was paused')
    const late = await ask(host, tree.id, 'Still there?', { parent_id: run.candidate_id })
    upstream.script(answer('Yes.'))
    await runEnded(host, late.run_id)
    expect(await observer.log.head(`run:${run.run_id}`)).toEqual(head)
    await expectPartial(host, run, 'lease_expired')
  })

  it('killed: the other takes over when the lease is over, seals what was said, and the next in line runs (case Q7)', async () => {
    const { first, second } = await startTwo()
    const { host, other } = await hostOf(first.run_id)
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
    const { first, second } = await startTwo()
    const { host, other } = await hostOf(first.run_id)
    const held = Promise.withResolvers<void>()
    const stopped = observer.database.run(async () => {
      await observer.database.query('SELECT 1 FROM runs r JOIN seats s USING (character_id) WHERE r.id = $1::uuid FOR UPDATE', [
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
    const { first, second } = await startTwo()
    const { host, other } = await hostOf(first.run_id)
    await host.end()
    await expectPartial(other, first, 'drained')
    expect((await runEnded(other, second.run_id)).state).toBe('finished')
  })
})

describe('Redis carries nothing that may not be lost', () => {
  /** Everything of this instance, as a flush or a restart without persistence leaves it. */
  async function flush(): Promise<void> {
    const keys = await redis.keys(`${observer.redisPrefix}*`)
    if (keys.length > 0) await redis.del(keys)
  }

  it('emptied in mid-run: nothing changes (case Q5)', async () => {
    const [replica] = both()
    const tree = await newTree(replica)
    const { response, gates, end } = gated(['One, ', 'two, ', 'three.'])
    upstream.script(response, answer('Next.'))
    const run = await ask(replica, tree.id, 'Count.')
    const waits = await ask(replica, (await newTree(replica)).id, 'And then?')
    gates[0]?.open()
    await heard(replica, run.run_id, 'One, ')
    const { other } = await hostOf(run.run_id)
    const watched = follow(other, run.run_id)
    await flush()
    gates[1]?.open()
    await heard(other, run.run_id, 'One, two, ')
    await flush()
    gates[2]?.open()
    end.open()
    expect(spoken(await watched)).toBe('One, two, three.')
    expect((await runEnded(other, waits.run_id)).state).toBe('finished')
  })

  it('away and back again in mid-run: runs go on, streams are read from the log, commands and new asks are taken in', async () => {
    const [replica] = both()
    const tree = await newTree(replica)
    const { response, gates, end } = gated(['One, ', 'two, ', 'three.'])
    upstream.script(response, answer('Next.'), { steps: [textChunk('What I said'), HOLD] })
    const before = upstream.requests.length
    const run = await ask(replica, tree.id, 'Count.')
    gates[0]?.open()
    await heard(replica, run.run_id, 'One, ')
    const { other } = await hostOf(run.run_id)
    const watched = follow(other, run.run_id)
    for (const line of lines) await line.redis.close()

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
    await call((await hostOf(cancelled.run_id)).other, 'POST', `/v1/runs/${cancelled.run_id}/cancel`)
    await runEnded(other, cancelled.run_id)
    await expectPartial(other, cancelled, 'cancelled')
    expect(await (await upstream.request(before + 2)).closed).toBe(true)

    await flush()
    for (const line of lines) await line.redis.open()
    for (const one of both())
      await eventually(async () => (await one.call('GET', '/health/ready')).status === 200, 'a replica that has Redis again')
    upstream.script(answer('Good ', 'again.'))
    const after = await ask(replica, tree.id, 'Well?')
    expect(spoken(await follow(other, after.run_id))).toBe('Good again.')
  })

  it('silent as if the network had swallowed it: runs and their readers do not wait for it', async () => {
    const [replica] = both()
    const tree = await newTree(replica)
    upstream.script(answer('I ', 'speak.'))
    for (const line of lines) line.redis.block()
    const run = await ask(replica, tree.id, 'Are you there?')
    expect(spoken(await follow(both()[1], run.run_id))).toBe('I speak.')
  })
})

describe('PostgreSQL lost in mid-stream', () => {
  it('for a moment: the run ends, saying so, with what had been written', async () => {
    const { first, second, request } = await startTwo()
    const { host, other } = await hostOf(first.run_id)
    const watched = follow(other, first.run_id)
    lines[replicas.indexOf(host)]?.postgres.cut()
    await call(other, 'POST', `/v1/runs/${first.run_id}/cancel`)
    const end = (await watched).at(-1)
    expect(end?.type).toMatch(/^run\.(?:failed|interrupted)$/)
    expect(await node(other, first.candidate_id)).toMatchObject({ sealed: true, partial: true, text: 'What I said' })
    expect(await request.closed).toBe(true)
    expect((await runEnded(other, second.run_id)).state).toBe('finished')
    // The replica itself is well again.
    upstream.script(answer('Still here.'))
    const after = await ask(host, first.tree_id, 'Well?')
    expect(spoken(await follow(host, after.run_id))).toBe('Still here.')
  })

  it('while the provider speaks: what was written before stands, what came after is not made up', async () => {
    const [replica] = both()
    const tree = await newTree(replica)
    const gate = createGate()
    upstream.script({ steps: [textChunk('What I said'), gate, textChunk(', and more'), HOLD] })
    const run = await ask(replica, tree.id, 'Tell me.')
    await heard(replica, run.run_id, 'What I said')
    const { host, other } = await hostOf(run.run_id)
    await lines[replicas.indexOf(host)]?.postgres.close()
    gate.open()
    // The owner cannot say anything about it; when its lease is over, the other does.
    const events = await follow(other, run.run_id)
    expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', reason: 'lease_expired', partial: true })
    await expectPartial(other, run, 'lease_expired')
    await lines[replicas.indexOf(host)]?.postgres.open()
    await eventually(async () => (await host.call('GET', '/health/ready')).status === 200, 'the replica that has PostgreSQL again')
    await expectPartial(host, run, 'lease_expired')
  })
})

describe('jobs', () => {
  it('delivered more than once are done once (case Q1)', async () => {
    await Promise.all(replicas.map((replica) => replica.end()))
    replicas = await startReplicas({ LINGTAI_ROLE: 'all' })
    const [replica] = both()
    const tree = await newTree(replica)
    const gate = createGate()
    const before = upstream.requests.length
    upstream.script(answer('You like tea.'), { steps: [gate, textChunk('{"proposals":[]}'), finishChunk(), usageChunk(1, 1), DONE] })
    const run = await ask(replica, tree.id, 'I like tea.')
    await runEnded(replica, run.run_id)
    await call(replica, 'POST', `/v1/nodes/${run.candidate_id}/canonize`)
    await upstream.request(before + 1)
    const [row] = await observer.database.query<{ id: string; attempts: number }>(
      `SELECT id::text, attempts FROM outbox WHERE topic = 'memory.extract' AND closed_at IS NULL`,
    )
    const queue = new Queue('outbox', { connection: redis.duplicate({ maxRetriesPerRequest: null }), prefix: observer.redisPrefix })
    try {
      const again = Array.from({ length: 5 }, (_, index) => ({
        name: 'row',
        data: { outboxId: row?.id },
        opts: { jobId: `again-${index}` },
      }))
      const added = await queue.addBulk(again)
      await eventually(
        async () => (await Promise.all(added.map((job) => job.getState()))).every((state) => state === 'completed'),
        'the end of the doubles',
      )
      gate.open()
      const done = await eventually(async () => {
        const [now] = await observer.database.query<{ outcome: string | null; attempts: number }>(
          'SELECT outcome, attempts FROM outbox WHERE id = $1::uuid',
          [row?.id ?? ''],
        )
        return now?.outcome === null ? null : now
      }, 'the end of the job')
      expect(done).toEqual({ outcome: 'done', attempts: 1 })
      const late = await queue.add('row', { outboxId: row?.id }, { jobId: 'late' })
      await eventually(async () => (await late.getState()) === 'completed', 'the end of the late double')
      expect(upstream.requests.length - before).toBe(2)
    } finally {
      await queue.close()
    }
  })
})
