import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Problem, RunAccepted, TreeView, VerifyReport } from '#contracts'
import { createGate, DONE, finishChunk, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeUpstream } from '../support/fake-upstream.ts'
import { recorded } from '../support/plant.ts'
import { answer, ask, call, follow, newTree, node, runEnded, spoken } from '../support/story.ts'
import type { TestSystem } from '../support/system.ts'
import { asked, heard, requested, startWorld, steer } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* K5: what was written stays as it was written; whoever changes it behind the triggers' back is found, and a broken chain goes no further. */
vi.setConfig({ testTimeout: 120_000 })

let world: World
let system: TestSystem
let upstream: FakeUpstream
let tree: TreeView
let told: RunAccepted

beforeAll(async () => {
  world = await startWorld()
  ;({ system, upstream } = world)
  tree = await newTree(system)
  // A run with something of everything: two turns, an interjection, an answer of several parts.
  const gate = createGate()
  const turn1 = { steps: [textChunk('Over there'), gate, textChunk(', by the sea.'), finishChunk(), usageChunk(1, 1), DONE] }
  told = await asked(world, tree.id, 'Where is the lighthouse?', turn1, answer('灯塔🗼', '在北边。'))
  await heard(world, told.run_id, 'Over there')
  await steer(world, told.run_id, '不对吧?')
  gate.open()
  await follow(system, told.run_id)
})
afterAll(() => world.close())
beforeEach(() => upstream.unscript())

/** Changes something with all triggers off, verifies, and takes everything back. */
async function verifyAfter(...statements: string[]): Promise<VerifyReport> {
  const { database, conversation } = system.system
  let report: VerifyReport | undefined
  const undone = new Error('taken back')
  await database
    .run(async () => {
      for (const table of ['events', 'streams', 'contents', 'segments', 'nodes']) {
        await database.execute(`ALTER TABLE ${table} DISABLE TRIGGER USER`)
      }
      for (const statement of statements) expect(await database.execute(statement), statement).toBeGreaterThan(0)
      report = await conversation.verify.verifyAll()
      throw undone
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error
    })
  if (!report) throw new Error('nothing was verified')
  return report
}

