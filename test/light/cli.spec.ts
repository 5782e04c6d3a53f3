import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { loadConfig } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import { databaseSnapshot } from '#test/support/database-snapshot'
import { makeTestHome } from '#test/support/light-database'
import { serveAdminSocket } from '../../apps/bff/admin-socket/serve.ts'
import { answerVerb, runCli } from '../../apps/bff/cli/run-cli.ts'
import { composeSystem } from '../../apps/bff/composition/compose-system.ts'
import type { System } from '../../apps/bff/composition/compose-system.ts'

// Each command with no server running opens the database for itself.
vi.setConfig({ testTimeout: 120_000 })

let home: string
beforeAll(async () => {
  home = makeTestHome()
  cpSync(await databaseSnapshot(fileURLToPath(new URL('../../prisma/migrations', import.meta.url))), join(home, 'pg'), { recursive: true })
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

const config = () => loadConfig({ LINGTAI_HOME: home, PORT: '39001' })

async function run(...argv: string[]): Promise<{ code: number; values: string[]; said: string[] }> {
  const values: string[] = []
  const said: string[] = []
  const code = await runCli({ argv, config: config(), output: { value: (text) => values.push(text), say: (text) => said.push(text) } })
  return { code, values, said }
}

/** A server as commands see it: it has the home and listens on its socket. */
async function withServer(work: (system: System) => Promise<void>): Promise<void> {
  const system = await composeSystem({ config: config(), logger: createLogger('silent') })
  const socket = await serveAdminSocket({
    home,
    handle: (request, note) => answerVerb({ system, baseUrl: 'http://127.0.0.1:4000', note }, request),
  })
  system.lifecycle.onClose('admin socket', () => socket.close())
  try {
    await work(system)
  } finally {
    await system.close()
  }
}

describe('a command on the light tier', () => {
  it('takes the home itself while nothing runs, and answers the value alone', async () => {
    const token = await run('token', '--name', 'laptop')
    expect(token).toMatchObject({ code: 0, values: [expect.stringMatching(/^lt_[\w-]{43}$/)] })
    const link = await run('signin')
    expect(link).toMatchObject({ code: 0, values: [expect.stringMatching(/^http:\/\/127\.0\.0\.1:39001\/#signin=[\w-]{43}$/)] })
    expect(await run('verify')).toMatchObject({ code: 0, values: [expect.stringMatching(/./)] })
  })

  it('asks the server that runs, whose address the link has', async () => {
    await withServer(async (system) => {
      const { code, values } = await run('token', '--name', 'phone', '--scopes', 'read')
      expect(code).toBe(0)
      const principal = await system.identity.authenticator.byToken(values[0] ?? '')
      expect([principal?.ownerId, [...(principal?.scopes ?? [])]]).toEqual([system.firstOwner.id, ['read']])
      const [link = ''] = (await run('signin')).values
      expect(link.startsWith('http://127.0.0.1:4000/#signin=')).toBe(true)
      expect((await system.identity.signin.redeem(link.split('=')[1] ?? '')).owner.id).toBe(system.firstOwner.id)
      expect(await run('migrate')).toMatchObject({ code: 0, values: [expect.stringContaining('up to date')] })
    })
  })

  it('grants what the owner may, and approving only by name', async () => {
    await withServer(async (system) => {
      const scopesOf = async (...options: string[]): Promise<string[]> => {
        const { values } = await run('token', '--name', 'x', ...options)
        return [...((await system.identity.authenticator.byToken(values[0] ?? ''))?.scopes ?? [])].toSorted()
      }
      expect(await scopesOf()).toEqual(['admin', 'read', 'write'])
      expect(await scopesOf('--scopes', 'read,approve')).toEqual(['approve', 'read'])
      await system.identity.owners.create({ name: 'guest', role: 'user', actor: 'system' })
      expect(await scopesOf('--owner', 'guest')).toEqual(['read', 'write'])
      expect(await run('token', '--name', 'x', '--owner', 'guest', '--scopes', 'admin')).toMatchObject({ code: 1, values: [] })
    })
  })

  it('says nothing on standard output, and not 0, where it is not understood', async () => {
    await withServer(async () => {
      for (const argv of [
        [],
        ['nothing'],
        ['toString'],
        ['token'],
        ['token', '--name', 'x', '--owner', 'nobody'],
        ['token', '--name', 'x', '--scopes', 'all'],
      ]) {
        const { code, values, said } = await run(...argv)
        expect([code, values], argv.join(' ')).toEqual([2, []])
        expect(said.join(''), argv.join(' ')).not.toBe('')
      }
    })
  })
})
