import { generateKeyPairSync, randomInt, sign } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Evidence, RunAccepted, TreeView } from '#contracts'
import { canonicalJson } from '#kernel/record/canonical-json'
import { createGate, DONE, finishChunk, textChunk, usageChunk } from '../support/fake-upstream.ts'
import { answer, call, follow, newTree } from '../support/story.ts'
import type { TestSystem } from '../support/system.ts'
import { verifyEvidence } from '../support/verify-evidence.ts'
import { asked, heard, startWorld, steer } from '../support/world.ts'
import type { World } from '../support/world.ts'

/* K5: one run as a file that somebody else can check with Node alone. */
vi.setConfig({ testTimeout: 120_000 })

let world: World
let system: TestSystem
let tree: TreeView
let told: RunAccepted
let text: string

beforeAll(async () => {
  world = await startWorld()
  system = world.system
  tree = await newTree(system)
  const gate = createGate()
  const turn1 = { steps: [textChunk('Over there'), gate, textChunk(', by the sea.'), finishChunk(), usageChunk(1, 1), DONE] }
  told = await asked(world, tree.id, 'Where is the lighthouse?', turn1, answer('灯塔🗼', '在北边。'))
  await heard(world, told.run_id, 'Over there')
  await steer(world, told.run_id, '不对吧?')
  gate.open()
  await follow(system, told.run_id)
  await call(system, 'POST', `/v1/nodes/${told.candidate_id}/canonize`)
  await system.system.record.anchors.anchor()
  text = await fetched(told.run_id)
})
afterAll(async () => {
  await world.close()
})
beforeEach(() => world.upstream.unscript())

async function fetched(runId: string): Promise<string> {
  const answered = await system.call('GET', `/v1/runs/${runId}/evidence`)
  expect(answered.status, answered.text.slice(0, 300)).toBe(200)
  return answered.text
}

const parsed = (): Evidence => JSON.parse(text) as Evidence

/** The file as somebody would make it who has changed the statement and signs it with a key of their own. */
function forged(change: (statement: Evidence['statement']) => void): string {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const evidence = parsed()
  change(evidence.statement)
  evidence.public_key = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64')
  evidence.signature = sign(null, Buffer.from(canonicalJson(evidence.statement)), privateKey).toString('base64')
  return JSON.stringify(evidence)
}