describe('verify', () => {
  const run = (): string => `run:${told.run_id}`
  const seqOf = (type: string): string => `(SELECT min(seq) FROM events WHERE stream = '${run()}' AND type = '${type}')`
  const event = (type: string): string => `stream = '${run()}' AND seq = ${seqOf(type)}`

  it('finds nothing where nothing was changed', async () => {
    const report = await call<VerifyReport>(system, 'POST', '/v1/admin/verify', {})
    expect(report).toMatchObject({ intact: true, faults: [] })
    expect(report.events).toBeGreaterThan(20)
  })

  it.each<[string, string, () => string[]]>([
    [
      'a number in the payload that is read',
      'payload',
      () => [`UPDATE events SET payload = jsonb_set(payload, '{tokens}', '1') WHERE ${event('budget.settled')}`],
    ],
    [
      'a number that no reader could keep',
      'payload',
      () => [`UPDATE events SET payload = jsonb_set(payload, '{tokens}', '12345678901234567890') WHERE ${event('budget.settled')}`],
    ],
    [
      'a byte of the canonical text',
      'hash',
      () => [`UPDATE events SET canonical = replace(canonical, '"turn":1', '"turn":2') WHERE ${event('turn.started')}`],
    ],
    [
      'white space in the canonical text',
      'envelope',
      () => [`UPDATE events SET canonical = ' ' || canonical WHERE ${event('turn.started')}`],
    ],
    ['a bit of a hash', 'hash', () => [`UPDATE events SET hash = set_bit(hash, 7, 1 - get_bit(hash, 7)) WHERE ${event('turn.started')}`]],
    [
      'a bit of the hash before',
      'chain',
      () => [`UPDATE events SET prev_hash = set_bit(prev_hash, 7, 1 - get_bit(prev_hash, 7)) WHERE ${event('turn.started')}`],
    ],
    ['its type', 'envelope', () => [`UPDATE events SET type = 'turn.finished' WHERE ${event('turn.started')}`]],
    ['who may see it', 'envelope', () => [`UPDATE events SET visibility = 'public' WHERE ${event('policy.decided')}`]],
    ['whose it is', 'envelope', () => [`UPDATE events SET owner_id = '${system.ownerBId}' WHERE ${event('turn.started')}`]],
    ['an event that was taken out', 'gap', () => [`DELETE FROM events WHERE ${event('policy.decided')}`]],
    ['an end that was cut off', 'head', () => [`DELETE FROM events WHERE ${event('run.finished')}`]],
    [
      'a head that was put back',
      'head',
      () => [
        `UPDATE streams SET seq = seq - 1, hash = (SELECT e.prev_hash FROM events e WHERE ${event('run.finished')}) WHERE stream = '${run()}'`,
      ],
    ],
    ['a bit of the head', 'head', () => [`UPDATE streams SET hash = set_bit(hash, 7, 1 - get_bit(hash, 7)) WHERE stream = '${run()}'`]],
    [
      'a character of a question',
      'content',
      () => [`UPDATE contents SET body = 'Where was the lighthouse?' WHERE body = 'Where is the lighthouse?'`],
    ],
    [
      'a character of one delta’s share of the answer',
      'content',
      () => [`UPDATE contents SET body = replace(body, '在北边', '在南边') WHERE id = '${told.candidate_id}'`],
    ],
    [
      'where a delta ends in the answer',
      'content',
      () => [`UPDATE contents SET layout = jsonb_set(layout, '{segments,0,to}', '3') WHERE id = '${told.candidate_id}'`],
    ],
    [
      'a salt',
      'content',
      () => [`UPDATE contents SET salt = set_bit(salt, 7, 1 - get_bit(salt, 7)) WHERE body = 'Where is the lighthouse?'`],
    ],
    ['an interjection', 'content', () => [`UPDATE contents SET body = '对吧?' WHERE body = '不对吧?'`]],
    [
      'a content that was taken away',
      'content',
      () => [
        `UPDATE nodes SET content_id = (SELECT min(id::text)::uuid FROM contents) WHERE content_id = (SELECT id FROM contents WHERE body = 'Where is the lighthouse?')`,
        `DELETE FROM contents WHERE body = 'Where is the lighthouse?'`,
      ],
    ],
  ])('finds %s', async (_what, fault, change) => {
    const report = await verifyAfter(...change())
    expect(report.intact).toBe(false)
    expect(report.faults.map((found) => found.fault)).toContain(fault)
    expect(new Set(report.faults.map((found) => found.stream)).size).toBeLessThanOrEqual(2)
  })

  it('takes an answer that is being written for what it is, and neither erased texts nor a live stream for a fault', async () => {
    const gate = createGate()
    const steps = [...Array.from({ length: 5 }, (_, index) => textChunk(`w${index} `)), gate, finishChunk(), usageChunk(1, 1), DONE]
    const erased = await asked(world, tree.id, 'forget this', answer('Forgotten.'))
    await follow(system, erased.run_id)
    await call(system, 'DELETE', `/v1/nodes/${erased.candidate_id}`)
    const live = await asked(world, tree.id, 'count', { steps })
    await heard(world, live.run_id, 'w0 w1 w2 w3 w4 ')
    expect(await call<VerifyReport>(system, 'POST', '/v1/admin/verify', {})).toMatchObject({ intact: true, faults: [] })
    const tampered = await verifyAfter(`UPDATE segments SET body = 'v' || body WHERE run_id = '${live.run_id}' AND ordinal = 0`)
    expect(tampered.faults).toMatchObject([{ stream: `run:${live.run_id}`, fault: 'content' }])
    gate.open()
    await runEnded(system, live.run_id)
  })
})

