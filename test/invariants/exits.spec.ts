import { ChildProcess } from 'node:child_process'
import { Socket } from 'node:net'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { DONE, deltaChunk, finishChunk, usageChunk } from '../support/fake-upstream.ts'
import { fullTierServicesIfAny } from '../support/environment.ts'
import { fakeContract, fakeTools } from '../support/fake-target.ts'
import { answer, askAndHear, call, newTree } from '../support/story.ts'
import { startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

const { catalogue } = fakeTools(fakeContract('look.up'))
let world: World
const connects = vi.spyOn(Socket.prototype, 'connect')
const spawns = vi.spyOn(ChildProcess.prototype as unknown as { spawn(): number }, 'spawn')

beforeAll(async () => {
  world = await startWorld({ overrides: { tools: catalogue } })
  connects.mockClear()
  spawns.mockClear()
})
afterAll(async () => {
  await world.close()
  vi.restoreAllMocks()
})

/** Where a connection goes: a port of this machine, a socket's path, or another host. */
function placeOf(given: unknown): string {
  const [options] = Array.isArray(given) ? (given as unknown[]) : [given]
  if (typeof options !== 'object' || options === null) return String(options)
  const { host, port, path } = options as { host?: string; port?: number | string; path?: string | null }
  if (typeof path === 'string' && port === undefined) return path
  return ['127.0.0.1', 'localhost', undefined].includes(host) ? `port ${port}` : `${host}:${port}`
}

it('a run with an action reaches its model and the instance’s own stores, starts nothing, and goes nowhere else (K3)', async () => {
  const { system, upstream } = world
  const tree = await newTree(system)
  const grant = await call<{ version: number }>(system, 'GET', '/v1/grant')
  const classes = ['read_only']
  await call(system, 'PUT', '/v1/grant', { mode: 'default', classes, tools: null, exact: null, version: grant.version })
  await call(system, 'PUT', `/v1/characters/${tree.character_ids[0]}/grant`, {
    mode: 'default',
    classes,
    tools: ['look.up'],
    exact: null,
    version: 0,
  })
  const calls = deltaChunk({ tool_calls: [{ index: 0, id: 'x', type: 'function', function: { name: 'look_up', arguments: '{}' } }] })
  upstream.script(
    { headers: { 'content-type': 'text/event-stream' }, steps: [calls, finishChunk('tool_calls'), usageChunk(1, 1), DONE] },
    answer('Seen.'),
  )
  expect((await askAndHear(system, tree.id, 'Look, please: http://evil.example/')).text).toBe('Seen.')

  const places = new Set(connects.mock.calls.map(([first, host]) => placeOf(typeof first === 'number' ? { port: first, host } : first)))
  const port = (url: string): string => `port ${new URL(url).port}`
  const services = fullTierServicesIfAny()
  const own = [system.baseUrl, ...(services ? [services.databaseUrl, services.redisUrl] : [])].map(port)
  // The database of the light tier listens on a socket in a folder of its own.
  const isOwn = (place: string): boolean => own.includes(place) || (services === undefined && place.startsWith('/'))
  expect([...places].filter((place) => !isOwn(place))).toEqual([port(upstream.baseUrl)])
  expect(spawns).not.toHaveBeenCalled()
})
