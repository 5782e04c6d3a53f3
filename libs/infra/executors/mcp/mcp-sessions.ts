import { createHash } from 'node:crypto'
import { RequestLostError, unlessAborted } from '../http/guarded-request.ts'
import { McpConnection } from './mcp-session.ts'
import type { McpLimits, McpPlace, McpSession } from './mcp-session.ts'
import type { ListedTool } from './offer.ts'

/** A session that nobody used for this long is ended, in ms. */
const IDLE_MS = 60_000
/** Sessions that are kept at once in this process. */
const MAX_KEPT = 32

/** One call of one run to one server. */
export type McpCall = {
  ownerId: string
  characterId: string
  runId: string
  /** The owner's source that the server belongs to. */
  sourceId: string
  place: McpPlace
  signal: AbortSignal
  timeLimitMs: number
}

/** What a call does with the tools as the server lists them now. */
export type McpWork<Result> = (listed: readonly ListedTool[], callTool: McpSession['callTool']) => Promise<Result>

type Kept = { connection: McpConnection; runId: string; idle: NodeJS.Timeout }
type UnderWay = { runId: string; mayKeep: boolean; over: Promise<void> }
/** How the use of a session ended: in a result, or before the work began, and so before anything was sent. */
type Used<Result> = { result: Result } | { unheard: unknown }

/**
 * Sessions with tool servers, each kept for as long as its run needs it, so that a server with state (a browser, a shell) is of use. A session
 * belongs to one run and one place of one source: whatever differs has another. What a server said of its tools is never kept: they are
 * listed before each call. A call that brought no proper result ends its session, since nobody knows what the server still does.
 *
 * Calls for one session follow each other: the second sees the world that the first one leaves, as its run does, which a session of its own
 * would not show it. Waiting is part of a call's time.
 */
export class McpSessions {
  readonly #version: string
  readonly #idleMs: number
  readonly #maxKept: number
  readonly #stopping = new AbortController()
  /** Sessions at rest by key; the one that was used longest ago is first. */
  readonly #atRest = new Map<string, Kept>()
  /** Sessions that are kept, at rest or in use, until they are closed. */
  #kept = 0
  readonly #underWay = new Set<UnderWay>()
  /** The end of each key's last call. */
  readonly #turns = new Map<string, Promise<void>>()
  readonly #endings = new Set<Promise<void>>()

  constructor({ version, idleMs = IDLE_MS, maxKept = MAX_KEPT }: { version: string; idleMs?: number; maxKept?: number }) {
    this.#version = version
    this.#idleMs = idleMs
    this.#maxKept = maxKept
  }

