import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { MemoryPage, RunAccepted, TreeView } from '#contracts'
import { SystemIds } from '#infra/system/clock'
import type { z } from 'zod'
import { createGate, DONE, finishChunk, HOLD, startFakeUpstream, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeStep, FakeUpstream } from '../support/fake-upstream.ts'
import { MemoryWorld, proposed } from '../support/memory-world.ts'
import { recorded } from '../support/plant.ts'
import { askAndHear, call, eventually, runEnded } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'
import { cancel } from '../support/world.ts'

// Each test walks a turn and a job; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 120_000 })

let upstream: FakeUpstream
let system: TestSystem

beforeAll(async () => {
  upstream = await startFakeUpstream()
  system = await startTestSystem({ model: upstream.baseUrl })
})
afterAll(async () => {
  await system.close()
  await upstream.close()
})
beforeEach(() => upstream.unscript())

type Memories = z.output<typeof MemoryPage>['items']
/** A character, an answer of it, and the question before. */
type Talk = { characterId: string; tree: TreeView; answer: RunAccepted }

async function character(): Promise<{ characterId: string; tree: TreeView }> {
  const { id } = await call<{ id: string }>(system, 'POST', '/v1/characters', { name: 'Mira', description: 'A sailor.' })
  return { characterId: id, tree: await call<TreeView>(system, 'POST', '/v1/trees', { character_id: id, zone: 'UTC' }) }
}

async function talk(): Promise<Talk> {
  const { characterId, tree } = await character()
  upstream.script({ steps: [textChunk('Noted.'), finishChunk(), usageChunk(1, 1), DONE] })
  const { accepted } = await askAndHear(system, tree.id, 'I like plums, and I am a nurse.')
  return { characterId, tree, answer: accepted }
}

/** Makes the answer canonical; a job then asks the model what is in it. */
async function canonize({ answer }: Talk, ...steps: FakeStep[]): Promise<string> {
  const next = upstream.requests.length
  const found = proposed(answer.question_id, { content: 'The user likes plums.' }, { content: 'The user is a nurse.', type: 'fact' })
  upstream.script({ steps: [...steps, textChunk(JSON.stringify(found)), finishChunk(), usageChunk(1, 1), DONE] })
  const { canonization } = await call<{ canonization: { id: string } }>(system, 'POST', `/v1/nodes/${answer.candidate_id}/canonize`)
  await upstream.request(next)
  return canonization.id
}

const memoriesOf = async (characterId: string): Promise<Memories> =>
  (await call<{ items: Memories }>(system, 'GET', `/v1/memories?character_id=${characterId}`)).items

const jobOutcome = (canonizationId: string): Promise<string> =>
  eventually(async () => {
    const [row] = await system.system.database.query<{ outcome: string | null }>(
      `SELECT outcome FROM outbox WHERE payload ->> 'canonization_id' = $1`,
      [canonizationId],
    )
    return row?.outcome
  }, 'the end of the job')

/** A character with a memory that is live and one that waits for consent. */
async function remembered(): Promise<Talk> {
  const told = await talk()
  expect(await jobOutcome(await canonize(told))).toBe('done')
  expect((await memoriesOf(told.characterId)).map((memory) => memory.state).toSorted()).toEqual(['live', 'proposed'])
  return told
}

const remove = async (characterId: string, token?: string): Promise<number> =>
  (await system.call('DELETE', `/v1/characters/${characterId}`, token === undefined ? {} : { token })).status
const deletions = (characterId: string): Promise<{ memory_id: string; cause: string }[]> =>
  recorded(system, `memory:${characterId}`, 'memory.deleted')
const rows = (sql: string, characterId: string): Promise<unknown[]> => system.system.database.query(sql, [characterId])
/** Sessions of this database that wait for a lock. */
const waiting = `SELECT w.pid FROM pg_locks w WHERE NOT w.granted AND EXISTS (
  SELECT 1 FROM pg_locks h JOIN pg_database d ON d.oid = h.database WHERE h.pid = w.pid AND h.granted AND d.datname = current_database())`
const texts = `SELECT c.body FROM memories m JOIN memory_versions v ON v.memory_id = m.id JOIN contents c ON c.id = v.content_id WHERE m.character_id = $1::uuid`

/** All that was remembered of a character is gone, and each memory once. */
async function expectForgotten(characterId: string): Promise<void> {
  expect(await rows('SELECT DISTINCT state FROM memories WHERE character_id = $1::uuid', characterId)).toEqual([{ state: 'deleted' }])
  expect(await rows(texts, characterId)).toEqual([{ body: null }, { body: null }])
  expect(await rows('SELECT key FROM memory_keys WHERE character_id = $1::uuid', characterId)).toEqual([])
  const deleted = await deletions(characterId)
  expect(deleted.map((event) => event.cause)).toEqual(['owner', 'owner'])
  expect(new Set(deleted.map((event) => event.memory_id)).size).toBe(2)
  expect((await recorded(system, `character:${characterId}`, 'character.deleted')).length).toBe(1)
}

