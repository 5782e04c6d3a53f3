import type { ArchiveHeader, ArchiveLine } from './archive-format.ts'
import { ArchiveDamagedError, ArchiveVersionError, readArchive } from './archive-format.ts'
import { restoreChecks } from './restore-checks.ts'
import { planTables, quoted, SETTINGS, valueOf } from './tables.ts'
import type { ArchiveColumn, TablePlan } from './tables.ts'
import type { Database } from '../prisma/database.ts'

/** An archive goes into an instance that nobody has used: there is no way to merge two. */
export class NotEmptyError extends Error {
  override readonly name = 'NotEmptyError'

  constructor(table: string) {
    super(
      `this instance is not empty (there are rows in ${table}); restore into a fresh LINGTAI_HOME, or on the full tier a fresh database, before the first start`,
    )
  }
}

/** About so many characters of rows go in one statement. */
const BATCH_CHARACTERS = 1024 * 1024
const BATCH_ROWS = 1_000

/**
 * Puts an archive's rows into an empty database, inside the caller's unit of work. Constraints hold for every row;
 * triggers are off meanwhile, and `restoreChecks` look for what they would have refused. Throws NotEmptyError, ArchiveVersionError,
 * ArchiveDamagedError; the caller's transaction must then not commit.
 */
export async function restoreRows({ database, path, header }: { database: Database; path: string; header: ArchiveHeader }): Promise<void> {
  for (const setting of SETTINGS) await database.execute(setting)
  const tables = await planTables(database)
  await database.execute(`LOCK TABLE ${tables.map((table) => quoted(table.name)).join(', ')} IN ACCESS EXCLUSIVE MODE`)
  for (const table of tables) {
    const [row] = await database.query<{ full: boolean }>(`SELECT EXISTS (SELECT 1 FROM ${quoted(table.name)}) AS full`)
    if (row?.full) throw new NotEmptyError(table.name)
  }
  await relaxed(database, tables, () => new Restoring(database, path, tables).run())
  for (const table of tables) {
    for (const column of table.identity) {
      const last = header.sequences[`${table.name}.${column}`] ?? 0
      if (last > 0) await database.query('SELECT setval(pg_get_serial_sequence($1, $2)::regclass, $3)', [quoted(table.name), column, last])
    }
  }
  for (const [what, sql] of Object.entries(restoreChecks)) {
    const [found] = await database.query<Record<string, unknown>>(`${sql} LIMIT 1`)
    if (found) throw new ArchiveDamagedError(path, `it holds ${what} (${String(Object.values(found)[0])})`)
  }
}

/** Runs `work` with triggers off, and with what a table's rows say of each other checked at the end. */
async function relaxed(database: Database, tables: readonly TablePlan[], work: () => Promise<void>): Promise<void> {
  for (const { name, selfReferences } of tables) {
    await database.execute(`ALTER TABLE ${quoted(name)} DISABLE TRIGGER USER`)
    for (const reference of selfReferences) {
      await database.execute(`ALTER TABLE ${quoted(name)} ALTER CONSTRAINT ${quoted(reference)} DEFERRABLE INITIALLY DEFERRED`)
    }
  }
  await work()
  await database.execute('SET CONSTRAINTS ALL IMMEDIATE')
  for (const { name, selfReferences } of tables) {
    for (const reference of selfReferences) {
      await database.execute(`ALTER TABLE ${quoted(name)} ALTER CONSTRAINT ${quoted(reference)} NOT DEFERRABLE`)
    }
    await database.execute(`ALTER TABLE ${quoted(name)} ENABLE TRIGGER USER`)
  }
  await database.execute('SET CONSTRAINTS ALL DEFERRED')
}

/** The archive's rows on their way into the tables, in the tables' order and not the archive's: it may come from an earlier schema. */
class Restoring {
  readonly #database: Database
  readonly #path: string
  readonly #tables: ReadonlyMap<string, TablePlan>
  #into: { table: TablePlan; columns: readonly ArchiveColumn[] } | null = null
  readonly #done = new Set<string>()
  #rows: (readonly (string | null)[])[] = []
  #characters = 0

  constructor(database: Database, path: string, tables: readonly TablePlan[]) {
    this.#database = database
    this.#path = path
    this.#tables = new Map(tables.map((table) => [table.name, table]))
  }

  async run(): Promise<void> {
    for await (const line of readArchive(this.#path)) await this.#take(line)
    await this.#flush()
  }

  async #take(line: ArchiveLine): Promise<void> {
    if (line.kind === 'header' || line.kind === 'end') return
    if (line.kind === 'table') {
      await this.#flush()
      this.#into = this.#target(line)
      return
    }
    if (!this.#into) throw new ArchiveDamagedError(this.#path, 'a row stands before every table')
    this.#rows.push(line.values)
    this.#characters += line.values.reduce((sum, value) => sum + (value?.length ?? 0), 0)
    if (this.#rows.length >= BATCH_ROWS || this.#characters >= BATCH_CHARACTERS) await this.#flush()
  }

  #target({ table: name, columns }: { table: string; columns: readonly string[] }): { table: TablePlan; columns: ArchiveColumn[] } {
    const table = this.#tables.get(name)
    if (!table)
      throw new ArchiveVersionError(
        this.#path,
        `it has a table ${name}, which is not known here; restore with the Lingtai that wrote it, or a later one`,
      )
    if (this.#done.has(name)) throw new ArchiveDamagedError(this.#path, `table ${name} comes twice`)
    this.#done.add(name)
    return {
      table,
      columns: columns.map((column) => {
        const known = table.columns.find((other) => other.name === column)
        if (known) return known
        throw new ArchiveVersionError(this.#path, `its table ${name} has a column ${column}, which is not known here`)
      }),
    }
  }

  async #flush(): Promise<void> {
    const [into, rows] = [this.#into, this.#rows]
    if (!into || rows.length === 0) return
    this.#rows = []
    this.#characters = 0
    const { table, columns } = into
    const names = columns.map((column) => quoted(column.name)).join(', ')
    const values = columns.map((column, index) => valueOf(`r.c${index}`, column)).join(', ')
    const written = await this.#database.execute(
      `INSERT INTO ${quoted(table.name)} (${names}) OVERRIDING SYSTEM VALUE
       SELECT ${values} FROM unnest(${columns.map((_, index) => `$${index + 1}::text[]`).join(', ')})
         WITH ORDINALITY AS r(${columns.map((_, index) => `c${index}`).join(', ')}, place) ORDER BY r.place`,
      columns.map((_, index) => rows.map((row) => row[index] ?? null)),
    )
    if (written !== rows.length) throw new Error(`${written} of ${rows.length} rows of ${table.name} were written`)
  }
}
