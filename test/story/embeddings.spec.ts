import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { EventType, RunAccepted } from '#contracts'
import { planTables } from '#infra/archive/tables'
import { loadConfig } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import { EmbeddingRequestRepository } from '#infra/prisma/embedding-request.repository'
import { settleLeftEmbeddings } from '#kernel/effects/embedding-record'
import { composeSystem } from '../../apps/bff/composition/compose-system.ts'
import { exitMessage } from '../../apps/bff/exit-message.ts'
import { createGate, startFakeUpstream } from '../support/fake-upstream.ts'
import type { FakeRequest, FakeResponse, FakeUpstream } from '../support/fake-upstream.ts'
import { expectReplays } from '../support/replays.ts'
import { answer, askAndHear, call, eventually, newTree } from '../support/story.ts'
import { openStore, startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'
import { limited } from '../support/world.ts'

/*
 * Vectors from an endpoint elsewhere: each request is an effect of its own, with its intent in the record before it leaves and one terminal
 * after it; what stops it stops the vectors alone, never an answer (K3, K6, K8).
 */

type Recorded = { stream: string; type: EventType; payload: Record<string, unknown>; owner_id: string | null; run_id: string | null }

/** One vector for each text, of four numbers; seven tokens, whatever was asked. */
function vectors(request: FakeRequest): FakeResponse {
  const { input } = JSON.parse(request.bodyText) as { input: string[] }
  const data = input.map((text, index) => ({ index, embedding: [text.length, 1, 2, 3] }))
  return { headers: { 'content-type': 'application/json' }, steps: [JSON.stringify({ data, usage: { total_tokens: 7 } })] }
}

/** Answers for requests of embeddings; `answers` is put in place of the usual one. */
class Endpoint {
  seen: FakeRequest[] = []
  answers: ((request: FakeRequest) => FakeResponse | Promise<FakeResponse>) | null = null

  answer = async (request: FakeRequest): Promise<FakeResponse> => {
    this.seen.push(request)
    return (this.answers ?? vectors)(request)
  }
}

const endpoint = new Endpoint()
let upstream: FakeUpstream
let system: TestSystem
let characterId: string

const environment = { LINGTAI_EMBEDDING_MODEL: 'test-vectors', LINGTAI_EMBEDDING_PRICE: '1000000', LINGTAI_MODEL_PRICE: '0,0' }

beforeAll(async () => {
  upstream = await startFakeUpstream({ answersJobs: true, embeddings: endpoint.answer })
  system = await startTestSystem({ model: upstream.baseUrl, environment })
  characterId = (await call<{ items: { id: string }[] }>(system, 'GET', '/v1/characters')).items[0]?.id ?? ''
})
afterEach(() => {
  endpoint.answers = null
  upstream.unscript()
})
afterAll(async () => {
  await expectReplays(system)
  expect((await system.system.conversation.verify.verifyAll()).faults).toEqual([])
  await system.close()
  await upstream.close()
})

/** Everything on the streams of embedding requests, in order. */
async function record(of = system): Promise<Recorded[]> {
  return of.system.database.query<Recorded>(
    `SELECT stream, type, payload, owner_id, run_id FROM events WHERE stream LIKE 'embedding:%' ORDER BY position`,
  )
}

/** What came to the record, and to the endpoint, while `work` went on. */
async function during<Result>(work: () => Promise<Result>, of = system) {
  const [before, sent] = [(await record(of)).length, endpoint.seen.length]
  const result = await work()
  return { result, events: (await record(of)).slice(before), sent: endpoint.seen.slice(sent) }
}

const typesOf = (events: readonly Recorded[]): string[] => events.map(({ type }) => type)

async function talk(text: string, of = system): Promise<RunAccepted> {
  upstream.script(answer('Well.'))
  const tree = await newTree(of)
  const heard = await askAndHear(of, tree.id, text)
  expect(heard.text).toBe('Well.')
  return heard.accepted
}

/** How a run's recall went on: `used`, or without vectors. */
async function vectorLeg(runId: string, of = system): Promise<string | undefined> {
  const { items } = await of.system.memory.recalls.list(of.ownerId, { run_id: runId, limit: 5 })
  return items[0]?.vector_leg
}

/** A person's own search, outside of runs. */
async function search(text: string, who: { ownerId: string; characterId: string } = { ownerId: system.ownerId, characterId }) {
  const realm = await system.system.database.query<{ realm_id: string }>('SELECT realm_id FROM characters WHERE id = $1::uuid', [
    who.characterId,
  ])
  return system.system.memory.recalls.recall({
    owner_id: who.ownerId,
    character_id: who.characterId,
    realm_id: realm[0]?.realm_id ?? '',
    queries: [{ text, weight: 1 }],
    runId: null,
  })
}

describe('a request for embeddings', () => {
  it('has its intent in the record before it arrives, and one terminal after it', async () => {
    const arrived: Recorded[][] = []
    endpoint.answers = async (request) => {
      arrived.push((await record()).slice(-2))
      return vectors(request)
    }
    const { result, events, sent } = await during(() => talk('What did I tell you of the heron?'))
    expect(sent).toHaveLength(1)
    const effect = { effect_id: events[0]?.payload['effect_id'] }
    expect(arrived[0]).toMatchObject([
      { type: 'budget.reserved', stream: `embedding:${String(effect.effect_id)}`, payload: effect },
      { type: 'embedding.requested', payload: { ...effect, purpose: 'recall', model: 'test-vectors' } },
    ])
    expect(events).toMatchObject([
      { type: 'budget.reserved' },
      { type: 'embedding.requested', run_id: result.run_id, owner_id: system.ownerId },
      { type: 'embedding.completed', payload: { ...effect, tokens: 7, estimated: false, dimensions: 4 } },
      { type: 'budget.settled', payload: { ...effect, tokens: 7, cost_micros: 7, estimated: false } },
    ])
    expect(JSON.stringify(events)).not.toContain('heron')
    expect(await vectorLeg(result.run_id)).toBe('used')
  })

  it('is on record for what the instance itself wanted to know when it began', async () => {
    const [first] = await record()
    expect(first).toMatchObject({ type: 'budget.reserved', owner_id: null, run_id: null })
    const purposes = (await record()).flatMap(({ payload }) => payload['purpose'] ?? [])
    expect(purposes.slice(0, 2)).toEqual(['probe', 'probe'])
  })

  it.each<[string, FakeResponse, string, number]>([
    ['was refused', { status: 429, headers: { 'content-type': 'application/json' }, steps: ['{}'] }, 'embedding.failed', 0],
    ['was cut off', { beforeHeaders: 'CUT' }, 'embedding.unknown', -1],
    ['got no vectors', { headers: { 'content-type': 'application/json' }, steps: ['{"data":[]}'] }, 'embedding.unknown', -1],
  ])('that %s is charged for what it may have cost, is not sent again, and costs no answer', async (_, response, terminal, charged) => {
    endpoint.answers = () => response
    const { result, events, sent } = await during(() => talk('And of the heron?'))
    expect(sent).toHaveLength(1)
    expect(typesOf(events)).toEqual(['budget.reserved', 'embedding.requested', terminal, 'budget.settled'])
    expect(events[3]?.payload['tokens']).toBe(charged < 0 ? events[0]?.payload['tokens'] : charged)
    expect(await vectorLeg(result.run_id)).toBe('unavailable')
  })

  it.each(['global', 'owner', 'character'] as const)('is not sent under the kill switch of the %s', async (scope) => {
    const scopeId = { global: '00000000-0000-0000-0000-000000000000', owner: system.ownerId, character: characterId }[scope]
    await call(system, 'PUT', `/v1/admin/kill/${scope}/${scopeId}`)
    const stopped = await during(() => search('herons'))
    await call(system, 'DELETE', `/v1/admin/kill/${scope}/${scopeId}`)
    expect(stopped.sent).toEqual([])
    expect(stopped.events).toMatchObject([{ type: 'embedding.refused', payload: { code: 'killed', purpose: 'recall', texts: 1 } }])
    expect(typesOf((await during(() => search('herons'))).events)).toContain('embedding.completed')
  })

  it('does not pass its run’s bound on cost: the answer does without', async () => {
    await limited({ system }, { max_cost_micros: 3 }, async () => {
      const { result, events, sent } = await during(() => talk('Poor herons?'))
      expect(sent).toEqual([])
      expect(events).toMatchObject([
        { type: 'budget.exhausted', payload: { which: 'max_cost_micros', limit: 3 } },
        { type: 'embedding.refused', run_id: result.run_id, payload: { code: 'max_cost_micros' } },
      ])
      expect(await vectorLeg(result.run_id)).toBe('unavailable')
    })
  })

  it('counts towards its run’s bound on cost, with what the model is charged', async () => {
    await limited({ system }, { max_cost_micros: 1_000 }, async () => {
      const { run_id: runId } = await talk('Rich herons?')
      const [projected] = await system.system.log.read(`run:${runId}`, { types: ['context.projected'] })
      expect(projected?.record.cause.readings).toMatchObject({ embedding_micros: 7 })
      const ledger = new EmbeddingRequestRepository(system.system.database)
      const cause = { purpose: 'recall', ownerId: system.ownerId, characterId, runId } as const
      expect(await ledger.limits(cause)).toEqual({ killed: false, cost: { boundMicros: 1_000, spentMicros: 7 } })
    })
  })

  it('left open by who is gone is unknown, once, whoever says so; its late answer is nobody’s', async () => {
    const [arrived, gate] = [createGate(), createGate()]
    endpoint.answers = async (request) => {
      arrived.open()
      await gate.opened
      return vectors(request)
    }
    const { database, log, clock } = system.system
    const { result: audit, events } = await during(async () => {
      const searching = search('late herons')
      await arrived.opened
      const settle = () =>
        settleLeftEmbeddings(
          { unitOfWork: database, log, ledger: new EmbeddingRequestRepository(database), clock, report: () => undefined },
          { aliveHolder: 'another process' },
        )
      const counts = await Promise.all([settle(), settle(), settle()])
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1)
      gate.open()
      return (await searching).auditId
    })
    expect(typesOf(events)).toEqual(['budget.reserved', 'embedding.requested', 'embedding.unknown', 'budget.settled'])
    expect(events[2]?.payload['code']).toBe('owner_lost')
    expect((await system.system.memory.recalls.audit(system.ownerId, audit))?.vector_leg).toBe('unavailable')
  })

  it('has one terminal in the database too, and no other past', async () => {
    await search('herons')
    const { database } = system.system
    const last = `(SELECT id FROM embedding_requests WHERE state = 'completed' ORDER BY id DESC LIMIT 1)`
    for (const change of [
      `UPDATE embedding_requests SET state = 'failed' WHERE id = ${last}`,
      `UPDATE embedding_requests SET state = 'requested', settled_at = NULL, charged_tokens = NULL WHERE id = ${last}`,
      `UPDATE embedding_requests SET charged_micros = 0 WHERE id = ${last}`,
      `UPDATE embedding_requests SET reserved_tokens = 0 WHERE id = ${last}`,
      `UPDATE embedding_requests SET salt = decode(repeat('00', 32), 'hex') WHERE id = ${last}`,
      `DELETE FROM embedding_requests WHERE id = ${last}`,
    ]) {
      await expect(database.execute(change), change).rejects.toMatchObject({ code: 'LT011' })
    }
    expect(await new EmbeddingRequestRepository(database).settle((await settledId()) ?? '', { ...nothing, state: 'unknown' })).toBe(false)
  })

  it('loses the key of its digest with the first text that its owner has erased', async () => {
    const { run_id: runId, question_id: questionId } = await talk('Forget this heron.')
    expect(await salted()).toBeGreaterThan(0)
    await call(system, 'DELETE', `/v1/nodes/${questionId}`)
    expect(await salted()).toBe(0)
    // An archive made before knows nothing of an erasure after it.
    const kept = (await planTables(system.system.database)).find(({ name }) => name === 'embedding_requests')
    expect(kept?.columns.map(({ name }) => name)).toContain('charged_micros')
    expect(kept?.columns.map(({ name }) => name)).not.toContain('salt')
    expect((await record()).some(({ run_id: id, type }) => id === runId && type === 'embedding.requested')).toBe(true)
  })
})

