import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { OfferedTool } from '#domains/tools/ports'
import type { EffectOutcome } from '#kernel/ports/effect-target'
import { startProgram } from '#test/support/child-process'
import { codeOf, evil, hostile, isAlive, plainRead, targetOf, textOf } from '#test/support/mcp-servers'
import type { McpPlace } from './mcp-session.ts'
import { McpSessions } from './mcp-sessions.ts'

let folder: string
let tool: OfferedTool
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lingtai-sessions-'))
  tool = await plainRead()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let sessions: McpSessions
beforeEach(() => void (sessions = new McpSessions({ version: '0' })))
afterEach(() => sessions.close())

/** Calls the server as one run, `r` unless another is said. */
const calling = (place: McpPlace, options: Parameters<typeof targetOf>[1] = {}) =>
  targetOf({ sessions, place, tool }, { ...options, caller: { runId: 'r', ...options.caller } }).run

/** The server's process, and how many calls it was asked for so far. */
function stateIn(outcome: EffectOutcome): { pid: number; calls: number } {
  const [pid, calls] = textOf(outcome).split(' ').map(Number)
  if (pid === undefined || calls === undefined || !(pid > 0)) throw new Error(`no state in ${JSON.stringify(outcome)}`)
  return { pid, calls }
}

/** A file in which a server notes each call that reached it. */
const notes = (name: string): string => join(folder, name)
const noted = (file: string): number => readFileSync(file, 'utf8').split('\n').length - 1
const gone = (pid: number) => vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 10_000, interval: 20 })

describe('a session', { timeout: 60_000 }, () => {
  it('keeps its server’s state within a run, and from everybody else', async () => {
    const counter = evil('counter')
    const first = stateIn(await calling(counter)())
    expect(stateIn(await calling(counter)())).toEqual({ pid: first.pid, calls: 2 })
    const variable: McpPlace = {
      type: 'stdio',
      server: { command: process.execPath, args: [hostile, 'counter'], env: { KEY: 'other' }, cwd: null },
    }
    const others = [
      calling(counter, { caller: { runId: 'r2' } }),
      calling(counter, { caller: { ownerId: 'o2' } }),
      calling(counter, { caller: { characterId: 'c2' } }),
      calling(counter, { sourceId: 's2' }),
      calling(variable),
      calling(evil('counter', notes('argument'))),
    ]
    const pids = new Set([first.pid])
    for (const other of others) {
      const { pid, calls } = stateIn(await other())
      expect(calls).toBe(1)
      pids.add(pid)
    }
    expect(pids.size).toBe(1 + others.length)
    expect(stateIn(await calling(counter)())).toEqual({ pid: first.pid, calls: 3 })
  })

  it('is asked for its tools before each call: what changed or went since the last one is not called', async () => {
    for (const [what, code] of [
      ['changes-after-call', 'failed tool_changed'],
      ['loses-after-call', 'failed tool_gone'],
    ] as const) {
      const file = notes(what)
      const { pid } = stateIn(await calling(evil(what, file))())
      expect(codeOf(await calling(evil(what, file))())).toBe(code)
      expect(noted(file)).toBe(1)
      expect(isAlive(pid)).toBe(false)
    }
  })

  it('has one call at a time, in the order of asking; whoever waits too long or no longer was not sent', async () => {
    const slow = evil('slow')
    const outcomes = await Promise.all([1, 2, 3].map(() => calling(slow)()))
    expect(new Set(outcomes.map((outcome) => stateIn(outcome).pid)).size).toBe(1)
    expect(outcomes.map((outcome) => stateIn(outcome).calls)).toEqual([1, 1, 1])

    const file = notes('silent')
    const silent = evil('silent', file)
    const leave = new AbortController()
    const tired = new AbortController()
    const stuck = calling(silent)({}, leave.signal)
    await vi.waitFor(() => expect(noted(file)).toBe(1), { timeout: 10_000 })
    const late = calling(silent, { timeLimitMs: 100 })()
    const given = calling(silent)({}, tired.signal)
    tired.abort()
    expect([codeOf(await late), codeOf(await given)]).toEqual(['failed timeout', 'failed aborted'])
    leave.abort()
    expect(codeOf(await stuck)).toBe('unknown aborted')
    expect(noted(file)).toBe(1)
  })

  it('counts each call’s messages and bytes by itself', async () => {
    const talkative = calling(evil('talkative'))
    expect([stateIn(await talkative()).calls, stateIn(await talkative()).calls, stateIn(await talkative()).calls]).toEqual([1, 2, 3])
    const large = calling(evil('large'))
    for (let times = 0; times < 3; times++) expect(codeOf(await large())).toBe('done')
  })
})

