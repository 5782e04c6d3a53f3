import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, existsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Database } from '../prisma/database.ts'
import type { ArchiveHeader } from './archive-format.ts'
import { planTables, quoted, SETTINGS, textOf } from './tables.ts'
import type { TablePlan } from './tables.ts'

export type ArchiveWritten = { rows: number; bytes: number; sha256: string }

/** An archive is never written over. */
export class ArchiveExistsError extends Error {
  override readonly name = 'ArchiveExistsError'

  constructor(path: string) {
    super(`${path} is there already; name a file that is not`)
  }
}

/** About so many bytes of rows are fetched and held at once. */
const FETCH_BYTES = 2 * 1024 * 1024
const FETCH_ROWS = 1_000

/**
 * Writes everything but what gives access (see tables.ts) to a file, in one snapshot and in bounded memory. The file appears under its name
 * once it is whole and on disk. Throws ArchiveExistsError.
 */
export async function writeArchive({ database, path, at }: { database: Database; path: string; at: Date }): Promise<ArchiveWritten> {
  if (existsSync(path)) throw new ArchiveExistsError(path)
  const unfinished = `${path}.unfinished`
  const file = new LineFile(unfinished)
  try {
    const written = await database.run(async () => {
      await database.execute('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')
      for (const setting of SETTINGS) await database.execute(setting)
      const tables = await planTables(database)
      await file.line(JSON.stringify(await headerOf(database, tables, at)))
      let rows = 0
      for (const table of tables) rows += await writeTable(database, file, table)
      return rows
    })
    const { bytes, sha256 } = await file.end()
    await rename(unfinished, path)
    await syncToDisk(dirname(path))
    return { rows: written, bytes, sha256 }
  } catch (error) {
    file.destroy()
    await rm(unfinished, { force: true })
    throw error
  }
}

async function headerOf(database: Database, tables: readonly TablePlan[], at: Date): Promise<ArchiveHeader> {
  const [instance] = await database.query<{ instance_id: string; cluster_epoch: number }>('SELECT instance_id, cluster_epoch FROM instance')
  if (!instance) throw new Error('the database has no instance')
  const migrations = await database.query<{ name: string }>(
    'SELECT migration_name AS name FROM _prisma_migrations WHERE rolled_back_at IS NULL ORDER BY migration_name COLLATE "C"',
  )
  const sequences: Record<string, number> = {}
  for (const table of tables) {
    for (const column of table.identity) {
      const [sequence] = await database.query<{ last: number | null }>(
        'SELECT pg_sequence_last_value(pg_get_serial_sequence($1, $2)::regclass) AS last',
        [quoted(table.name), column],
      )
      sequences[`${table.name}.${column}`] = sequence?.last ?? 0
    }
  }
  return {
    lingtai_archive: 1,
    migrations: migrations.map((migration) => migration.name),
    instance_id: instance.instance_id,
    cluster_epoch: instance.cluster_epoch,
    created_at: at.toISOString(),
    sequences,
  }
}

async function writeTable(database: Database, file: LineFile, table: TablePlan): Promise<number> {
  await file.line(JSON.stringify({ table: table.name, columns: table.columns.map((column) => column.name) }))
  await database.execute(
    `DECLARE archived NO SCROLL CURSOR FOR SELECT json_build_array(${table.columns.map(textOf).join(', ')})::text AS line
     FROM ${quoted(table.name)} ORDER BY ${table.key.map(quoted).join(', ')}`,
  )
  let total = 0
  for (let count = 1; ;) {
    const before = file.bytes
    const rows = await database.query<{ line: string }>(`FETCH FORWARD ${count} FROM archived`)
    for (const { line } of rows) await file.line(line)
    total += rows.length
    if (rows.length < count) break
    const perRow = (file.bytes - before) / rows.length
    count = Math.max(1, Math.min(FETCH_ROWS, count * 4, Math.floor(FETCH_BYTES / perRow)))
  }
  await database.execute('CLOSE archived')
  return total
}

/** JSON lines into a file, hashed on their way, no faster than the disk takes them. */
class LineFile {
  readonly #path: string
  readonly #stream: ReturnType<typeof createWriteStream>
  readonly #hash = createHash('sha256')
  #failed: Error | undefined
  #lines = 0
  bytes = 0

  constructor(path: string) {
    this.#path = path
    this.#stream = createWriteStream(path, { mode: 0o600 })
    this.#stream.on('error', (error) => {
      this.#failed = error
    })
  }

  async line(json: string): Promise<void> {
    const bytes = Buffer.from(`${json}\n`, 'utf8')
    this.#hash.update(bytes)
    this.#lines += 1
    await this.#write(bytes)
  }

  async end(): Promise<{ bytes: number; sha256: string }> {
    const sha256 = this.#hash.digest('hex')
    await this.#write(Buffer.from(`${JSON.stringify({ end: { lines: this.#lines, sha256 } })}\n`))
    this.#stream.end()
    await once(this.#stream, 'close')
    if (this.#failed) throw this.#failed
    await syncToDisk(this.#path)
    return { bytes: this.bytes, sha256 }
  }

  destroy(): void {
    this.#stream.destroy()
  }

  async #write(bytes: Buffer): Promise<void> {
    if (this.#failed) throw this.#failed
    this.bytes += bytes.byteLength
    if (!this.#stream.write(bytes)) await once(this.#stream, 'drain')
  }
}

async function syncToDisk(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
