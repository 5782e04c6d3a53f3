import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ExtractionView } from '#contracts'
import type { ChatRequestBody } from '#kernel/ports/model-gateway'
import { proposed } from '../support/memory-world.ts'
import { DONE, finishChunk, HOLD, startFakeUpstream, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeRequest, FakeResponse, FakeUpstream } from '../support/fake-upstream.ts'
import { recorded } from '../support/plant.ts'
import { expectReplays } from '../support/replays.ts'
import { askAndHear, call, eventually, newTree } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'

// Each test walks several tries of a job; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 120_000 })

let upstream: FakeUpstream
let system: TestSystem
let characterId: string

beforeAll(async () => {
  upstream = await startFakeUpstream()
  system = await startTestSystem({ model: upstream.baseUrl })
  const { items } = await call<{ items: { id: string }[] }>(system, 'GET', '/v1/characters')
  characterId = items[0]?.id ?? ''
})
afterAll(async () => {
  await expectReplays(system)
  await system.close()
  await upstream.close()
})
beforeEach(() => upstream.unscript())

type JobRow = { id: string; attempts: number; last_error: string | null; outcome: string | null }

const says = (text: string): FakeResponse => ({ steps: [textChunk(text), finishChunk(), usageChunk(1, 1), DONE] })
/** An outage that is not worth a second request of the same run. */
const down: FakeResponse = { status: 401, headers: { 'content-type': 'application/json' }, steps: ['{"error":{"message":"no"}}'] }

/** Finds something to remember in the first message that it is shown, and takes it for new. */
const finds =
  (content: string) =>
  (request: FakeRequest): FakeResponse => {
    const body = JSON.parse(request.bodyText) as ChatRequestBody
    const shown = JSON.parse(body.messages[1]?.content ?? '{}') as { messages?: { id: string }[] }
    const source = shown.messages?.[0]?.id
    return says(
      JSON.stringify(source === undefined ? { decisions: [{ index: 0, action: 'store', target_ids: [] }] } : proposed(source, { content })),
    )
  }

/** An answer is made canonical; the model answers the job that this starts as scripted. */
async function canonized(...jobs: (FakeResponse | ((request: FakeRequest) => FakeResponse))[]): Promise<string> {
  const tree = await newTree(system)
  upstream.script(says('Noted.'))
  const { accepted } = await askAndHear(system, tree.id, 'I like tea.')
  upstream.script(...jobs)
  const { canonization } = await call<{ canonization: { id: string } }>(system, 'POST', `/v1/nodes/${accepted.candidate_id}/canonize`)
  return canonization.id
}

async function jobOf(canonizationId: string): Promise<JobRow> {
  const [row] = await system.system.database.query<JobRow>(
    `SELECT id::text, attempts, last_error, outcome FROM outbox WHERE payload ->> 'canonization_id' = $1`,
    [canonizationId],
  )
  if (!row) throw new Error('there is no such job')
  return row
}

/** Lets the job's pauses pass, until `isThere`. */
function triedUntil(canonizationId: string, isThere: (row: JobRow) => boolean): Promise<JobRow> {
  const { database, memory } = system.system
  return eventually(async () => {
    const row = await jobOf(canonizationId)
    if (isThere(row)) return row
    await database.execute(`UPDATE outbox SET due_at = now() - interval '1 second' WHERE id = $1::uuid AND closed_at IS NULL`, [row.id])
    await memory.jobs.perform(row.id)
    return null
  }, 'the end of the job')
}

async function storedOf(canonizationId: string): Promise<number> {
  const { database } = system.system
  return (
    await database.query(
      'SELECT DISTINCT memory_id FROM memory_sources s JOIN memory_versions v ON v.id = s.version_id WHERE s.canonization_id = $1::uuid',
      [canonizationId],
    )
  ).length
}

async function givenUp(canonizationId: string): Promise<unknown[]> {
  const events = await recorded(system, `memory:${characterId}`, 'extraction.given_up')
  return events.filter((event) => event.canonization_id === canonizationId)
}