const nothing = { code: null, chargedTokens: 0, chargedMicros: 0 }

async function settledId(): Promise<string | undefined> {
  const [row] = await system.system.database.query<{ id: string }>(`SELECT id FROM embedding_requests WHERE state = 'completed' LIMIT 1`)
  return row?.id
}

async function salted(): Promise<number> {
  const [row] = await system.system.database.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM embedding_requests WHERE owner_id = $1::uuid AND salt IS NOT NULL',
    [system.ownerId],
  )
  return row?.count ?? -1
}

describe('without a price', () => {
  let unpriced: TestSystem
  beforeAll(async () => {
    unpriced = await startTestSystem({ model: upstream.baseUrl, environment: { ...environment, LINGTAI_EMBEDDING_PRICE: '' } })
  })
  afterAll(() => unpriced.close())

  it('no run that is bound by cost asks for embeddings; others do', async () => {
    await limited({ system: unpriced }, { max_cost_micros: 1_000_000 }, async () => {
      const { result, events, sent } = await during(() => talk('Unpriced herons?', unpriced), unpriced)
      expect(sent).toEqual([])
      expect(events).toMatchObject([{ type: 'budget.exhausted' }, { type: 'embedding.refused', payload: { code: 'price_unknown' } }])
      expect(await vectorLeg(result.run_id, unpriced)).toBe('unavailable')
    })
    const free = await during(() => talk('More of them?', unpriced), unpriced)
    expect(typesOf(free.events)).toEqual(['budget.reserved', 'embedding.requested', 'embedding.completed', 'budget.settled'])
    expect(free.events[3]?.payload).not.toHaveProperty('cost_micros')
  })
})

