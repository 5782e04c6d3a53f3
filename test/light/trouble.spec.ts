import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { FIXTURE_MIGRATIONS, openTestDatabase, type TestDatabase } from '../support/light-database.ts'

let test: TestDatabase

beforeEach(async () => {
  test = await openTestDatabase({ migrations: FIXTURE_MIGRATIONS, stuckAfterMs: 3_000 })
})
afterEach(() => test.close())

const CONNECTION_LOST = { message: expect.stringMatching(/terminated|ECONNRESET|EPIPE/) }

/** Asks until the database answers again. */
async function rowsAgain(sql: string): Promise<unknown[]> {
  return vi.waitFor(async () => (await test.pool.query<Record<string, unknown>>(sql)).rows, { timeout: 60_000, interval: 100 })
}

it(
  'is started anew with everything that was committed, takes clients again, and calls it no incident (bar P9)',
  { timeout: 120_000 },
  async () => {
    await test.pool.query("INSERT INTO notes (writer, body) VALUES (1, 'kept')")
    const backend = async (): Promise<unknown> => (await test.pool.query('SELECT pg_postmaster_start_time()::text AS began')).rows
    const before = await backend()
    await test.database.renew()
    expect(await rowsAgain('SELECT body FROM notes')).toEqual([{ body: 'kept' }])
    expect(await backend()).not.toEqual(before)
    expect(test.incidents).toEqual([])
  },
)

describe('a database in trouble comes back, and says so (decision 4)', { timeout: 120_000 }, () => {
  it('restarts when a statement never ends, with everything that was committed', async () => {
    await test.pool.query("INSERT INTO notes (writer, body) VALUES (1, 'kept')")
    await expect(test.pool.query('SELECT count(*) FROM generate_series(1, 100000000000)')).rejects.toMatchObject(CONNECTION_LOST)
    expect(await rowsAgain('SELECT body FROM notes')).toEqual([{ body: 'kept' }])
    expect(test.incidents).toEqual([{ kind: 'stuck_and_restarted', afterMs: 3_000 }])
  })

  it('leaves a long statement alone while it is announced', async () => {
    const sleeping = test.database.allowLongStatements(() => test.pool.query('SELECT pg_sleep(5)'))
    await expect(sleeping).resolves.toMatchObject({ rowCount: 1 })
    expect(test.incidents).toEqual([])
  })

  it('restarts when the WebAssembly code breaks, and acknowledges nothing of that statement', async () => {
    await test.pool.query("INSERT INTO notes (writer, body) VALUES (1, 'kept')")
    // An internal function that takes the number for an address outside its memory.
    await test.pool.query("CREATE FUNCTION read_nowhere(integer) RETURNS integer LANGUAGE internal AS 'textlen'")
    const broken = test.pool.query("INSERT INTO notes (writer, body) VALUES (2, 'lost'); SELECT read_nowhere(-16)")
    await expect(broken).rejects.toMatchObject(CONNECTION_LOST)
    expect(await rowsAgain('SELECT body FROM notes')).toEqual([{ body: 'kept' }])
    expect(test.incidents).toEqual([{ kind: 'crashed_and_restarted', reason: expect.stringContaining('RuntimeError') }])
  })

  it('cuts a transaction that waits for a pool query, which waits for the transaction', async () => {
    const holder = await test.pool.connect()
    await holder.query('BEGIN')
    await holder.query("INSERT INTO notes (writer, body) VALUES (3, 'never')")
    const { rows } = await test.pool.query('SELECT count(*)::int AS n FROM notes')
    expect(rows).toEqual([{ n: 0 }])
    await expect(holder.query('COMMIT')).rejects.toThrow()
    holder.release(true)
    expect(test.incidents).toEqual([{ kind: 'idle_transaction_cut', unusedMs: expect.any(Number) }])
  })

  it('gives up after three restarts in a row', async () => {
    await test.pool.query("CREATE FUNCTION read_nowhere(integer) RETURNS integer LANGUAGE internal AS 'textlen'")
    for (let times = 1; times <= 4; times++) {
      await rowsAgain('SELECT 1')
      await expect(test.pool.query('SELECT read_nowhere(-16)')).rejects.toMatchObject(CONNECTION_LOST)
      await vi.waitFor(() => expect(test.incidents).toHaveLength(times), { timeout: 60_000 })
    }
    expect(test.incidents.at(-1)).toMatchObject({ kind: 'down' })
  })

  it('checkpoints by itself once enough was written, so that recovery stays short', async () => {
    const redo = 'SELECT redo_lsn FROM pg_control_checkpoint()'
    const before = await rowsAgain(redo)
    for (let megabytes = 0; megabytes < 40; megabytes += 2) {
      await test.pool.query("INSERT INTO notes (writer, body) SELECT 4, repeat('x', 1000) FROM generate_series(1, 2000)")
    }
    await vi.waitFor(async () => expect(await rowsAgain(redo)).not.toEqual(before), { timeout: 60_000, interval: 4_000 })
  })
})
