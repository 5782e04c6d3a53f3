/** Servers with tools, and their accepted tools as a run calls them. */
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { CapabilityClass } from '#contracts'
import type { OfferedTool } from '#domains/tools/ports'
import { contractOfSource } from '#domains/tools/source-contract'
import { withMcpSession } from '#infra/executors/mcp/mcp-session'
import type { McpPlace } from '#infra/executors/mcp/mcp-session'
import type { McpSessions } from '#infra/executors/mcp/mcp-sessions'
import { McpTarget } from '#infra/executors/mcp/mcp-target'
import { offerTools } from '#infra/executors/mcp/offer'
import type { EffectCall, EffectOutcome } from '#kernel/ports/effect-target'
import type { JsonObject } from '#kernel/ports/model-gateway'

export const hostile = join(import.meta.dirname, 'hostile-mcp-server.mjs')

/** What the official test servers are started by. */
export const packageEntry = (name: string): string =>
  join(import.meta.dirname, `../../node_modules/@modelcontextprotocol/${name}/dist/index.js`)

export const stdio = (...args: string[]): McpPlace => ({ type: 'stdio', server: { command: process.execPath, args, env: {}, cwd: null } })
export const evil = (what: string, ...rest: string[]): McpPlace => stdio(hostile, what, ...rest)

export async function offeredBy(place: McpPlace) {
  const options = { version: '0', signal: new AbortController().signal, timeLimitMs: 20_000 }
  return offerTools(await withMcpSession(place, options, (session) => session.listTools()), 64)
}

/** The official server with every feature, over streamable HTTP. */
export async function startEverything(): Promise<{ port: number; stop(): Promise<void> }> {
  const port = await freePort()
  const server = spawn(process.execPath, [packageEntry('server-everything'), 'streamableHttp'], {
    env: { PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const gone = new Promise<void>((resolve) => server.once('close', () => resolve()))
  await new Promise<void>((resolve, reject) => {
    server.stderr.on('data', (chunk: Buffer) => chunk.toString().includes('listening') && resolve())
    server.once('exit', () => reject(new Error('the server did not start')))
  })
  return {
    port,
    stop: () => {
      server.kill()
      return gone
    },
  }
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return port
}

/** Whether a process is there. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false // no such process
  }
}

/** The one tool that the hostile server has where it does not lie about it. */
export async function plainRead(): Promise<OfferedTool> {
  const [tool] = (await offeredBy(evil('none'))).offered
  if (!tool) throw new Error('the server offers nothing')
  return tool
}

/** Who calls; each is another one unless it is said. */
export type Caller = Partial<Pick<EffectCall, 'ownerId' | 'characterId' | 'runId'>>

let runs = 0

export function targetOf(
  { sessions, place, tool }: { sessions: McpSessions; place: McpPlace; tool: OfferedTool },
  options: {
    caller?: Caller
    sourceId?: string
    capability?: CapabilityClass
    timeLimitMs?: number
    onChanged?: (offered: readonly OfferedTool[]) => Promise<void>
  } = {},
) {
  const { capability = null, caller, ...rest } = options
  const contract = contractOfSource('mcp', 'try', { ...tool, source_id: '', accepted_version: tool.version, capability, missing: false })
  const target = new McpTarget({
    contract,
    declaration: tool.declaration,
    sessions,
    place,
    sourceId: 's',
    source: 'mcp/try',
    clock: { now: () => new Date(0) },
    timeLimitMs: 20_000,
    ...rest,
  })
  const whose = { ownerId: 'o', characterId: 'c', runId: `r${++runs}`, ...caller }
  const run = (args: JsonObject = {}, signal = new AbortController().signal): Promise<EffectOutcome> =>
    target.execute({
      ...whose,
      effectId: 'e',
      treeId: null,
      tool: contract.name,
      arguments: args,
      idempotencyKey: 'k',
      argumentsHash: '00',
      constraints: [],
      signal,
    })
  return { contract, run }
}

export const codeOf = (outcome: EffectOutcome): string => (outcome.type === 'done' ? 'done' : `${outcome.type} ${outcome.code}`)
export const textOf = (outcome: EffectOutcome): string => (outcome.type === 'unknown' ? '' : (outcome.observation?.text ?? ''))
