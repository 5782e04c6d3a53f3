import { PrismaPg } from '@prisma/adapter-pg'
import type { PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FIXTURE_MIGRATIONS, openTestDatabase, type TestDatabase } from '../support/light-database.ts'

let test: TestDatabase

beforeAll(async () => {
  test = await openTestDatabase({ migrations: FIXTURE_MIGRATIONS, settings: { 'hnsw.ef_search': '77' } })
})
afterAll(() => test.close())

describe('several connections on one backend (decision 1)', { timeout: 120_000 }, () => {
  it('mixes 400 kB parameters, errors and small queries on six connections without a wrong or lost answer', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, (_, writer) => mixedWork(writer)))
    expect(answers.flat().filter((answer) => answer !== 'right')).toEqual([])
    expect(answers.flat()).toHaveLength(6 * 60)
  })

  it('gives each answer to the connection that asked, with several queries in flight on each', async () => {
    const asked = Array.from({ length: 600 }, (_, at) => at)
    const rows = await Promise.all(asked.map((at) => test.pool.query('SELECT $1::int AS at, repeat($2, 50) AS text', [at, String(at)])))
    expect(rows.map(({ rows: [row] }) => row)).toEqual(asked.map((at) => ({ at, text: String(at).repeat(50) })))
  })

  it('keeps other connections out of a transaction until it ends', async () => {
    const [holder, other] = await twoConnections()
    const order: string[] = []
    await holder.query('BEGIN')
    await holder.query("INSERT INTO notes (writer, body) VALUES (100, 'held')")
    const waiting = other.query("SELECT count(*)::int AS n, 'other' AS who FROM notes WHERE writer = 100")
    void waiting.then(() => order.push('other'))
    await holder.query('SELECT 1')
    order.push('holder')
    await holder.query('ROLLBACK')
    expect((await waiting).rows).toEqual([{ n: 0, who: 'other' }])
    expect(order).toEqual(['holder', 'other'])
    holder.release()
    other.release()
  })

  it('rolls back and frees the backend when a connection closes in its transaction', async () => {
    const holder = await test.pool.connect()
    await holder.query('BEGIN')
    await holder.query("INSERT INTO notes (writer, body) VALUES (200, 'never')")
    const waiting = test.pool.query('SELECT count(*)::int AS n FROM notes WHERE writer = 200')
    holder.release(true)
    expect((await waiting).rows).toEqual([{ n: 0 }])
  })

  it('connects while another connection holds a transaction', async () => {
    const [holder, other] = await twoConnections()
    await holder.query('BEGIN')
    other.release(true)
    const third = await test.pool.connect()
    third.release()
    await holder.query('ROLLBACK')
    holder.release()
  })
})

describe('what would outlive its transaction in the shared session is refused', () => {
  const refused: [sql: string, code: string][] = [
    ["SET statement_timeout = '1s'", '0A000'],
    ['/* a comment */ set session work_mem = 100', '0A000'],
    ['SELECT 1; SET work_mem = 100', '0A000'],
    ['RESET ALL', '0A000'],
    ["SELECT set_config('work_mem', '100', false)", '0A000'],
    ['PREPARE p AS SELECT 1', '0A000'],
    ['LISTEN x', '0A000'],
    ['CREATE TEMP TABLE t (a int)', '0A000'],
    ['SELECT pg_advisory_lock(1)', '0A000'],
    ['COPY notes FROM STDIN', '0A000'],
  ]
  it.each(refused)('%s', async (sql, code) => {
    await expect(test.pool.query(sql)).rejects.toMatchObject({ code, hint: expect.any(String) })
  })

  it('named statements, with a message that says so', async () => {
    await expect(test.pool.query({ name: 'by_name', text: 'SELECT 1' })).rejects.toMatchObject({
      code: '0A000',
      message: expect.stringContaining('named statement "by_name"'),
    })
  })

  it('session settings given on connecting', async () => {
    const { Client } = await import('pg').then(({ default: pg }) => pg)
    const client = new Client({ ...test.database.connection, statement_timeout: 1000 })
    await expect(client.connect()).rejects.toMatchObject({ message: expect.stringContaining('statement_timeout') })
  })

  it('and an open transaction fails with it, as on any Postgres', async () => {
    const client = await test.pool.connect()
    await client.query('BEGIN')
    await expect(client.query('SET work_mem = 100')).rejects.toMatchObject({ code: '0A000' })
    await expect(client.query('SELECT 1')).rejects.toMatchObject({ code: '25P02' })
    await client.query('ROLLBACK')
    client.release()
  })

  it('but not what ends with its transaction, nor words that only look like it', async () => {
    const client = await test.pool.connect()
    await client.query('BEGIN')
    await client.query("SET LOCAL work_mem = '1MB'")
    await client.query("SELECT set_config('app.x', $1, true)", ['y'])
    await client.query('SELECT pg_advisory_xact_lock(1)')
    await client.query('CREATE TEMP TABLE temporary_words (a int) ON COMMIT DROP')
    await client.query('ROLLBACK')
    client.release()
    await test.pool.query("UPDATE notes SET body = 'SET work_mem = 1; RESET ALL' WHERE body = $$; SET x$$ -- ; LISTEN x")
  })
})