describe('the job that extracts memories', () => {
  it('outlives an outage of the model: tried again, stored once, closed as done', async () => {
    const id = await canonized(down, down, finds('The user likes tea.'))
    expect(await triedUntil(id, (row) => row.outcome !== null)).toMatchObject({ attempts: 3, outcome: 'done' })
    expect(await storedOf(id)).toBe(1)
    expect(await givenUp(id)).toEqual([])
  })

  it('gives up on a model that stays away, with the event at the last attempt and not before, and not as done', async () => {
    const id = await canonized(...Array.from({ length: 20 }, () => down))
    const { database } = system.system
    // The worker of the system tries, too: one attempt more than these may have been made.
    const beyond = (attempts: number) => triedUntil(id, (row) => row.attempts > attempts && row.last_error !== null)
    await beyond(0)
    // Six tries are for what fails by itself; a model that is away may come back.
    await database.execute(`UPDATE outbox SET attempts = 6 WHERE payload ->> 'canonization_id' = $1`, [id])
    expect(await beyond(7)).toMatchObject({ outcome: null, last_error: 'ModelUnreachableError' })
    expect(await givenUp(id)).toEqual([])
    await database.execute(`UPDATE outbox SET attempts = 29 WHERE payload ->> 'canonization_id' = $1`, [id])
    const row = await triedUntil(id, ({ outcome }) => outcome !== null)
    expect(row).toMatchObject({ attempts: 30, outcome: 'given_up' })
    expect(await givenUp(id)).toMatchObject([{ code: 'model_unavailable' }])
    expect(await storedOf(id)).toBe(0)
    const before = upstream.requests.length
    await system.system.memory.jobs.perform(row.id)
    expect(upstream.requests).toHaveLength(before)
    expect(await givenUp(id)).toHaveLength(1)
  })

  it('is taken up again by its owner where it was given up, once, and not by anybody else', async () => {
    const id = await canonized(says('I would rather chat.'), says('Really.'))
    const path = `/v1/canonizations/${id}/extraction`
    await triedUntil(id, (row) => row.outcome !== null)
    expect(await call<ExtractionView>(system, 'GET', path)).toMatchObject({ outcome: 'given_up', code: 'extraction_invalid', stored: 0 })
    for (const method of ['GET', 'POST'] as const) await call(system, method, path, undefined, { token: system.ownerBToken, status: 404 })
    const found = finds('The user likes cocoa.')
    upstream.script(...Array.from({ length: 4 }, () => found))
    expect(await call<ExtractionView>(system, 'POST', path)).toMatchObject({ outcome: 'running', code: null })
    await eventually(async () => (await call<ExtractionView>(system, 'GET', path)).outcome === 'finished', 'it is remembered')
    expect(await storedOf(id)).toBe(1)
    const events = await recorded(system, `memory:${characterId}`, 'extraction.taken_up')
    expect(events.filter((event) => event.canonization_id === id)).toMatchObject([{ code: 'extraction_invalid' }])
    await call(system, 'POST', path, undefined, { status: 409 })
  })

  it('waits while the kill switch is set, however long, and loses nothing by it', async () => {
    const tree = await newTree(system)
    upstream.script(says('Noted.'))
    const { accepted } = await askAndHear(system, tree.id, 'I like lemonade.')
    const kill = `/v1/admin/kill/owner/${system.ownerId}`
    await call(system, 'PUT', kill)
    const { canonization } = await call<{ canonization: { id: string } }>(system, 'POST', `/v1/nodes/${accepted.candidate_id}/canonize`)
    const before = upstream.requests.length
    const { id } = await triedUntil(canonization.id, (row) => row.last_error === 'JobStoppedError')
    for (let tries = 0; tries < 7; tries++) {
      await system.system.database.execute(`UPDATE outbox SET due_at = now() - interval '1 second' WHERE id = $1::uuid`, [id])
      await system.system.memory.jobs.perform(id)
    }
    await eventually(async () => (await jobOf(canonization.id)).attempts === 0, 'nothing counted')
    expect(upstream.requests).toHaveLength(before)
    await call(system, 'DELETE', kill)
    const found = finds('The user likes lemonade.')
    upstream.script(...Array.from({ length: 4 }, () => found))
    expect(await triedUntil(canonization.id, (row) => row.outcome !== null)).toMatchObject({ attempts: 1, outcome: 'done' })
    expect(await storedOf(canonization.id)).toBe(1)
    expect(await givenUp(canonization.id)).toEqual([])
  })

  it('does not close as done what a useless answer made it give up', async () => {
    const id = await canonized(says('I would rather chat.'), says('Really.'))
    expect(await triedUntil(id, (row) => row.outcome !== null)).toMatchObject({ attempts: 1, outcome: 'given_up' })
    expect(await givenUp(id)).toMatchObject([{ code: 'extraction_invalid' }])
  })

  it('stores nothing where its row cannot be closed: both are one transaction (decision 28)', async () => {
    const { database } = system.system
    await database.execute(
      `CREATE FUNCTION refuse_closing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$`,
    )
    await database.execute(
      `CREATE TRIGGER refuse_closing BEFORE UPDATE ON outbox FOR EACH ROW WHEN (NEW.outcome = 'done') EXECUTE FUNCTION refuse_closing()`,
    )
    const found = finds('The user likes coffee.')
    // What was remembered before is near, so that each try asks twice.
    const id = await canonized(...Array.from({ length: 8 }, () => found))
    expect(await triedUntil(id, (row) => row.last_error !== null)).toMatchObject({ outcome: null })
    expect(await storedOf(id)).toBe(0)
    await database.execute('DROP TRIGGER refuse_closing ON outbox')
    expect(await triedUntil(id, (row) => row.outcome !== null)).toMatchObject({ outcome: 'done' })
    expect(await storedOf(id)).toBe(1)
  })

  it("leaves the model where it is when the process stops; the row is the next process's at once", async () => {
    const silent = await startFakeUpstream()
    const stopped = await startTestSystem({ model: silent.baseUrl })
    try {
      const tree = await newTree(stopped)
      silent.script(says('Noted.'), { steps: [textChunk('{'), HOLD] })
      const { accepted } = await askAndHear(stopped, tree.id, 'I like tea.')
      await call(stopped, 'POST', `/v1/nodes/${accepted.candidate_id}/canonize`)
      const request = await silent.request(1)
      await stopped.system.memory.jobs.stop()
      expect(await request.closed).toBe(true)
      const rows = await stopped.system.database.query(
        'SELECT attempts, last_error, outcome, due_at <= clock_timestamp() AS due FROM outbox',
      )
      expect(rows).toEqual([{ attempts: 1, last_error: 'stopped', outcome: null, due: true }])
      const runs = await stopped.system.database.query("SELECT state, reason FROM runs WHERE kind = 'maintenance'")
      expect(runs).toEqual([{ state: 'interrupted', reason: 'drained' }])
    } finally {
      await stopped.close()
      await silent.close()
    }
  })
})