  /**
   * Lists the server's tools and does the work, on the run's session where there is one. A session that turns out to be dead while the tools
   * are listed is replaced, once; from the moment the work begins nothing is done twice (K3). Rejects with whatever the connection, the
   * protocol or the work rejects with.
   */
  async call<Result>(call: McpCall, work: McpWork<Result>): Promise<Result> {
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    const underWay: UnderWay = { runId: call.runId, mayKeep: true, over }
    this.#underWay.add(underWay)
    const signal = AbortSignal.any([call.signal, AbortSignal.timeout(call.timeLimitMs), this.#stopping.signal])
    const key = keyOf(call)
    try {
      return await this.#inTurn(key, signal, () =>
        this.#callAlone({ key, place: call.place, limits: { signal, timeLimitMs: call.timeLimitMs }, underWay }, work),
      )
    } catch (error) {
      if (this.#stopping.signal.aborted && !call.signal.aborted) throw new RequestLostError('stopped', { cause: error })
      throw error
    } finally {
      this.#underWay.delete(underWay)
      end()
    }
  }

  /** The process is done with a run, for now or for good: its sessions end, and one that is in use ends after that. */
  leaveRun(runId: string): void {
    for (const call of this.#underWay) if (call.runId === runId) call.mayKeep = false
    for (const [key, kept] of this.#atRest) if (kept.runId === runId) void this.#endAtRest(key, kept)
  }

  /** Ends every session, and every call with it. When it resolves each server’s process has ended, or was killed. */
  async close(): Promise<void> {
    this.#stopping.abort()
    for (const [key, kept] of this.#atRest) void this.#endAtRest(key, kept)
    await Promise.all([...this.#underWay].map(({ over }) => over))
    await Promise.all(this.#endings)
  }

  async #callAlone<Result>(call: CallAlone, work: McpWork<Result>): Promise<Result> {
    const rested = this.#takeUp(call.key)
    if (rested?.isOpen) {
      const used = await this.#use(rested, call, work, { isKept: true })
      if ('result' in used) return used.result
      if (call.limits.signal.aborted) throw used.unheard
    } else if (rested) await this.#end(rested)
    const isKept = await this.#reserve()
    const used = await this.#use(await this.#open(call, { isKept }), call, work, { isKept })
    if ('result' in used) return used.result
    throw used.unheard
  }

  async #open({ place, limits }: CallAlone, { isKept }: { isKept: boolean }): Promise<McpConnection> {
    try {
      return await McpConnection.open(place, { version: this.#version, limits })
    } catch (error) {
      if (isKept) this.#kept--
      throw error
    }
  }

  /** Does the work on a session, and lays it aside or ends it. */
  async #use<Result>(
    connection: McpConnection,
    { key, limits, underWay }: CallAlone,
    work: McpWork<Result>,
    { isKept }: { isKept: boolean },
  ): Promise<Used<Result>> {
    let begun = false
    let answered = false
    let proper = false
    try {
      const result = await connection.during(limits, async (session) => {
        const listed = await session.listTools()
        begun = true
        return work(listed, async (name, args) => {
          const answer = await session.callTool(name, args)
          answered = true
          return answer
        })
      })
      proper = answered
      return { result }
    } catch (error) {
      if (begun) throw error
      return { unheard: error }
    } finally {
      const mayRest = isKept && proper && underWay.mayKeep && !this.#stopping.signal.aborted && connection.isOpen
      if (mayRest) this.#layAside(key, connection, underWay.runId)
      else await this.#end(connection, { isKept })
    }
  }

  /** The session at rest, which nobody else can take then. */
  #takeUp(key: string): McpConnection | null {
    const kept = this.#atRest.get(key)
    if (!kept) return null
    clearTimeout(kept.idle)
    this.#atRest.delete(key)
    return kept.connection
  }

  #layAside(key: string, connection: McpConnection, runId: string): void {
    const idle = setTimeout(() => void this.#endAtRest(key, kept), this.#idleMs)
    idle.unref()
    const kept: Kept = { connection, runId, idle }
    this.#atRest.set(key, kept)
  }

  /** A place for one more that is kept, if need be that of the one that rested longest. False where all are in use. */
  async #reserve(): Promise<boolean> {
    if (this.#kept >= this.#maxKept) {
      const [oldest] = this.#atRest
      if (!oldest) return false
      // Its place is taken at once: whoever asks next does not count on it too.
      this.#kept++
      await this.#endAtRest(...oldest)
      return true
    }
    this.#kept++
    return true
  }

  #endAtRest(key: string, { connection, idle }: Kept): Promise<void> {
    clearTimeout(idle)
    this.#atRest.delete(key)
    return this.#end(connection)
  }

  async #end(connection: McpConnection, { isKept }: { isKept: boolean } = { isKept: true }): Promise<void> {
    const ending = connection.close().finally(() => {
      if (isKept) this.#kept--
      this.#endings.delete(ending)
    })
    this.#endings.add(ending)
    await ending
  }

  /** One after the other, in the order of asking. Throws RequestNotSentError where the signal aborts first. */
  async #inTurn<Result>(key: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const before = this.#turns.get(key) ?? Promise.resolve()
    const { promise: mine, resolve: done } = Promise.withResolvers<void>()
    const last = before.then(() => mine)
    this.#turns.set(key, last)
    void last.then(() => {
      if (this.#turns.get(key) === last) this.#turns.delete(key)
    })
    try {
      await unlessAborted(before, signal)
      return await work()
    } finally {
      done()
    }
  }
}

type CallAlone = { key: string; place: McpPlace; limits: McpLimits; underWay: UnderWay }

/** Everything by which two sessions differ, as a digest: headers and variables hold secrets. */
function keyOf({ ownerId, characterId, runId, sourceId, place }: McpCall): string {
  const reached =
    place.type === 'http'
      ? [place.url, sorted(place.headers)]
      : [place.server.command, place.server.args, sorted(place.server.env), place.server.cwd]
  const parts = [ownerId, characterId, runId, sourceId, place.type, reached]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

function sorted(values: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(values).toSorted(([left], [right]) => (left < right ? -1 : 1))
}
