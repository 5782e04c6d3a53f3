import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { RunAccepted } from '#contracts'
import { createGate, DONE, finishChunk, HOLD, textChunk, usageChunk } from '../support/fake-upstream.ts'
import { answer, askAndHear, call, follow, newTree, node, runEnded } from '../support/story.ts'
import { asked, cancel, heard, startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* K5, M1, M5, M7: what plain SQL must not do to the record, whatever the code above it forbids. */
vi.setConfig({ testTimeout: 120_000 })

let world: World

beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())
beforeEach(() => world.upstream.unscript())

function sql(statement: string, ...params: (string | number | null)[]): Promise<number> {
  return world.system.system.database.execute(statement, params)
}

/** Does something in a transaction that is taken back whatever comes of it; answers how the database refused it, or that it did not. */
async function inVain(...statements: [string, ...(string | number | null)[]][]): Promise<string> {
  const { database } = world.system.system
  const done = new Error('accepted')
  return database
    .run(async () => {
      for (const [statement, ...params] of statements) expect(await database.execute(statement, params), statement).toBeGreaterThan(0)
      await database.execute('SET CONSTRAINTS ALL IMMEDIATE')
      throw done
    })
    .catch((error: unknown) => String(error))
}

async function speaking(treeId: string, text = 'So far'): Promise<RunAccepted> {
  const accepted = await asked(world, treeId, 'say', { headers: { 'content-type': 'text/event-stream' }, steps: [textChunk(text), HOLD] })
  await heard(world, accepted.run_id, text)
  return accepted
}