describe('a session that is no longer of use', { timeout: 60_000 }, () => {
  it.each(['dies-after-call', 'dies-when-listed-again'])('is replaced before anything was sent: %s', async (what) => {
    const file = notes(what)
    const first = stateIn(await calling(evil(what, file))())
    if (what === 'dies-after-call') await gone(first.pid)
    const second = stateIn(await calling(evil(what, file))())
    expect(second.calls).toBe(1)
    expect(second.pid).not.toBe(first.pid)
    expect(noted(file)).toBe(2)
  })

  it('is replaced once: a server that is gone for good is not asked again and again', async () => {
    const file = notes('gone')
    const place = evil('gone-after-call', file)
    expect(codeOf(await calling(place)())).toBe('done')
    expect(codeOf(await calling(place)())).toBe('failed connection_closed')
    // The call, and that the tools were asked for twice: by the session that was there and by the one in its place.
    expect(noted(file)).toBe(1 + 2)
  })

  it.each([
    ['dies-in-second-call', 'unknown connection_closed'],
    ['silent-in-second-call', 'unknown timeout'],
    ['refuses-second-call', 'failed rpc_error'],
  ])('is not asked twice for what may have happened, and not used again: %s', async (what, code) => {
    const file = notes(what)
    const place = evil(what, file)
    const first = stateIn(await calling(place)())
    expect(codeOf(await calling(place, { timeLimitMs: what.startsWith('silent') ? 1_500 : 20_000 })())).toBe(code)
    expect(noted(file)).toBe(2)
    expect(isAlive(first.pid)).toBe(false)
    const third = stateIn(await calling(place)())
    expect(third.calls).toBe(1)
    expect(noted(file)).toBe(3)
  })

  it('goes on after the server’s own word that a call failed', async () => {
    const place = evil('fails-in-second-call')
    const first = stateIn(await calling(place)())
    const second = await calling(place)()
    expect(codeOf(second)).toBe('failed tool_error')
    expect(stateIn(second)).toEqual({ pid: first.pid, calls: 2 })
    expect(stateIn(await calling(place)())).toEqual({ pid: first.pid, calls: 3 })
  })

  it('has ended when its call has, even one that never began', async () => {
    const file = notes('begins')
    expect(codeOf(await calling(evil('never-starts', file), { timeLimitMs: 1_500 })())).toBe('failed timeout')
    expect(isAlive(Number(readFileSync(file, 'utf8')))).toBe(false)
  })

  it('ends where its server talks while nobody asks', async () => {
    const { pid } = stateIn(await calling(evil('talks-when-idle'))())
    await gone(pid)
    expect(stateIn(await calling(evil('talks-when-idle'))())).toMatchObject({ calls: 1 })
  })
})

describe('sessions end', { timeout: 60_000 }, () => {
  it('when nobody used them for a while', async () => {
    sessions = new McpSessions({ version: '0', idleMs: 50 })
    const { pid } = stateIn(await calling(evil('counter'))())
    await gone(pid)
  })

  it('when the process is done with their run, and not with another', async () => {
    const [first, other] = [
      stateIn(await calling(evil('counter'))()),
      stateIn(await calling(evil('counter'), { caller: { runId: 'r2' } })()),
    ]
    const underWay = calling(evil('slow'))()
    sessions.leaveRun('r')
    await gone(first.pid)
    await gone(stateIn(await underWay).pid)
    expect(isAlive(other.pid)).toBe(true)
    // Back again, a run begins anew.
    expect(stateIn(await calling(evil('counter'))()).calls).toBe(1)
  })

  it('with the process: what rests, what is called, and what does not end by itself', async () => {
    const rests = stateIn(await calling(evil('counter'))())
    const stays = stateIn(await calling(evil('never-ends'))())
    const file = notes('called')
    const called = calling(evil('silent', file))()
    await vi.waitFor(() => expect(noted(file)).toBe(1), { timeout: 10_000 })
    await sessions.close()
    expect(codeOf(await called)).toBe('unknown stopped')
    expect(isAlive(rests.pid)).toBe(false)
    await gone(stays.pid)
    expect(codeOf(await calling(evil('counter', file))())).toBe('failed stopped')
    expect(noted(file)).toBe(1)
  })

  it('with a process that is killed: its servers see that nobody is there any more', async () => {
    const url = pathToFileURL(join(import.meta.dirname, 'mcp-session.ts')).href
    const server = JSON.stringify({ command: process.execPath, args: [hostile, 'counter'], env: {}, cwd: null })
    const parent = startProgram('--input-type=module', [
      '-e',
      `import { McpConnection } from '${url}'
       const limits = { signal: AbortSignal.timeout(20_000), timeLimitMs: 20_000 }
       const connection = await McpConnection.open({ type: 'stdio', server: ${server} }, { version: '0', limits })
       const { content } = await connection.during(limits, (session) => session.callTool('read', {}))
       console.log(content[0].text)`,
    ])
    const pid = Number((await parent.nextLine()).split(' ')[0])
    expect(isAlive(pid)).toBe(true)
    await parent.kill()
    await gone(pid)
  })

  it('for the one that is needed more, once there are as many as may be; where all are in use one is opened for the call alone', async () => {
    sessions = new McpSessions({ version: '0', maxKept: 2 })
    const of = async (runId: string) => stateIn(await calling(evil('counter'), { caller: { runId } })())
    const [a, b] = [await of('a'), await of('b')]
    expect(await of('a')).toEqual({ pid: a.pid, calls: 2 })
    const c = await of('c')
    expect([isAlive(a.pid), isAlive(b.pid), isAlive(c.pid)]).toEqual([true, false, true])

    const files = ['a', 'c'].map((runId) => notes(`busy-${runId}`))
    const leave = new AbortController()
    const busy = ['a', 'c'].map((runId, index) => calling(evil('silent', files[index] ?? ''), { caller: { runId } })({}, leave.signal))
    await vi.waitFor(() => expect(files.map(noted)).toEqual([1, 1]), { timeout: 10_000 })
    const alone = await of('d')
    expect(alone.calls).toBe(1)
    expect(isAlive(alone.pid)).toBe(false)
    leave.abort()
    await Promise.all(busy)
    expect((await of('d')).calls).toBe(1)
    expect((await of('d')).calls).toBe(2)
  })
})
