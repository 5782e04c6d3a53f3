import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { PROTOCOL_VERSION } from '#contracts'
import type { BundleView, Problem, VerifyReport } from '#contracts'
import { ProtocolMismatchError } from '#kernel/record/read-record'
import { canonicalJson } from '#kernel/record/canonical-json'
import { chainHash, EMPTY_HEAD } from '#kernel/record/chain'
import { HOLD, textChunk } from '../support/fake-upstream.ts'
import { recordedTypes } from '../support/plant.ts'
import { answer, ask, askAndHear, call, follow, newTree, spoken } from '../support/story.ts'
import type { TestSystem } from '../support/system.ts'
import { asked, cancel, heard, run, startWorld, steer } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* One version of the protocol, never negotiated (K7): what is of another one is left alone, what is unknown is dropped whole. */
vi.setConfig({ testTimeout: 120_000 })

const OTHER = PROTOCOL_VERSION + 1
let world: World
let system: TestSystem

beforeAll(async () => {
  world = await startWorld()
  system = world.system
})
afterAll(() => world.close())
beforeEach(() => world.upstream.unscript())

function sql<Row>(statement: string, ...params: (string | number | Uint8Array | null)[]): Promise<Row[]> {
  return system.system.database.query<Row>(statement, params)
}

/** A stream with one event that this version would not have written. */
async function foreignStream(changes: Record<string, unknown>): Promise<string> {
  const { ids, database } = system.system
  const id = ids.next()
  const stream = `run:${id}`
  const canonical = canonicalJson({
    stream,
    seq: 1,
    type: 'turn.started',
    version: 1,
    protocol_version: PROTOCOL_VERSION,
    visibility: 'public',
    owner_id: system.ownerId,
    run_id: id,
    at: '2026-01-01T00:00:00.000Z',
    cause: { tag: 'start' },
    payload: { turn: 1 },
    content_digests: [],
    ...changes,
  })
  const hash = chainHash(EMPTY_HEAD.hash, canonical)
  await database.run(async () => {
    await database.execute('INSERT INTO streams (stream, owner_id) VALUES ($1, $2::uuid)', [stream, system.ownerId])
    const type = (JSON.parse(canonical) as { type: string }).type
    const visibility = 'public' as const
    await system.system.log.write([
      { stream, seq: 1, type, visibility, owner_id: system.ownerId, run_id: id, canonical, prev_hash: EMPTY_HEAD.hash, hash } as never,
    ])
  })
  return stream
}

describe('the version of the protocol', () => {
  it('stands on a run, its commands and its events', async () => {
    const tree = await newTree(system)
    const accepted = await asked(world, tree.id, 'Go.', { steps: [textChunk('On my way'), HOLD] })
    await heard(world, accepted.run_id, 'On my way')
    await steer(world, accepted.run_id, 'faster')
    await cancel(world, accepted.run_id)
    await follow(system, accepted.run_id)
    const versions = await sql<{ run: number; command: number }>(
      `SELECT r.protocol_version AS run, c.protocol_version AS command FROM runs r JOIN run_commands c ON c.run_id = r.id WHERE r.id = $1::uuid`,
      accepted.run_id,
    )
    expect(versions).toEqual([
      { run: PROTOCOL_VERSION, command: PROTOCOL_VERSION },
      { run: PROTOCOL_VERSION, command: PROTOCOL_VERSION },
    ])
    const events = await system.system.log.read(`run:${accepted.run_id}`)
    for (const { record } of events) if (record.type !== 'llm.delta') expect(record.protocol_version, record.type).toBe(PROTOCOL_VERSION)
  })

  it('is one for the life of a run, and its commands have no other', async () => {
    const tree = await newTree(system)
    world.upstream.script(answer('Hello.'))
    const { accepted } = await askAndHear(system, tree.id, 'Hello?')
    await expect(sql('UPDATE runs SET protocol_version = $2 WHERE id = $1::uuid', accepted.run_id, OTHER)).rejects.toThrow(
      /keeps its protocol version/,
    )
    const command = `INSERT INTO run_commands (id, run_id, owner_id, seq, kind, protocol_version) VALUES ($1::uuid, $2::uuid, $3::uuid, 9, 'cancel', $4)`
    await expect(sql(command, system.system.ids.next(), accepted.run_id, system.ownerId, OTHER)).rejects.toThrow(/foreign key/)
  })
})

