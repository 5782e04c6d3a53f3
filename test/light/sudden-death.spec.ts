import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openLightDatabase } from '#infra/pglite/light-database'
import { type LineProcess, startProgram } from '../support/child-process.ts'
import { databaseSnapshot } from '../support/database-snapshot.ts'
import { FIXTURE_MIGRATIONS, makeTestHome } from '../support/light-database.ts'

const program = fileURLToPath(new URL('./fixtures/home-holder.ts', import.meta.url))

let home: string
let writer: LineProcess | undefined

beforeEach(() => {
  home = makeTestHome()
})
afterEach(async () => {
  await writer?.kill()
  rmSync(home, { recursive: true, force: true })
})

it('keeps every acknowledged row when the process is killed while it writes, twice over (decision 3)', { timeout: 120_000 }, async () => {
  const acknowledged: string[] = []
  for (const rows of [40, 75]) {
    writer = startProgram(program, ['database', home, await databaseSnapshot(FIXTURE_MIGRATIONS)])
    expect(await writer.nextLine()).toBe('open')
    writer.send('write')
    for (let at = 0; at < rows; at++) acknowledged.push(`row ${await writer.nextLine()}`)
    await writer.kill()
    for (const line of await writer.restOfLines()) acknowledged.push(`row ${line}`)
  }

  const database = await openLightDatabase({ home })
  const pool = new pg.Pool({ ...database.connection, max: 1 })
  const { rows } = await pool.query<{ body: string }>('SELECT body FROM notes')
  await pool.end()
  await database.close()

  expect(
    missing(
      acknowledged,
      rows.map(({ body }) => body),
    ),
  ).toEqual([])
  // A row can be committed and its acknowledgement be lost: at most one per connection and kill.
  expect(rows.length - acknowledged.length).toBeLessThanOrEqual(2 * 3)
})

/** Each run counts its rows from 1, so what is expected is compared with what is there as bags. */
function missing(expected: readonly string[], found: readonly string[]): string[] {
  const left = [...found].sort()
  return [...expected].sort().filter((body) => {
    const at = left.indexOf(body)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}
