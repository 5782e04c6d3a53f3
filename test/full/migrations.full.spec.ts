import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { fullTierServices } from '../support/environment.ts'
import { describeMigrations } from '../support/migration-suite.ts'

/** A database of its own on the given server, dropped when closed. */
async function openOwnDatabase(): Promise<{ pool: pg.Pool; close: () => Promise<void> }> {
  const { databaseUrl } = fullTierServices()
  const name = `migrations_${randomUUID().replaceAll('-', '')}`
  const server = new pg.Client({ connectionString: databaseUrl })
  await server.connect()
  await server.query(`CREATE DATABASE ${name}`)
  const url = new URL(databaseUrl)
  url.pathname = `/${name}`
  const pool = new pg.Pool({ connectionString: url.href })
  return {
    pool,
    close: async () => {
      await pool.end()
      await server.query(`DROP DATABASE ${name}`)
      await server.end()
    },
  }
}

describeMigrations('full', openOwnDatabase)