describe('what is of another version', () => {
  it('of another kind: the run is left to whoever has it, and the next in line is ours', async () => {
    const [here, there] = [await newTree(system), await newTree(system)]
    const { seats } = system.system.conversation
    await seats.stop()
    const theirs = await ask(system, here.id, 'Another’s.')
    const ours = await ask(system, there.id, 'Ours.')
    await system.system.database.run(async () => {
      await sql('ALTER TABLE runs DISABLE TRIGGER runs_protocol_guard')
      await sql('UPDATE runs SET protocol_version = $2 WHERE id = $1::uuid', theirs.run_id, OTHER)
      await sql('ALTER TABLE runs ENABLE TRIGGER runs_protocol_guard')
    })
    world.upstream.script(answer('Mine.'))
    await seats.start()
    expect(spoken(await follow(system, ours.run_id))).toBe('Mine.')
    await seats.sweep()
    expect(await run(world, theirs.run_id)).toMatchObject({ state: 'queued' })
    expect(await recordedTypes(system, theirs.run_id)).not.toContain('run.started')
    const { runStore } = system.system.conversation
    expect(await runStore.takeQueued(theirs.run_id, 'me')).toBeNull()
    for (const [command, body] of [
      ['steer', { text: 'x' }],
      ['cancel', undefined],
    ] as const) {
      const refused = await call<Problem>(system, 'POST', `/v1/runs/${theirs.run_id}/${command}`, body, { status: 409 })
      expect(refused.code, command).toBe('other_version')
    }
    expect(await sql('SELECT 1 FROM run_commands WHERE run_id = $1::uuid', theirs.run_id)).toEqual([])
  })

  it('of another kind: an event is not read as ours', async () => {
    const stream = await foreignStream({ protocol_version: OTHER })
    await expect(system.system.log.read(stream)).rejects.toThrow(ProtocolMismatchError)
  })
})

describe('a bundle for another release', () => {
  it.each([{ protocol_version: 99 }, { layout_version: 77 }, { reducer_version: 55 }])('with %j is not activated', async (versions) => {
    const { items } = await call<{ items: BundleView[] }>(system, 'GET', '/v1/admin/bundles')
    const active = items.find((bundle) => bundle.active)
    const made = await call<BundleView>(system, 'POST', '/v1/admin/bundles', { ...active?.content, ...versions })
    await call(system, 'POST', `/v1/admin/bundles/${made.hash}/evaluations`, { accepted: true })
    const move = { from: active?.hash, reason: 'promote' }
    expect(await call<Problem>(system, 'POST', `/v1/admin/bundles/${made.hash}/activation`, move, { status: 409 })).toMatchObject({
      code: 'other_version',
    })
  })

  it('that another replica activated: no run begins here under it, and those that wait begin once it is taken back', async () => {
    const { items } = await call<{ items: BundleView[] }>(system, 'GET', '/v1/admin/bundles')
    const active = items.find((bundle) => bundle.active)
    const later = items.find((bundle) => bundle.content.reducer_version === 55)
    // As its own release does it: this one's service would not.
    await sql(
      `INSERT INTO bundle_promotions (from_hash, to_hash, reason, promoted_by) SELECT $1, $2, 'promote', id FROM owners WHERE role = 'admin' LIMIT 1`,
      active?.hash ?? '',
      later?.hash ?? '',
    )
    const tree = await newTree(system)
    world.upstream.script(answer('Now.'))
    const waiting = await ask(system, tree.id, 'Now?')
    await system.system.conversation.seats.sweep()
    expect(await run(world, waiting.run_id)).toMatchObject({ state: 'queued' })
    await call(system, 'POST', `/v1/admin/bundles/${active?.hash}/activation`, { from: later?.hash, reason: 'rollback' })
    await system.system.conversation.seats.sweep()
    expect(spoken(await follow(system, waiting.run_id))).toBe('Now.')
  })
})

describe('what nobody here knows', () => {
  it('an unknown event is dropped whole, and what stands around it is read', async () => {
    const stream = await foreignStream({ type: 'mind.read', payload: { thought: 'secret' } })
    const [read] = await system.system.log.read(stream)
    expect(read?.record).toMatchObject({ stream, seq: 1, type: 'event.dropped', payload: {}, content_digests: [] })
    expect(JSON.stringify(read?.record)).not.toMatch(/mind|thought|secret/)
  })

  it('verify takes an event of another release for whole by its bytes, its chain and its envelope, and quarantines nothing', async () => {
    const streams = [
      await foreignStream({ type: 'mind.read' }),
      await foreignStream({ protocol_version: OTHER, payload: { turn: 'first' } }),
    ]
    const faults = async (): Promise<unknown[]> =>
      (await call<VerifyReport>(system, 'POST', '/v1/admin/verify', {})).faults.filter(({ stream }) => streams.includes(stream))
    expect(await faults()).toEqual([])
    const spaced = await foreignStream({ type: 'mind.read', seq: 2 })
    const report = await call<VerifyReport>(system, 'POST', '/v1/admin/verify', {})
    expect(report.faults).toContainEqual({ stream: spaced, seq: 1, fault: 'envelope' })
  })
})

describe('a broken record of an owner', () => {
  it('does not keep the owner’s texts from being erased, nor the erasure from being noted', async () => {
    const tree = await newTree(system)
    world.upstream.script(answer('Hello.'))
    const { accepted } = await askAndHear(system, tree.id, 'Hello?')
    await sql('UPDATE streams SET quarantined_at = now() WHERE stream = $1', `admin:${system.ownerId}`)
    await call(system, 'DELETE', `/v1/nodes/${accepted.candidate_id}`)
    const events = await system.system.log.read(`admin:${system.ownerId}-erased-1`)
    expect(events.map(({ record }) => [record.type, record.payload])).toContainEqual([
      'content.erased',
      { content_id: accepted.candidate_id, cause: 'node_deleted' },
    ])
  })
})
