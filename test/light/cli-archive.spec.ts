import { cpSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { loadConfig } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import { databaseSnapshot } from '#test/support/database-snapshot'
import { makeTestHome, PROJECT_MIGRATIONS } from '#test/support/light-database'
import { serveAdminSocket } from '../../apps/bff/admin-socket/serve.ts'
import { answerVerb, runCli } from '../../apps/bff/cli/run-cli.ts'
import { composeSystem } from '../../apps/bff/composition/compose-system.ts'

// Each command with no server running opens the database for itself.
vi.setConfig({ testTimeout: 120_000 })

const homes: string[] = []
let used: string
let fresh: string
let files: string

async function newHome(): Promise<string> {
  const home = makeTestHome()
  homes.push(home)
  cpSync(await databaseSnapshot(PROJECT_MIGRATIONS), join(home, 'pg'), { recursive: true })
  return home
}

beforeAll(async () => {
  used = await newHome()
  fresh = await newHome()
  files = makeTestHome()
  homes.push(files)
})
afterAll(() => homes.forEach((home) => rmSync(home, { recursive: true, force: true })))

async function run(home: string, ...argv: string[]): Promise<{ code: number; values: string[]; said: string }> {
  const values: string[] = []
  const said: string[] = []
  const config = loadConfig({ LINGTAI_HOME: home })
  const code = await runCli({ argv, config, output: { value: (text) => values.push(text), say: (text) => said.push(text) } })
  return { code, values, said: said.join('\n') }
}

describe('npm run archive', () => {
  it('is written by the server that runs, or by the command itself, for its owner alone, and never over a file', async () => {
    const byServer = join(files, 'one.jsonl')
    const system = await composeSystem({ config: loadConfig({ LINGTAI_HOME: used }), logger: createLogger('silent') })
    const socket = await serveAdminSocket({
      home: used,
      handle: (request, note) => answerVerb({ system, baseUrl: 'http://127.0.0.1:4000', note }, request),
    })
    system.lifecycle.onClose('admin socket', () => socket.close())
    try {
      const out = await run(used, 'archive', 'out', byServer)
      expect(out).toMatchObject({ code: 0, values: [expect.stringMatching(/rows, \d+ bytes, ends with [0-9a-f]{64}$/)] })
      expect(statSync(byServer).mode & 0o777).toBe(0o600)
      expect(await run(used, 'archive', 'out', byServer)).toMatchObject({
        code: 1,
        values: [],
        said: expect.stringMatching(/there already/) as string,
      })
      expect(await run(used, 'archive', 'in', byServer)).toMatchObject({
        code: 2,
        values: [],
        said: expect.stringMatching(/not empty/) as string,
      })
    } finally {
      await system.close()
    }
    const byItself = join(files, 'two.jsonl')
    expect(await run(used, 'archive', 'out', byItself)).toMatchObject({ code: 0 })
    const body = (file: string): string[] => readFileSync(file, 'utf8').split('\n').slice(1, -2)
    expect(body(byItself)).toEqual(body(byServer))
  })

  it('is restored into an empty home, once, and the record is whole there', async () => {
    const file = join(files, 'two.jsonl')
    const torn = join(files, 'torn.jsonl')
    writeFileSync(torn, readFileSync(file).subarray(0, 5_000))
    expect(await run(fresh, 'archive', 'in', torn)).toMatchObject({
      code: 1,
      values: [],
      said: expect.stringMatching(/cannot be restored/) as string,
    })
    const restored = await run(fresh, 'archive', 'in', file)
    expect(restored).toMatchObject({ code: 0, values: [expect.stringMatching(/intact; 0 texts erased again; epoch 2$/)] })
    expect(existsSync(join(fresh, 'anchors.jsonl'))).toBe(true)
    expect(await run(fresh, 'verify')).toMatchObject({ code: 0 })
    expect(await run(fresh, 'archive', 'in', file)).toMatchObject({
      code: 1,
      values: [],
      said: expect.stringMatching(/not empty/) as string,
    })
    expect(await run(fresh, 'signin')).toMatchObject({ code: 0 })
  })

  it.each([
    [['archive']],
    [['archive', 'out']],
    [['archive', 'sideways', 'x']],
    [['archive', 'out', 'x', '--erasures', 'y']],
    [['archive', 'in', 'x', 'y']],
  ])('is not understood as %j', async (argv) => {
    expect(await run(used, ...argv)).toMatchObject({ code: 2, values: [] })
  })
})