describe('a broken chain', () => {
  it('of a tree refuses asking, continuing and forking, and is quarantined by verify', async () => {
    const broken = await newTree(system)
    const { database } = system.system
    await database.run(async () => {
      await database.execute('ALTER TABLE events DISABLE TRIGGER USER')
      await database.execute(
        `UPDATE events SET canonical = replace(canonical, '"depth"', '"Depth"') || ' ' WHERE stream = $1 AND seq = 1`,
        [`tree:${broken.id}`],
      )
      await database.execute('ALTER TABLE events ENABLE TRIGGER USER')
    })
    const report = await call<VerifyReport>(system, 'POST', '/v1/admin/verify', {})
    expect(new Set(report.faults.map((fault) => fault.stream))).toEqual(new Set([`tree:${broken.id}`]))
    for (const [route, body] of [
      [`/v1/trees/${broken.id}/runs`, { text: 'hello?' }],
      [`/v1/nodes/${broken.head_node_id}/edit`, { text: 'hello?' }],
      [`/v1/nodes/${broken.root_node_id}/fork`, undefined],
      // Nothing would be written where the head stays where it is: refused all the same.
      [`/v1/nodes/${broken.head_node_id}/fork`, undefined],
    ] as const) {
      expect((await call<Problem>(system, 'POST', route, body, { status: 409 })).code, route).toBe('chain_broken')
    }
    expect((await system.call('GET', `/v1/trees/${broken.id}/path`)).status).toBe(200)
    expect(await recorded(system, `tree:${broken.id}`, 'head.moved')).toEqual([])
  })

  it('of a run refuses going on from its answer, by whichever way, and nothing beside it', async () => {
    const shared = await newTree(system)
    const first = await asked(world, shared.id, 'first', answer('One.'))
    await follow(system, first.run_id)
    const second = await asked(world, shared.id, 'second', answer('Two.'))
    await follow(system, second.run_id)
    await system.system.database.execute('UPDATE streams SET quarantined_at = now() WHERE stream = $1', [`run:${first.run_id}`])
    for (const [route, body] of [
      [`/v1/trees/${shared.id}/runs`, { text: 'third?' }],
      [`/v1/trees/${shared.id}/runs`, { text: 'third?', parent_id: first.candidate_id }],
      [`/v1/nodes/${second.candidate_id}/regenerate`, {}],
      [`/v1/nodes/${second.question_id}/edit`, { text: 'second, differently?' }],
      [`/v1/nodes/${second.candidate_id}/edit`, { text: 'Two, differently.' }],
      [`/v1/nodes/${first.candidate_id}/fork`, undefined],
      [`/v1/nodes/${second.candidate_id}/fork`, undefined],
      [`/v1/nodes/${second.candidate_id}/canonize`, undefined],
    ] as const) {
      expect((await call<Problem>(system, 'POST', route, body, { status: 409 })).code, route).toBe('chain_broken')
    }
    // What stands before the broken answer, and what is put beside it, is whole.
    const again = await requested(world, [answer('Another one.')], () =>
      call<RunAccepted>(system, 'POST', `/v1/nodes/${first.candidate_id}/regenerate`, {}),
    )
    expect(spoken(await follow(system, again.run_id))).toBe('Another one.')
    const onward = await requested(world, [answer('Onward.')], () => ask(system, shared.id, 'and then?', { parent_id: again.candidate_id }))
    expect(spoken(await follow(system, onward.run_id))).toBe('Onward.')
  })

  it('of a run that is under way ends it without another event, keeps what was said, and frees the seat', async () => {
    const gate = createGate()
    const steps = [textChunk('Up to here'), gate, textChunk(' and no further'), finishChunk(), usageChunk(1, 1), DONE]
    const accepted = await asked(world, tree.id, 'go on', { steps }, answer('Next.'))
    await heard(world, accepted.run_id, 'Up to here')
    const next = await ask(system, (await newTree(system)).id, 'and me?')
    await system.system.database.execute('UPDATE streams SET quarantined_at = now() WHERE stream = $1', [`run:${accepted.run_id}`])
    const { seq } = (await system.system.log.head(`run:${accepted.run_id}`)) ?? { seq: 0 }
    gate.open()
    const events = await follow(system, accepted.run_id)
    expect(spoken(events)).toBe('Up to here')
    expect(await runEnded(system, accepted.run_id)).toMatchObject({ state: 'failed', reason: 'chain_broken', last_seq: seq })
    expect(await node(system, accepted.candidate_id)).toMatchObject({ text: 'Up to here', partial: true, sealed: true })
    expect(spoken(await follow(system, next.run_id))).toBe('Next.')
  })
})

describe('what the database refuses', () => {
  it.each([
    [`UPDATE events SET payload = '{}' WHERE seq = 1`, /append-only/],
    ['DELETE FROM events WHERE seq = 1', /append-only/],
    ['TRUNCATE events', /append-only/],
    ['DELETE FROM streams', /cannot be deleted/],
    ['UPDATE streams SET seq = seq - 1 WHERE seq > 0', /never goes back/],
    [`UPDATE streams SET owner_id = NULL WHERE owner_id IS NOT NULL`, /never goes back/],
    [`UPDATE persona_versions SET origin = 'recast'`, /append-only/],
    ['DELETE FROM persona_versions', /append-only/],
    [`UPDATE contents SET derived_from = '{}', body = body`, /immutable/],
    ['DELETE FROM contents', /only erased/],
  ])('%s', async (statement, refusal) => {
    await expect(system.system.database.execute(statement)).rejects.toThrow(refusal)
  })

  it('an event that does not follow on the last one, whatever it says of itself', async () => {
    const insert = (seq: number, prevHash: string, head: boolean): Promise<number> =>
      system.system.database.run(async () => {
        const { database } = system.system
        if (head) await database.execute(`UPDATE streams SET seq = $2, hash = sha256('x') WHERE stream = $1`, [`tree:${tree.id}`, seq])
        return database.execute(
          `INSERT INTO events (cluster_epoch, stream, seq, type, visibility, canonical, payload, prev_hash, hash)
           SELECT 1, stream, $2, 'node.deleted', 'audit', '{}', '{}', ${prevHash}, sha256('x') FROM streams WHERE stream = $1`,
          [`tree:${tree.id}`, seq],
        )
      })
    const { seq = 0 } = (await system.system.log.head(`tree:${tree.id}`)) ?? {}
    const last = `(SELECT hash FROM events WHERE stream = 'tree:${tree.id}' AND seq = ${seq})`
    // A forged link, a gap, a second event in one place, and one that leaves the head behind.
    await expect(insert(seq + 1, `sha256('y')`, true)).rejects.toThrow(/does not continue its chain/)
    await expect(insert(seq + 2, last, true)).rejects.toThrow(/does not continue its chain/)
    await expect(insert(seq, last, false)).rejects.toThrow(/does not continue its chain|unique/)
    await expect(insert(seq + 1, last, false)).rejects.toThrow(/does not continue its chain/)
  })
})