describe('evidence of a run', () => {
  it('holds question, answer, every event, what was decided and used, the canon that it is in, and the anchor', async () => {
    const { statement } = parsed()
    expect(statement.run).toMatchObject({ id: told.run_id, state: 'finished', owner_id: system.ownerId })
    const body = (id: string | null | undefined) => statement.contents.find((content) => content.id === id)?.body
    expect(body(statement.question?.content_id)).toBe('Where is the lighthouse?')
    expect(body(statement.candidate?.content_id)).toContain('灯塔🗼在北边。')
    expect(statement.contents.some((content) => content.body === '不对吧?')).toBe(true)
    expect(statement.events.map((event) => event.seq)).toEqual(statement.events.map((_, index) => index + 1))
    expect(statement.policies.length).toBeGreaterThan(0)
    expect(statement.usage).toMatchObject({ requests: 2, prompt_tokens: 51, estimated: false })
    expect(statement.lineage.at(-1)).toBe(statement.question?.id)
    expect(statement.lineage.length).toBeGreaterThan(1)
    expect(statement.canonizations).toMatchObject([{ to_node_id: told.candidate_id, withdrawn_at: null }])
    expect(statement.proof?.head).toEqual({
      stream: `run:${told.run_id}`,
      seq: statement.events.length,
      hash: statement.events.at(-1)?.hash,
    })
  })

  it('holds for a program that has nothing but the file, and by the key that one knows', async () => {
    const plain = await verifyEvidence(text)
    expect(plain).toMatchObject({ code: 0, faults: '' })
    expect(plain.out).toContain(`covers ${parsed().statement.events.length} of ${parsed().statement.events.length} events`)
    expect(await verifyEvidence(text, '--key', parsed().public_key)).toMatchObject({ code: 0 })
    expect(await verifyEvidence(text, '--key', Buffer.alloc(32).toString('base64'))).toMatchObject({ code: 1 })
  })

  it('does not hold once any byte is changed', async () => {
    const bytes = Buffer.from(text)
    const offsets = [0, 1, 20, bytes.length - 1, bytes.length - 2, ...Array.from({ length: 24 }, () => randomInt(bytes.length))]
    const faults: string[] = []
    for (const at of offsets) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ (1 << randomInt(7))
      if ((await verifyEvidence(changed)).code !== 1) faults.push(`byte ${at}: ${String(bytes[at])} → ${String(changed[at])}`)
    }
    expect(faults).toEqual([])
    expect((await verifyEvidence(bytes.subarray(0, bytes.length - 5))).code).toBe(1)
    expect((await verifyEvidence(JSON.stringify(parsed(), null, 2))).code).toBe(1)
  })

  it.each<[string, (statement: Evidence['statement']) => void, RegExp]>([
    [
      'a question',
      (s) => Object.assign(s.contents.find((c) => c.id === s.question?.content_id) ?? {}, { body: 'Where was the lighthouse?' }),
      /digest differs/,
    ],
    [
      'where a delta ends',
      (s) => Object.assign(s.contents.find((c) => c.segments.length > 1)?.segments[0] ?? {}, { to: 3 }),
      /part 0 differs/,
    ],
    ['an event', (s) => Object.assign(s.events[3] ?? {}, { canonical: s.events[3]?.canonical.replace('"seq":4', '"seq":5') }), /event 4/],
    ['an event left out', (s) => s.events.splice(5, 1), /does not follow|belongs elsewhere/],
    ['the end left out', (s) => s.events.pop(), /another event than the one/],
    ['a content left out', (s) => s.contents.splice(0, 1), /is missing/],
    [
      'a content put in',
      (s) => s.contents.push({ ...(s.contents[0] as Evidence['statement']['contents'][number]), id: crypto.randomUUID() }),
      /nothing refers/,
    ],
    ['a text said to be erased', (s) => Object.assign(s.contents[0] ?? {}, { erased: true }), /erased, and yet there/],
    ['the tokens', (s) => Object.assign(s.usage, { prompt_tokens: 1 }), /usage/],
    ['a decision', (s) => Object.assign(s.policies[0]?.payload ?? {}, { verdict: 'forbidden' }), /policies/],
    ['how it ended', (s) => Object.assign(s.run, { state: 'failed' }), /is said to be failed/],
    ['another run’s anchor', (s) => Object.assign(s.proof?.head ?? {}, { seq: 1 }), /another event/],
    ['the way to the anchor', (s) => Object.assign(s.proof?.path[0] ?? {}, { hash: '0'.repeat(64) }), /leads elsewhere/],
    [
      'the anchor’s time',
      (s) => Object.assign(s.proof?.anchor ?? {}, { canonical: s.proof?.anchor.canonical.replace('"at":"2', '"at":"1') }),
      /anchor/,
    ],
  ])('signed anew by somebody else still shows %s changed', async (_what, change, fault) => {
    const { code, faults } = await verifyEvidence(forged(change))
    expect(faults).toMatch(fault)
    expect(code).toBe(1)
  })

  it('is for its owner alone', async () => {
    expect((await system.call('GET', `/v1/runs/${told.run_id}/evidence`, { token: system.ownerBToken })).status).toBe(404)
    expect((await system.call('GET', `/v1/runs/${crypto.randomUUID()}/evidence`)).status).toBe(404)
  })

  it('names no other stream, though the anchor covers them', () => {
    const streams = [...text.matchAll(/(?:run|tree|admin|memory|character):[0-9a-f-]{36}/g)].map(([stream]) => stream)
    expect(new Set(streams)).toEqual(new Set([`run:${told.run_id}`]))
  })

  it('can be had of a run that is under way, and says what no anchor covers yet', async () => {
    const gate = createGate()
    const steps = [textChunk('one '), textChunk('two '), gate, finishChunk(), usageChunk(1, 1), DONE]
    const live = await asked(world, tree.id, 'count', { steps })
    await heard(world, live.run_id, 'one two ')
    const during = await verifyEvidence(await fetched(live.run_id))
    expect(during).toMatchObject({ code: 0, faults: '' })
    expect(during.out).toContain('no anchor covers this run yet')
    gate.open()
    await follow(system, live.run_id)
    expect(await verifyEvidence(await fetched(live.run_id))).toMatchObject({ code: 0, faults: '' })
  })

  it('says of erased texts that they were there, and holds without them', async () => {
    const accepted = await asked(world, tree.id, 'forget this', answer('Forgotten, then.'))
    await follow(system, accepted.run_id)
    await call(system, 'DELETE', `/v1/nodes/${accepted.candidate_id}`)
    const erased = await fetched(accepted.run_id)
    expect(erased).not.toContain('Forgotten')
    const { statement } = JSON.parse(erased) as Evidence
    const content = statement.contents.find(({ id }) => id === accepted.candidate_id)
    expect(content).toMatchObject({
      erased: true,
      body: null,
      salt: null,
      segments: [],
      digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    })
    expect(statement.candidate).toMatchObject({ deleted: true })
    const { code, out, faults } = await verifyEvidence(erased)
    expect({ code, faults }).toEqual({ code: 0, faults: '' })
    expect(out).toContain('1 of them erased')
  })
})