describe('the backend', () => {
  it('syncs to disk exactly once per commit, and not for reading (decision 3)', async () => {
    const before = test.database.fsyncCount()
    for (let at = 0; at < 50; at++) await test.pool.query("INSERT INTO notes (writer, body) VALUES (300, 'durable')")
    expect(test.database.fsyncCount() - before).toBe(50)
    for (let at = 0; at < 50; at++) await test.pool.query('SELECT count(*) FROM notes')
    expect(test.database.fsyncCount() - before).toBe(50)
  })

  it('takes settings at its start', async () => {
    await test.pool.query("SELECT '[1,2,3]'::halfvec")
    expect((await test.pool.query('SHOW hnsw.ef_search')).rows).toEqual([{ 'hnsw.ef_search': '77' }])
    expect((await test.pool.query('SHOW fsync')).rows).toEqual([{ fsync: 'on' }])
    expect((await test.pool.query('SHOW shared_buffers')).rows).toEqual([{ shared_buffers: '16MB' }])
  })

  it('answers deep recursion with an error and goes on', async () => {
    const depth = 100_000
    await expect(test.pool.query('SELECT $1::jsonb', ['['.repeat(depth) + ']'.repeat(depth)])).rejects.toMatchObject({ code: '54001' })
    expect((await test.pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    expect(test.incidents).toEqual([])
  })

  it("serves Prisma's adapter, transactions and all", async () => {
    const adapter = await new PrismaPg(test.pool).connect()
    const insert = {
      sql: "INSERT INTO notes (writer, body) VALUES ($1, 'by Prisma')",
      args: [400],
      argTypes: [{ scalarType: 'int', arity: 'scalar' } as const],
    }
    const count = { sql: 'SELECT count(*)::int AS n FROM notes WHERE writer = 400', args: [], argTypes: [] }
    const kept = await adapter.startTransaction()
    expect(await kept.executeRaw(insert)).toBe(1)
    await kept.executeRaw({ sql: 'COMMIT', args: [], argTypes: [] })
    await kept.commit()
    const undone = await adapter.startTransaction()
    await undone.executeRaw(insert)
    await undone.executeRaw({ sql: 'ROLLBACK', args: [], argTypes: [] })
    await undone.rollback()
    expect((await adapter.queryRaw(count)).rows).toEqual([[1]])
  })

  it('serves psql-like multi-statement queries and large answers', async () => {
    const results = (await test.pool.query("SELECT 1 AS a; SELECT repeat('x', 5000000) AS b")) as unknown as { rows: { b: string }[] }[]
    expect(results[1]?.rows[0]?.b).toHaveLength(5_000_000)
  })
})

async function twoConnections(): Promise<[PoolClient, PoolClient]> {
  return Promise.all([test.pool.connect(), test.pool.connect()])
}

/** Sixty statements of one connection: large parameters that must come back, errors that must be reported, small queries. */
async function mixedWork(writer: number): Promise<string[]> {
  const client = await test.pool.connect()
  try {
    const answers: string[] = []
    for (let at = 0; at < 60; at++) answers.push(await oneOfThree(client, writer, at))
    return answers
  } finally {
    client.release()
  }
}

async function oneOfThree(client: PoolClient, writer: number, at: number): Promise<string> {
  const mark = `${writer}:${at}`
  switch (at % 3) {
    case 0: {
      const text = `${mark} `.repeat(400_000 / (mark.length + 1))
      const { rows } = await client.query('SELECT $1::text AS text, $2::int AS writer', [text, writer])
      return rows[0]?.text === text && rows[0]?.writer === writer ? 'right' : `wrong at ${mark}`
    }
    case 1: {
      const error: unknown = await client.query('SELECT 1 / $1::int, $2::text', [0, mark]).catch((reason: unknown) => reason)
      return error instanceof Error && 'code' in error && error.code === '22012' ? 'right' : `no error at ${mark}`
    }
    default: {
      const { rows } = await client.query('SELECT $1::text AS mark', [mark])
      return rows[0]?.mark === mark ? 'right' : `wrong at ${mark}`
    }
  }
}