describe('the offline embedder', () => {
  it('lets nothing out, and so nothing is recorded', async () => {
    const offline = await startTestSystem({ model: upstream.baseUrl })
    const { result, events, sent } = await during(() => talk('Offline herons?', offline), offline)
    expect([events, sent]).toEqual([[], []])
    expect(await vectorLeg(result.run_id, offline)).toBe('used')
    expect(
      await eventually(async () => (await offline.system.database.query('SELECT 1 FROM embedding_requests')).length === 0, 'no row'),
    ).toBe(true)
    await offline.close()
  })
})

describe('a first start whose endpoint gives no vectors', () => {
  it('says which one, why, and what to do, and leaves nothing open', async () => {
    const store = await openStore()
    const config = loadConfig({
      PORT: '0',
      LINGTAI_HOME: store.home,
      ...store.environment,
      OPENAI_BASE_URL: upstream.baseUrl,
      OPENAI_API_KEY: 'test-key',
      LINGTAI_MODEL: 'test-model',
      LINGTAI_EMBEDDING_MODEL: 'test-vectors',
    })
    endpoint.answers = () => ({
      status: 404,
      headers: { 'content-type': 'application/json' },
      steps: ['{"error":{"message":"no such model"}}'],
    })
    const overrides = store.connection ? { connection: store.connection } : {}
    const started = composeSystem({ config, logger: createLogger('silent'), overrides, plugins: [] })
    const error: unknown = await started.catch((reason: unknown) => reason)
    expect(exitMessage(error)).toMatch(
      /^the configuration cannot be used:\n {2}LINGTAI_EMBEDDING_MODEL: http\S+ gave no vectors of test-vectors \(failed: /,
    )
    await store.close()
  })
})
