import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HomeInUseError, lockHome } from '#infra/pglite/home-lock'
import { databaseSnapshot } from '../support/database-snapshot.ts'
import { type LineProcess, startProgram } from '../support/child-process.ts'
import { FIXTURE_MIGRATIONS, makeTestHome } from '../support/light-database.ts'

const program = fileURLToPath(new URL('./fixtures/home-holder.ts', import.meta.url))

let home: string
let started: LineProcess[]

beforeEach(() => {
  home = makeTestHome()
  started = []
})
afterEach(async () => {
  await Promise.all(started.map((process) => process.kill()))
  rmSync(home, { recursive: true, force: true })
})

async function startHolder(mode: 'lock' | 'database' = 'database'): Promise<LineProcess> {
  const holder = startProgram(program, [mode, home, await databaseSnapshot(FIXTURE_MIGRATIONS)], ['--expose-gc'])
  started.push(holder)
  return holder
}

describe('a home belongs to one process (decision 2)', { timeout: 120_000 }, () => {
  it('refuses a second start in another process, and says who holds the home', async () => {
    const first = await startHolder()
    expect(await first.nextLine()).toBe('open')

    const second = await startHolder()
    expect(JSON.parse(await second.nextLine())).toEqual({
      name: 'HomeInUseError',
      message: expect.stringContaining(`in use by process ${first.pid} (http://127.0.0.1:4000)`),
      holder: { pid: first.pid, address: 'http://127.0.0.1:4000' },
    })
    expect(await second.exit).toBe(3)
  })

  it.each(['lock', 'database'] as const)(
    'still refuses it after a holder of the %s collected garbage and read all its other files',
    async (mode) => {
      const first = await startHolder(mode)
      expect(await first.nextLine()).toBe('open')
      first.send('collect')
      expect(await first.nextLine()).toBe('collected')

      const second = await startHolder('lock')
      expect(JSON.parse(await second.nextLine())).toMatchObject({ name: 'HomeInUseError' })
    },
  )

  it('lets the next process in once the holder was killed', async () => {
    const first = await startHolder()
    expect(await first.nextLine()).toBe('open')
    await first.kill()

    const second = await startHolder('lock')
    expect(await second.nextLine()).toBe('open')
    expect(await second.finish()).toBe(0)
  })

  it('refuses a second taker in the same process, and a third elsewhere after that', async () => {
    const lock = lockHome(home)
    expect(() => lockHome(home)).toThrow(HomeInUseError)

    const other = await startHolder('lock')
    expect(JSON.parse(await other.nextLine())).toMatchObject({ name: 'HomeInUseError', holder: { pid: process.pid } })
    lock.release()
    lockHome(home).release()
  })

  it('names no process that is gone', () => {
    mkdirSync(home, { recursive: true })
    const lock = lockHome(home)
    writeFileSync(join(home, 'holder.json'), JSON.stringify({ pid: 2 ** 22 + 1 }))
    expect(() => lockHome(home)).toThrow(
      expect.objectContaining({ holder: undefined, message: expect.stringContaining('another process') }),
    )
    lock.release()
  })
})
