import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DataFolderDamagedError, DataFolderVersionError, POSTGRES_MAJOR } from '#infra/pglite/data-folder'
import { lockHome } from '#infra/pglite/home-lock'
import { openLightDatabase } from '#infra/pglite/light-database'
import { makeTestHome } from '../support/light-database.ts'

let home: string

beforeEach(() => {
  home = makeTestHome()
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

it('makes a whole data folder at the first start, in place of what a start that was cut off left', { timeout: 120_000 }, async () => {
  mkdirSync(join(home, 'pg.unfinished-1'))
  const said: string[] = []
  const database = await openLightDatabase({ home, log: (message, fields) => said.push(`${message}: ${String(fields['origin'])}`) })
  const pool = new pg.Pool({ ...database.connection, max: 1 })
  const { rows } = await pool.query(
    "SELECT datcollate, pg_encoding_to_char(encoding) AS encoding FROM pg_database WHERE datname = 'postgres'",
  )
  await pool.end()
  await database.close()

  expect(rows).toEqual([{ datcollate: 'C', encoding: 'UTF8' }])
  expect(said[0]).toBe('database opened: created')
  // PGlite's next major version changes POSTGRES_MAJOR, and with it what old folders are told.
  expect(readFileSync(join(home, 'pg/PG_VERSION'), 'utf8').trim()).toBe(POSTGRES_MAJOR)
  expect(readdirSync(home).sort()).toEqual(['lock', 'pg', 'run'])
})

it('refuses the data of another Postgres version, says how to move on, and frees the home', async () => {
  mkdirSync(join(home, 'pg'))
  writeFileSync(join(home, 'pg/PG_VERSION'), '17\n')
  const refused = openLightDatabase({ home })
  await expect(refused).rejects.toThrow(DataFolderVersionError)
  await expect(refused).rejects.toMatchObject({ found: '17', message: expect.stringContaining('import the archive') })
  lockHome(home).release()
})

it('does not initialise over a folder that is no data folder', async () => {
  mkdirSync(join(home, 'pg'))
  writeFileSync(join(home, 'pg/notes.txt'), 'not a database')
  await expect(openLightDatabase({ home })).rejects.toThrow(DataFolderDamagedError)
  expect(existsSync(join(home, 'pg/notes.txt'))).toBe(true)
})

it('says what Postgres said when it does not start, and frees the home', { timeout: 60_000 }, async () => {
  mkdirSync(join(home, 'pg'))
  writeFileSync(join(home, 'pg/PG_VERSION'), `${POSTGRES_MAJOR}\n`)
  await expect(openLightDatabase({ home })).rejects.toThrow(/the database did not start: .*could not/)
  lockHome(home).release()
})