it('no table is emptied at one stroke', async () => {
  const { database } = world.system.system
  const tables = await database.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND relname <> '_prisma_migrations'`,
  )
  expect(tables.length).toBeGreaterThan(60)
  for (const { name } of tables) expect(await inVain([`TRUNCATE ${name} CASCADE`]), name).toMatch(/TRUNCATE on \w+ is refused/)
})

describe('what a row is stays', () => {
  it('M5: a run keeps its kind, its seat, its place and its versions, so that a second one is never seated beside it', async () => {
    const tree = await newTree(world.system)
    const { run_id: runId } = await speaking(tree.id)
    for (const change of [
      `kind = 'delegated', seated = false`,
      `character_id = gen_random_uuid()`,
      `tree_id = NULL`,
      `question_id = NULL`,
      `candidate_id = NULL`,
      `settings = '{}'`,
      `requested_at = now()`,
      `reducer_version = reducer_version + 1`,
    ]) {
      expect(await inVain([`UPDATE runs SET ${change} WHERE id = $1::uuid`, runId]), change).toMatch(/is fixed/)
    }
    expect(await inVain([`UPDATE runs SET profile_version_id = NULL WHERE id = $1::uuid`, runId])).toMatch(/are pinned/)
    await cancel(world, runId)
    await runEnded(world.system, runId)
    expect(await inVain([`UPDATE runs SET reason = 'stuck' WHERE id = $1::uuid`, runId])).toMatch(/has ended/)
  })

  it.each([
    [`UPDATE realms SET kind = 'fiction' WHERE kind = 'real'`, /kind of realms is fixed/],
    [`UPDATE trees SET realm_id = gen_random_uuid()`, /realm_id of trees is fixed/],
    [`UPDATE characters SET realm_id = gen_random_uuid()`, /realm_id of characters is fixed/],
    [`UPDATE seats SET owner_id = gen_random_uuid()`, /owner_id of seats is fixed/],
    [`UPDATE run_commands SET kind = 'approval'`, /kind of run_commands is fixed/],
    ['DELETE FROM run_commands', /cannot be deleted/],
    ['DELETE FROM realms', /cannot be deleted/],
  ])('%s', async (statement, refusal) => {
    expect(await inVain([statement])).toMatch(refusal)
  })

  it('that something was erased is never taken back', async () => {
    const tree = await newTree(world.system)
    world.upstream.script(answer('Hello.'))
    const { accepted } = await askAndHear(world.system, tree.id, 'hello')
    await call(world.system, 'DELETE', `/v1/nodes/${accepted.candidate_id}`)
    expect(await inVain(['DELETE FROM erasures'])).toMatch(/append-only/)
    expect(await inVain([`UPDATE erasures SET cause = 'other'`])).toMatch(/append-only/)
  })
})

describe('M1: words stay as they were written', () => {
  it('those of an answer that is being written', async () => {
    const tree = await newTree(world.system)
    const { run_id: runId } = await speaking(tree.id)
    expect(await inVain([`UPDATE segments SET body = 'x' || body WHERE run_id = $1::uuid`, runId])).toMatch(/append-only/)
    await cancel(world, runId)
    await runEnded(world.system, runId)
  })

  it('the pieces of a long text, which come and go with it alone', async () => {
    const { contents } = world.system.system
    const body = 'x'.repeat(1024 * 1024 + 1)
    const { id } = await contents.put({ owner_id: world.system.ownerId, media_type: 'text/plain', content: body })
    const piece = `INSERT INTO content_chunks (content_id, ordinal, bytes) VALUES ($1::uuid, 3, 'y')`
    expect(await inVain([`UPDATE content_chunks SET bytes = 'x' WHERE content_id = $1::uuid`, id])).toMatch(/is immutable/)
    expect(await inVain([`DELETE FROM content_chunks WHERE content_id = $1::uuid`, id])).toMatch(/is immutable/)
    expect(await inVain([piece, id])).toMatch(/has no piece 3/)
    const some = `INSERT INTO contents (id, owner_id, media_type, chunks, salt, digest, size) SELECT gen_random_uuid(), owner_id, media_type, 2, salt, digest, 9 FROM contents WHERE id = $1::uuid`
    expect(await inVain([some, id])).toMatch(/is not all there/)
    const erase = `UPDATE contents SET body = NULL, bytes = NULL, chunks = 0, layout = NULL, salt = NULL, erased_at = now() WHERE id = $1::uuid`
    await sql(erase, id)
    expect(await world.system.system.database.query('SELECT 1 FROM content_chunks WHERE content_id = $1::uuid', [id])).toEqual([])
  })
})

describe('M7: a partial stays one', () => {
  /** Hangs a copy of a candidate beside it, with some columns as given. */
  const copy = (columns: Record<string, string>): string => {
    const given = { id: 'gen_random_uuid()', sealed: 'true', partial: 'false', content_id: 'content_id', run_id: 'run_id', ...columns }
    return `INSERT INTO nodes (id, tree_id, owner_id, parent_id, kind, role, seq, depth, sealed, partial, speaker_character_id, author, trust, content_id, run_id, at)
      SELECT ${given.id}, tree_id, owner_id, parent_id, kind, role, 999, depth, ${given.sealed}, ${given.partial}, speaker_character_id, author, trust,
             ${given.content_id}, ${given.run_id}, at FROM nodes WHERE id = $1::uuid`
  }

  it('its words are told by no other node', async () => {
    const tree = await newTree(world.system)
    const { run_id: runId, candidate_id: candidate } = await speaking(tree.id)
    await cancel(world, runId)
    await runEnded(world.system, runId)
    expect(await node(world.system, candidate)).toMatchObject({ partial: true, sealed: true })
    expect(await inVain([copy({}), candidate])).toMatch(/is the answer of another node/)
    expect(await inVain([copy({ run_id: 'NULL' }), candidate])).toMatch(/is the answer of another node/)
    const other = `(SELECT content_id FROM nodes WHERE kind = 'question' LIMIT 1)`
    expect(await inVain([copy({ content_id: other }), candidate])).toMatch(/is not what its run left/)
    expect(await inVain([copy({ sealed: 'false', content_id: 'NULL' }), candidate])).toMatch(/is not what its run left/)
  })

  it('a sprout is sealed by the end of its run, as that left it, and never before', async () => {
    const tree = await newTree(world.system)
    const { run_id: runId, candidate_id: candidate, question_id: question } = await speaking(tree.id)
    const seal = (columns: string): [string, ...string[]] => [`UPDATE nodes SET sealed = true, ${columns} WHERE id = $1::uuid`, candidate]
    const others = `content_id = (SELECT content_id FROM nodes WHERE id = '${question}')`
    const put = `INSERT INTO contents (id, owner_id, media_type, body, salt, digest, size) SELECT $1::uuid, owner_id, media_type, 'All of it.', salt, digest, 10
      FROM contents WHERE body IS NOT NULL LIMIT 1`
    const end = (state: string): [string, ...string[]] => [
      `UPDATE runs SET state = '${state}', ended_at = now(), lease_until = NULL WHERE id = $1::uuid`,
      runId,
    ]
    expect(await inVain(seal(`partial = false, ${others}`))).toMatch(/is not what its run left/)
    expect(await inVain([put, candidate], seal(`content_id = id`))).toMatch(/is not what its run left/)
    expect(await inVain([put, candidate], seal(`content_id = id, partial = false`), end('interrupted'))).toMatch(/is not what its run left/)
    expect(await inVain([put, candidate], seal(`content_id = id, partial = true`), end('finished'))).toMatch(/is not what its run left/)
    expect(await inVain(seal(`partial = false, ${others}`), end('finished'))).toMatch(/is not what its run left/)
    expect(await inVain(end('finished'))).toMatch(/is not what its run left/)
    await cancel(world, runId)
    await runEnded(world.system, runId)
  })

  it('an answer that was complete when its record turned out to be broken is not told as one', async () => {
    const tree = await newTree(world.system)
    const gate = createGate()
    const steps = [textChunk('All of it.'), gate, finishChunk(), usageChunk(1, 1), DONE]
    const accepted = await asked(world, tree.id, 'say', { steps })
    await heard(world, accepted.run_id, 'All of it.')
    await sql('UPDATE streams SET quarantined_at = now() WHERE stream = $1', `run:${accepted.run_id}`)
    gate.open()
    await follow(world.system, accepted.run_id)
    expect(await runEnded(world.system, accepted.run_id)).toMatchObject({ state: 'failed', reason: 'chain_broken' })
    expect(await node(world.system, accepted.candidate_id)).toMatchObject({ partial: true, sealed: true })
  })
})
