import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import type { RunAccepted, RunStreamEvent, RunView, VerifyReport } from '#contracts'
import { openLightDatabase } from '#infra/pglite/light-database'
import { callAdminSocket } from '../../apps/bff/admin-socket/call.ts'
import { databaseSnapshot } from '../support/database-snapshot.ts'
import { createGate, DONE, finishChunk, HOLD, startFakeUpstream, textChunk, usageChunk } from '../support/fake-upstream.ts'
import type { FakeUpstream } from '../support/fake-upstream.ts'
import { makeTestHome, PROJECT_MIGRATIONS } from '../support/light-database.ts'
import { answer, ask, call, follow, newTree, node, path, spoken } from '../support/story.ts'
import type { TestSystem } from '../support/system.ts'

/*
 * The server as it is shipped, killed with −9 while it speaks, and started again on the same home: what was shown stands, what was not does
 * not, the seat is free and the line goes on (M7, case Q7).
 */
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 })

const bundle = fileURLToPath(new URL('../../dist/server.mjs', import.meta.url))

/** What the story's calls need of a system, with the process behind it. */
type Server = Pick<TestSystem, 'baseUrl' | 'token' | 'call'> & { kill: () => Promise<void> }

let upstream: FakeUpstream
let home: string
let process9: ChildProcess | undefined

beforeAll(async () => {
  const steps = new URL('../../scripts/bootstrap/up-to-date.mjs', import.meta.url).href
  const { bringUpToDate } = (await import(steps)) as { bringUpToDate: (names: readonly string[]) => Promise<void> }
  await bringUpToDate(['server'])
  upstream = await startFakeUpstream({ answersJobs: true })
})
afterAll(() => upstream.close())

beforeEach(async () => {
  upstream.unscript()
  home = makeTestHome()
  // Migrated already, as every start but the first one finds it.
  const database = await openLightDatabase({ home, snapshot: await databaseSnapshot(PROJECT_MIGRATIONS) })
  await database.close()
})
afterEach(async () => {
  if (process9 && process9.exitCode === null && process9.signalCode === null) {
    process9.kill('SIGKILL')
    await once(process9, 'close')
  }
  rmSync(home, { recursive: true, force: true })
})

