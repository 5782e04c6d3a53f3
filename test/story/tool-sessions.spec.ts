/** A server of tools keeps its state for as long as a run goes on with it, and is gone with the run, and with the process. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { ToolSourceView } from '#contracts'
import type { EffectCall } from '#kernel/ports/effect-target'
import { hostile, isAlive } from '../support/mcp-servers.ts'
import { answer, askAndHear, call } from '../support/story.ts'
import { calling, treeWithTools } from '../support/tool-calls.ts'
import { startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

let folder: string
let world: World
/** Processes of servers that are to end with the system. */
const resting: number[] = []
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lingtai-tool-sessions-'))
  const servers = { counting: { command: process.execPath, args: [hostile, 'counter'] } }
  writeFileSync(join(folder, 'servers.json'), JSON.stringify(servers))
  world = await startWorld({ environment: { LINGTAI_MCP_STDIO: join(folder, 'servers.json') } })
})
afterAll(async () => {
  await world.close()
  expect(resting.filter(isAlive)).toEqual([])
  rmSync(folder, { recursive: true, force: true })
})

it('is one process within a run, another in the next, and none after it', async () => {
  const { system, upstream } = world
  const { id } = await call<ToolSourceView>(
    system,
    'POST',
    '/v1/tool-sources',
    { name: 'counting', mcp: { server: 'counting' } },
    { status: 201 },
  )
  const { tools } = await call<ToolSourceView>(system, 'POST', `/v1/tool-sources/${id}/refresh`)
  await call(system, 'POST', `/v1/tool-sources/${id}/accept`, {
    tools: tools.map(({ name, version }) => ({ name, version, capability: 'read_only' })),
  })
  const tree = await treeWithTools(system, ['mcp/counting.read'])
  /** What a run sees that calls twice: the server's process and its count, each time. */
  const counted = async (): Promise<string[]> => {
    const last = upstream.requests.length + 2
    const once = calling([{ name: 'mcp_counting_read', arguments: '{}' }])
    upstream.script(once, once, answer('Counted.'))
    await askAndHear(system, tree.id, 'Count twice.')
    const { messages } = JSON.parse(upstream.requests[last]?.bodyText ?? '') as { messages: { role: string; content: string }[] }
    return messages.filter(({ role }) => role === 'tool').map(({ content }) => /\d+ \d+/.exec(content)?.[0] ?? content)
  }
  const runs = [await counted(), await counted()]
  const pids = runs.map(([first]) => first?.split(' ')[0] ?? '')
  expect(new Set(pids).size).toBe(2)
  expect(runs).toEqual(pids.map((pid) => [`${pid} 1`, `${pid} 2`]))
  await vi.waitFor(() => expect(pids.filter((pid) => isAlive(Number(pid)))).toEqual([]), { timeout: 10_000 })
})

it('rests between two calls, and ends with the process', async () => {
  const { system } = world
  const found = await system.system.tools.find(system.ownerId, 'mcp/counting.read')
  const runId = randomUUID()
  const outcomes = [await found?.target.execute(effectOf(runId)), await found?.target.execute(effectOf(runId))]
  const texts = outcomes.map((outcome) => (outcome?.type === 'done' ? outcome.observation.text : JSON.stringify(outcome)))
  const pid = Number(texts[0]?.split(' ')[0])
  expect(texts).toEqual([`${pid} 1`, `${pid} 2`])
  expect(isAlive(pid)).toBe(true)
  resting.push(pid)
})

const effectOf = (runId: string): EffectCall => ({
  effectId: randomUUID(),
  ownerId: world.system.ownerId,
  characterId: 'c',
  runId,
  treeId: null,
  tool: 'mcp/counting.read',
  arguments: {},
  idempotencyKey: randomUUID(),
  argumentsHash: '00',
  constraints: [],
  signal: new AbortController().signal,
})
