import { createHash } from 'node:crypto'
import { appendFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runMigrations } from '#infra/migrations/run-migrations'
import { FIXTURE_MIGRATIONS, makeTestHome } from './light-database.ts'

const CREATE_NOTES = '20260101000000_create_notes'
const ADD_VECTORS = '20260102000000_add_note_vectors'

/** What migrations must do on both tiers. `open` gives a database whose `public` schema may be thrown away. */
export function describeMigrations(tier: string, open: () => Promise<{ pool: pg.Pool; close: () => Promise<void> }>): void {
  describe(`migrations on the ${tier} tier`, { timeout: 60_000 }, () => {
    let database: Awaited<ReturnType<typeof open>>
    let folder: string

    beforeAll(async () => {
      database = await open()
    })
    afterAll(() => database.close())
    beforeEach(async () => {
      folder = makeTestHome()
      cpSync(FIXTURE_MIGRATIONS, folder, { recursive: true })
      await database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    })
    afterEach(() => rmSync(folder, { recursive: true, force: true }))

    function write(name: string, sql: string): void {
      mkdirSync(join(folder, name), { recursive: true })
      writeFileSync(join(folder, name, 'migration.sql'), sql)
    }

    async function records(): Promise<Record<string, unknown>[]> {
      return (await database.pool.query('SELECT * FROM _prisma_migrations ORDER BY migration_name')).rows
    }

    const run = (): Promise<string[]> => runMigrations({ pool: database.pool, folder })

    it('applies what is missing, in order, once, and records it as Prisma does', async () => {
      expect(await run()).toEqual([CREATE_NOTES, ADD_VECTORS])
      expect(await run()).toEqual([])
      await database.pool.query("INSERT INTO notes (writer, body) VALUES (1, 'there')")

      const checksum = createHash('sha256')
        .update(readFileSync(join(folder, CREATE_NOTES, 'migration.sql')))
        .digest('hex')
      const [first, second] = await records()
      expect(first).toEqual({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        checksum,
        finished_at: expect.any(Date),
        migration_name: CREATE_NOTES,
        logs: null,
        rolled_back_at: null,
        started_at: expect.any(Date),
        applied_steps_count: 1,
      })
      expect(second).toMatchObject({ migration_name: ADD_VECTORS })
    })

    it('applies each migration once when several start together', async () => {
      const applied = await Promise.all([run(), run(), run()])
      expect(applied.flat().sort()).toEqual([CREATE_NOTES, ADD_VECTORS])
      expect(await records()).toHaveLength(2)
    })

    it('keeps nothing of a migration that fails, and all of those before it', async () => {
      write('20260103000000_break', 'CREATE TABLE half (a int); SELECT 1 / 0;')
      await expect(run()).rejects.toMatchObject({
        name: 'MigrationFailedError',
        migration: '20260103000000_break',
        cause: { code: '22012' },
      })
      expect((await records()).map((row) => row['migration_name'])).toEqual([CREATE_NOTES, ADD_VECTORS])
      expect((await database.pool.query("SELECT to_regclass('half') AS half")).rows).toEqual([{ half: null }])

      write('20260103000000_break', 'CREATE TABLE half (a int);')
      expect(await run()).toEqual(['20260103000000_break'])
    })

    it('refuses a migration that was edited after it was applied', async () => {
      await run()
      appendFileSync(join(folder, CREATE_NOTES, 'migration.sql'), '-- an afterthought\n')
      write('20260103000000_next', 'CREATE TABLE next (a int);')
      await expect(run()).rejects.toMatchObject({ name: 'ChangedMigrationError', migration: CREATE_NOTES })
      expect(await records()).toHaveLength(2)
    })

    it('refuses a database that has migrations which are missing here', async () => {
      await run()
      rmSync(join(folder, ADD_VECTORS), { recursive: true })
      await expect(run()).rejects.toMatchObject({ name: 'UnknownMigrationsError', migrations: [ADD_VECTORS] })
    })

    it('refuses a database where another tool left a migration unfinished, until it is settled', async () => {
      await run()
      await database.pool.query('UPDATE _prisma_migrations SET finished_at = NULL WHERE migration_name = $1', [ADD_VECTORS])
      await expect(run()).rejects.toMatchObject({ name: 'UnfinishedMigrationError', migration: ADD_VECTORS })

      await database.pool.query('UPDATE _prisma_migrations SET rolled_back_at = now() WHERE migration_name = $1', [ADD_VECTORS])
      await database.pool.query('DROP TABLE note_vectors; DROP INDEX notes_first_of_writer_key; DROP FUNCTION refuse_empty_words')
      expect(await run()).toEqual([ADD_VECTORS])
    })

    it.each(['BEGIN; CREATE TABLE a (a int); COMMIT;', 'CREATE TABLE a (a int); END;', '/* here */ start transaction;'])(
      'refuses a migration with a transaction of its own: %s',
      async (sql) => {
        write('20260103000000_own', sql)
        await expect(run()).rejects.toMatchObject({ name: 'MigrationTransactionError', migration: '20260103000000_own' })
      },
    )

    it('refuses folders that are no migrations', async () => {
      mkdirSync(join(folder, '20260103000000_empty'))
      await expect(run()).rejects.toMatchObject({ name: 'MigrationFolderError', message: expect.stringContaining('no migration.sql') })
      rmSync(join(folder, '20260103000000_empty'), { recursive: true })
      write('third', 'SELECT 1')
      await expect(run()).rejects.toMatchObject({ name: 'MigrationFolderError', message: expect.stringContaining('not named') })
    })
  })
}
