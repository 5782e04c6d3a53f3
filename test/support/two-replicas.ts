/**
 * Two servers on one PostgreSQL and one Redis, each in a process of its own and reached by lines that can be cut, with a scripted provider
 * and an observer that looks at the database beside them and does no work.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect } from 'vitest'
import type { Problem, RunAccepted, RunStreamEvent, RunView, TokenScope } from '#contracts'
import { loadConfig } from '#infra/config/config'
import type { RunRow } from '#kernel/ports/run-store'
import { createLogger } from '#infra/logging/logger'
import { composeSystem } from '../../apps/bff/composition/compose-system.ts'
import type { System } from '../../apps/bff/composition/compose-system.ts'
import { fullTierServices } from './environment.ts'
import { createGate, DONE, finishChunk, HOLD, startFakeUpstream, textChunk, usageChunk } from './fake-upstream.ts'
import type { FakeRequest, FakeResponse, FakeUpstream, Gate } from './fake-upstream.ts'
import { createFullDatabase } from './full-database.ts'
import { makeTestHome } from './light-database.ts'
import { startReplica } from './replica.ts'
import type { Replica, ReplicaProcess } from './replica.ts'
import { answer, ask, call, eventually, follow, newTree, node, spoken } from './story.ts'
import { startTcpProxy } from './tcp-proxy.ts'
import type { TcpProxy } from './tcp-proxy.ts'

/** One process's ways to the services, so that it can be cut off alone. */
export type Lines = { postgres: TcpProxy; redis: TcpProxy }

/** `environment`: what this process has that the other has not; its home stays the same over its lives. */
type Place = { lines: Lines; environment: Record<string, string>; process: ReplicaProcess | null }

/** The two, for one test file: `prepare` before each test, `settle` after it, `close` at the end. */
export class TwoReplicas {
  readonly upstream: FakeUpstream
  readonly observer: System
  readonly redis: Redis
  readonly #environment: Record<string, string>
  readonly #places: readonly Place[]
  readonly #dropDatabase: () => Promise<void>
  #replicas: readonly Replica[] = []

  constructor(parts: {
    upstream: FakeUpstream
    observer: System
    redis: Redis
    environment: Record<string, string>
    places: readonly Place[]
    dropDatabase: () => Promise<void>
  }) {
    this.upstream = parts.upstream
    this.observer = parts.observer
    this.redis = parts.redis
    this.#environment = parts.environment
    this.#places = parts.places
    this.#dropDatabase = parts.dropDatabase
  }

  get both(): [Replica, Replica] {
    const [first, second] = this.#replicas
    if (!first || !second) throw new Error('there are two replicas')
    return [first, second]
  }

  get lines(): Lines[] {
    return this.#places.map(({ lines }) => lines)
  }

  linesOf(replica: Replica): Lines {
    const place = this.#places.find(({ process }) => process?.pid === replica.pid)
    if (!place) throw new Error(`there is no replica ${replica.pid}`)
    return place.lines
  }

