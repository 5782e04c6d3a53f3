/** A database of its own on the server that `npm run test:full` was given, for one test file: empty, gone when closed. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'

export type FullDatabase = { url: string; close(): Promise<void> }

/** Creates it. Redis keys of a system are kept apart by the database's name. */
export async function createFullDatabase(databaseUrl: string): Promise<FullDatabase> {
  const name = `lingtai_test_${randomUUID().replaceAll('-', '')}`
  await onServer(databaseUrl, `CREATE DATABASE ${name}`)
  const own = new URL(databaseUrl)
  own.pathname = `/${name}`
  return { url: own.href, close: () => onServer(databaseUrl, `DROP DATABASE ${name} WITH (FORCE)`) }
}

async function onServer(databaseUrl: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
