import childProcess from 'node:child_process'
import { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { answer, askAndHear } from '../support/story.ts'
import { calling, treeWithTools } from '../support/tool-calls.ts'
import { startWorld } from '../support/world.ts'
import type { World } from '../support/world.ts'

/** Who may be seen in the act: the first file of ours below a connection or a process that begins. */
const may = [/^libs\/model\//, /^libs\/infra\/(executors|pglite|prisma|redis)\//, /^apps\/bff\/(http\/server|admin-socket\/)/, /^test\//]
/** Connections that a database's pool opens by itself, with no file of ours below. */
const pools = /node_modules\/(pg|pg-pool|ioredis|@prisma)\//

/** Files of ours on the stack, nearest first, or the pool that acts by itself. */
function actors(stack: string): string[] {
  const ours = [...stack.matchAll(/(?:file:\/\/)?\/[^\s()]*?\/((?:libs|apps|test)\/[^\s():]+\.ts)/g)].map((match) => match[1] ?? '')
  const outside = ours.filter((file) => file !== 'test/structure/reach.spec.ts')
  return outside.length > 0 ? outside : pools.test(stack) ? ['libs/infra/prisma/'] : []
}

describe('what really reaches the network or starts a process', () => {
  const seen: { what: string; stack: string }[] = []
  const { connect } = Socket.prototype
  const { spawn } = childProcess
  let world: World

  beforeAll(async () => {
    Error.stackTraceLimit = 60
    const note = (what: string): void => void seen.push({ what, stack: new Error(what).stack ?? '' })
    Socket.prototype.connect = function connectSeen(this: Socket, ...args: Parameters<typeof connect>) {
      note('connects')
      return connect.apply(this, args)
    } as typeof connect
    childProcess.spawn = ((...args: Parameters<typeof spawn>) => {
      note('starts a process')
      return spawn(...args)
    }) as typeof spawn
    world = await startWorld()
  })
  afterAll(async () => {
    await world.close()
    Socket.prototype.connect = connect
    childProcess.spawn = spawn
  })

  it('is one of the few adapters, through a whole conversation with tools', async () => {
    const tree = await treeWithTools(world.system, ['clock', 'notes.write', 'recall'])
    world.upstream.script(
      calling([{ name: 'clock', arguments: '{}' }]),
      calling([{ name: 'notes_write', arguments: '{"text":"a note"}' }]),
      calling([{ name: 'recall', arguments: '{"query":"notes"}' }]),
      answer('Noted, and looked up.'),
    )
    await askAndHear(world.system, tree.id, 'Look at the clock, note it, recall it.')
    expect(seen.length).toBeGreaterThan(0)
    const others = seen.filter(({ stack }) => !may.some((pattern) => pattern.test(actors(stack)[0] ?? '')))
    // The test's own calls of the API go out by the platform's fetch, which has no file of ours below it.
    expect(others.filter(({ stack }) => !stack.includes('node:internal/deps/undici'))).toEqual([])
    expect(seen.some(({ stack }) => actors(stack).some((file) => file.startsWith('libs/model/')))).toBe(true)
  })
})