describe('deleting a character', () => {
  it('forgets what was remembered of it, proposals too, at once; somebody else and a second time find nothing', async () => {
    const { characterId, tree } = await remembered()
    const [proposal] = (await memoriesOf(characterId)).filter((memory) => memory.state === 'proposed')
    expect(await remove(characterId, system.ownerBToken)).toBe(404)
    expect((await memoriesOf(characterId)).map((memory) => memory.state).toSorted()).toEqual(['live', 'proposed'])
    expect(await remove(characterId)).toBe(204)
    await expectForgotten(characterId)
    const confirmed = await system.call('POST', `/v1/memories/${proposal?.id}/confirm`, { body: {} })
    expect(confirmed.status).toBe(409)
    expect(await remove(characterId)).toBe(404)
    expect(await remove(characterId, system.ownerBToken)).toBe(404)
    await expectForgotten(characterId)
    expect((await system.call('GET', `/v1/trees/${tree.id}`)).status).toBe(200)
  })

  it('does it once where it is asked for several times at once', async () => {
    const { characterId } = await remembered()
    const statuses = await Promise.all(Array.from({ length: 4 }, () => remove(characterId)))
    expect(statuses.toSorted()).toEqual([204, 404, 404, 404])
    await expectForgotten(characterId)
  })

  it('deletes nothing of it where the memories cannot be forgotten, and forgets nothing where it cannot be deleted (M9)', async () => {
    const { database } = system.system
    const { characterId } = await remembered()
    await database.execute(`CREATE FUNCTION refuse_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$`)
    for (const [table, on] of [
      ['memory_keys', 'BEFORE DELETE'],
      ['characters', 'BEFORE UPDATE'],
    ]) {
      await database.execute(`CREATE TRIGGER refuse_it ${on} ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse_it()`)
      expect(await remove(characterId)).toBe(500)
      await database.execute(`DROP TRIGGER refuse_it ON ${table}`)
      expect((await memoriesOf(characterId)).map((memory) => memory.state).toSorted()).toEqual(['live', 'proposed'])
      expect((await system.call('GET', `/v1/characters/${characterId}`)).status).toBe(200)
      expect(await deletions(characterId)).toEqual([])
    }
    expect(await remove(characterId)).toBe(204)
    await expectForgotten(characterId)
  })

  it('waits for no job, which then finds nothing to remember', async () => {
    const told = await talk()
    const gate = createGate()
    const canonizationId = await canonize(told, gate)
    expect(await remove(told.characterId)).toBe(204)
    gate.open()
    expect(await jobOutcome(canonizationId)).toBe('given_up')
    expect(await recorded(system, `memory:${told.characterId}`, 'extraction.given_up')).toMatchObject([{ code: 'nothing_live' }])
    expect(await rows('SELECT id FROM memories WHERE character_id = $1::uuid', told.characterId)).toEqual([])
  })

  it('waits for an extraction that is storing, and forgets what that stores', async () => {
    const { database } = system.system
    const told = await talk()
    const world = new MemoryWorld({ database, ids: new SystemIds() })
    const slice = await world.slice()
    slice.answer(() =>
      proposed(told.answer.question_id, { content: 'The user likes plums.' }, { content: 'The user is a nurse.', type: 'fact' }),
    )
    const storing = Promise.withResolvers<void>()
    const canonizationId = await canonize(told, HOLD)
    let removed: Promise<number> | undefined
    await slice.extraction.extract(canonizationId, {
      // The end of its transaction: the memories are there and not committed, and the deletion comes.
      onEnd: async () => {
        removed = remove(told.characterId)
        removed.then(() => storing.resolve(), storing.reject)
        // On the light tier transactions are serial: it waits to begin.
        if (system.tier === 'full') await eventually(async () => (await database.query(waiting)).length > 0, 'a deletion that waits')
      },
    })
    await storing.promise
    expect(await removed).toBe(204)
    await expectForgotten(told.characterId)
  })

  it('is refused while an answer of it is under way', async () => {
    const { characterId, tree } = await character()
    const next = upstream.requests.length
    upstream.script({ steps: [textChunk('Hm'), HOLD] })
    const asked = await call<RunAccepted>(system, 'POST', `/v1/trees/${tree.id}/runs`, { text: 'hello' })
    await upstream.request(next)
    expect(await remove(characterId)).toBe(409)
    await cancel({ system }, asked.run_id)
    await runEnded(system, asked.run_id)
    expect(await remove(characterId)).toBe(204)
  })
})