async function start(): Promise<Server> {
  const child = spawn(process.execPath, [bundle], {
    env: {
      PATH: '/usr/bin:/bin',
      PORT: '0',
      LINGTAI_HOME: home,
      OPENAI_BASE_URL: upstream.baseUrl,
      OPENAI_API_KEY: 'test-key',
      LINGTAI_MODEL: 'test-model',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  process9 = child
  const closed = once(child, 'close')
  let complaints = ''
  child.stderr.on('data', (bytes: Buffer) => {
    complaints += bytes.toString('utf8')
  })
  let baseUrl: string | undefined
  for await (const line of createInterface({ input: child.stdout })) {
    baseUrl = /^ {2}Open {5}(http:\S+?)\/$/.exec(line)?.[1]
    if (baseUrl !== undefined) break
  }
  if (baseUrl === undefined) throw new Error(`the server did not start:\n${complaints}`)
  child.stdout.resume()
  const reply = await callAdminSocket(home, { verb: 'token', options: { name: 'test' } }, () => undefined)
  if (!reply || !('value' in reply)) throw new Error('there is no token')
  const [url, token] = [baseUrl, reply.value]
  return {
    baseUrl: url,
    token,
    call: async (method, route, { body, headers } = {}) => {
      const response = await fetch(url + route, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        body: body === undefined ? undefined : JSON.stringify(body),
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) as unknown }
    },
    kill: async () => {
      child.kill('SIGKILL')
      await closed
    },
  }
}

/** The story's calls take a whole test system; of a server in another process they only use what it has. */
const system = (server: Server): TestSystem => server as unknown as TestSystem

async function asked(server: Server, treeId: string, text: string): Promise<RunAccepted> {
  const next = upstream.requests.length
  const accepted = await ask(system(server), treeId, text)
  await upstream.request(next)
  return accepted
}

function shown(events: readonly RunStreamEvent[]): unknown[] {
  return events.map(({ seq, type }) => [seq, type])
}

it('killed in mid-stream: the partial is what was shown, the reader resumes, the next in line runs, and the chain holds', async () => {
  const first = await start()
  const [here, there] = [await newTree(system(first)), await newTree(system(first))]
  const [gate, second] = [createGate(), createGate()]
  upstream.script({
    steps: [textChunk('海上🌊'), gate, textChunk('有灯塔,'), second, textChunk('never'), finishChunk(), usageChunk(1, 1), DONE],
  })
  const speaking = await asked(first, here.id, '你看见什么?')
  await follow(first, speaking.run_id, { until: (_, all) => spoken(all) === '海上🌊' })
  gate.open()
  const before = await follow(first, speaking.run_id, { until: (_, all) => spoken(all) === '海上🌊有灯塔,' })
  const waiting = await ask(system(first), there.id, 'and me?')
  expect(waiting).toMatchObject({ state: 'queued', queue_position: 1 })
  await call(first, 'POST', `/v1/runs/${speaking.run_id}/steer`, { text: '快说!' }, { status: 202 })
  const socket = upstream.requests.at(-1)

  await first.kill()
  expect(await socket?.closed).toBe(true)
  upstream.script(answer('My turn.'))
  const again = await start()

  // Resumed with the id that was seen last: only what is new. From the beginning: what was shown, unchanged, and then the end.
  const last = before.at(-1)?.seq ?? 0
  const rest = await follow(again, speaking.run_id, { after: last })
  expect(rest.every((event) => event.seq > last)).toBe(true)
  expect(rest.map((event) => event.type)).toEqual(['steer.received', 'run.interrupted'])
  expect(rest[0]).toMatchObject({ used: false, text: '快说!', prev_seq: last })
  expect(rest[1]).toMatchObject({ reason: 'lease_expired', partial: true, candidate_id: speaking.candidate_id })
  const whole = await follow(again, speaking.run_id)
  expect(shown(whole)).toEqual([...shown(before), ...shown(rest)])
  expect(spoken(whole)).toBe('海上🌊有灯塔,')
  expect(await node(system(again), speaking.candidate_id)).toMatchObject({ text: '海上🌊有灯塔,', partial: true, sealed: true })
  expect((await path(system(again), here.id)).live_run_id).toBeNull()

  expect(spoken(await follow(again, waiting.run_id))).toBe('My turn.')
  expect(await call<VerifyReport>(again, 'POST', '/v1/admin/verify', {})).toMatchObject({ intact: true, faults: [] })
  const context = await call<{ result: string }>(again, 'GET', `/v1/admin/runs/${speaking.run_id}/context`)
  expect(context.result).toBe('identical')
})

it('killed again and again, before a word and inside a second turn: each time it ends once, and nothing stays alive', async () => {
  const first = await start()
  const tree = await newTree(system(first))
  upstream.script({ beforeHeaders: HOLD })
  const silent = await asked(first, tree.id, 'hello?')
  await first.kill()

  const second = await start()
  expect((await follow(second, silent.run_id)).at(-1)).toMatchObject({
    type: 'run.interrupted',
    reason: 'lease_expired',
    candidate_id: null,
  })
  expect((await second.call('GET', `/v1/nodes/${silent.candidate_id}`)).status).toBe(404)
  const gate = createGate()
  upstream.script({ steps: [textChunk('Left'), gate, finishChunk(), usageChunk(1, 1), DONE] }, { steps: [textChunk('Right'), HOLD] })
  const turned = await asked(second, tree.id, 'which way?')
  await follow(second, turned.run_id, { until: (_, all) => spoken(all) === 'Left' })
  await call(second, 'POST', `/v1/runs/${turned.run_id}/steer`, { text: 'the other one' }, { status: 202 })
  gate.open()
  await follow(second, turned.run_id, { until: (_, all) => spoken(all) === 'LeftRight' })
  await second.kill()

  const third = await start()
  const events = await follow(third, turned.run_id)
  expect(events.filter((event) => event.type === 'steer.received')).toMatchObject([{ used: true, text: 'the other one' }])
  expect(events.filter((event) => event.type === 'run.interrupted')).toMatchObject([{ reason: 'lease_expired', partial: true }])
  expect((await node(system(third), turned.candidate_id)).parts).toEqual([
    { kind: 'text', text: 'Left' },
    { kind: 'steer', text: 'the other one' },
    { kind: 'text', text: 'Right' },
  ])
  for (const state of ['running', 'queued']) {
    expect((await call<{ items: RunView[] }>(third, 'GET', `/v1/runs?state=${state}`)).items).toEqual([])
  }
  expect(await call<VerifyReport>(third, 'POST', '/v1/admin/verify', {})).toMatchObject({ intact: true, faults: [] })
  upstream.script(answer('Here.'))
  expect(spoken(await follow(third, (await ask(system(third), tree.id, 'still there?')).run_id))).toBe('Here.')
})