  /** Two that are alive and well, seen by a fresh owner: a character has one seat, and each test has a character of its own. */
  async prepare(): Promise<void> {
    const processes = await Promise.all(this.#places.map((place) => this.#living(place)))
    const token = await this.newOwner()
    this.#replicas = processes.map((one) => one.as(token))
    for (const replica of this.#replicas) await isWell(replica)
  }

  async #living(place: Place): Promise<ReplicaProcess> {
    if (place.process?.isAlive()) return place.process
    const { postgres, redis } = place.lines
    place.process = await startReplica({ ...this.#environment, ...place.environment, DATABASE_URL: postgres.url, REDIS_URL: redis.url })
    return place.process
  }

  /** The process at a place (0 or 1), started where there is none; resolves when it has both services. */
  async revive(index: number): Promise<ReplicaProcess> {
    const place = this.#places[index]
    if (!place) throw new Error(`there is no place ${index}`)
    const process = await this.#living(place)
    await isWell(process.as(''))
    return process
  }

  /** The process at a place as it is now, dead or alive. */
  processAt(index: number): ReplicaProcess {
    const process = this.#places[index]?.process
    if (!process) throw new Error(`nothing was started at place ${index}`)
    return process
  }

  /** A token of a fresh owner. */
  async newOwner(scopes: readonly TokenScope[] = ['read', 'write']): Promise<string> {
    const { owners, tokens } = this.observer.identity
    const owner = await owners.create({ name: randomUUID(), role: 'user', actor: 'system' })
    const { token } = await tokens.create({ ownerId: owner.id, name: 'test', scopes, grantable: new Set(scopes), actor: 'operator' })
    if (token === null) throw new Error('a fresh token is shown')
    return token
  }

  /** Takes back what a test did to lines and processes; the record has to be whole, whatever that was. */
  async settle(): Promise<void> {
    for (const { postgres, redis } of this.lines) await Promise.all([postgres.open(), redis.open()])
    for (const { process } of this.#places) if (process?.isAlive()) process.goOn()
    this.upstream.unscript()
    await this.#expectWholeRecord()
  }

  async #expectWholeRecord(): Promise<void> {
    expect((await this.observer.conversation.verify.verifyAll()).faults).toEqual([])
  }

  async close(): Promise<void> {
    await Promise.all(this.#places.flatMap(({ process }) => process?.end() ?? []))
    await this.#expectWholeRecord()
    await this.observer.close()
    for (const { postgres, redis } of this.lines) await Promise.all([postgres.close(), redis.close()])
    this.redis.disconnect()
    await this.upstream.close()
    await this.#dropDatabase()
  }

  /** The replica that runs a run, and the other one. */
  async hostOf(runId: string): Promise<{ host: Replica; other: Replica }> {
    const holder = await eventually(async () => (await this.observer.conversation.runStore.get(runId))?.holder, `a holder of run ${runId}`)
    return this.holder(holder)
  }

  /** The replica that calls itself so in the database, and the other one. */
  holder(name: string): { host: Replica; other: Replica } {
    const [first, second] = this.both
    if (name.includes(`:${first.pid}:`)) return { host: first, other: second }
    if (name.includes(`:${second.pid}:`)) return { host: second, other: first }
    throw new Error(`${name} is neither ${first.pid} nor ${second.pid}`)
  }

  /** The run as the database has it. */
  async rowOf(runId: string): Promise<RunRow> {
    const row = await this.observer.conversation.runStore.get(runId)
    if (!row) throw new Error(`there is no run ${runId}`)
    return row
  }

  /** Removes everything that this instance has in Redis, as a flush or a restart without persistence does. */
  async flushRedis(): Promise<void> {
    const keys = await this.redis.keys(`${this.observer.redisPrefix}*`)
    if (keys.length > 0) await this.redis.del(keys)
  }

  /** A run that has said `What I said` and goes on for ever, and one that waits behind it. */
  async startTwo(): Promise<{ first: RunAccepted; second: RunAccepted; request: FakeRequest }> {
    const [replica] = this.both
    const trees = [await newTree(replica), await newTree(replica)]
    const before = this.upstream.requests.length
    this.upstream.script({ steps: [textChunk('What I said'), HOLD] }, answer('My turn.'))
    const first = await ask(replica, trees[0]?.id ?? '', 'Tell me.')
    await heard(replica, first.run_id, 'What I said')
    const second = await ask(replica, trees[1]?.id ?? '', 'And you?')
    expect(second.queue_position).toBe(1)
    return { first, second, request: await this.upstream.request(before) }
  }
}

/** What a request to the provider says of where it comes from. */
export const placeOf = (request: Pick<FakeRequest, 'headers'>): number => Number(request.headers.authorization?.replace(/^\D*/, ''))

/** `role`: what each of the two does. `answers`: what the provider says where nothing is scripted. */
export async function startTwoReplicas({
  role,
  answers,
  environment: further = {},
}: {
  role: 'bff' | 'all'
  answers?: (request: FakeRequest) => FakeResponse
  environment?: Record<string, string>
}): Promise<TwoReplicas> {
  const { databaseUrl, redisUrl } = fullTierServices()
  const { url, close } = await createFullDatabase(databaseUrl)
  const upstream = await startFakeUpstream(answers ? { answers } : {})
  const environment = {
    LINGTAI_ROLE: role,
    OPENAI_BASE_URL: upstream.baseUrl,
    OPENAI_API_KEY: 'test-key',
    LINGTAI_MODEL: 'test-model',
    // The same for all of one instance: with it they sign anchors, and know each other's.
    LINGTAI_SECRET_KEYS: `test:${randomBytes(32).toString('base64')}`,
    ...further,
  }
  const observer = await composeSystem({
    config: loadConfig({ ...environment, DATABASE_URL: url, REDIS_URL: redisUrl, LINGTAI_HOME: makeTestHome() }),
    logger: createLogger('silent'),
  })
  const place = async (index: number): Promise<Place> => ({
    lines: { postgres: await startTcpProxy(url), redis: await startTcpProxy(redisUrl) },
    environment: { LINGTAI_HOME: makeTestHome(), OPENAI_API_KEY: `test-key-${index}` },
    process: null,
  })
  const places = [await place(0), await place(1)]
  return new TwoReplicas({ upstream, observer, redis: new Redis(redisUrl), environment, places, dropDatabase: close })
}

/** Waits until the replica has both services. */
export async function isWell(replica: Replica): Promise<void> {
  await eventually(async () => (await replica.call('GET', '/health/ready')).status === 200, `replica ${replica.pid} to be well`)
}

/** An answer that says its pieces one by one, each when its gate is opened, and then waits once more before it ends. */
export function gated(pieces: readonly string[]): { response: FakeResponse; gates: Gate[]; end: Gate } {
  const gates = pieces.map(() => createGate())
  const end = createGate()
  const steps = pieces.flatMap((piece, index) => [gates[index] ?? end, textChunk(piece)])
  return { response: { steps: [...steps, end, finishChunk(), usageChunk(10, pieces.length), DONE] }, gates, end }
}

/** Waits until a reader of the stream has heard this much. */
export function heard(replica: Replica, runId: string, text: string): Promise<RunStreamEvent[]> {
  return follow(replica, runId, { until: (_event, all) => spoken(all) === text })
}

export const viewOf = (replica: Replica, runId: string): Promise<RunView> => call<RunView>(replica, 'GET', `/v1/runs/${runId}`)

/** What the first run of `startTwo` had said is there, sealed, shown as a part, and nothing makes a whole of it (M7). */
export async function expectPartial(replica: Replica, run: RunAccepted, reason: string): Promise<void> {
  const events = await follow(replica, run.run_id)
  expect(spoken(events)).toBe('What I said')
  expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', reason, partial: true, candidate_id: run.candidate_id })
  expect(await node(replica, run.candidate_id)).toMatchObject({ sealed: true, partial: true, text: 'What I said' })
  const refused = await call<Problem>(replica, 'POST', `/v1/nodes/${run.candidate_id}/canonize`, undefined, { status: 409 })
  expect(refused.code).toBe('partial_not_canonizable')
}
