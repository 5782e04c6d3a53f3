/**
 * Prisma's own schema engine (WebAssembly, offline) on a database to which our runner applied the migrations: it says whether
 * schema.prisma agrees with them, and whether it takes their records for its own.
 */
import { cpSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils'
import { type DiagnoseMigrationHistoryOutput, type MigrationList, SchemaEngine as SchemaEngineInstance } from '@prisma/schema-engine-wasm'
import { PrismaPGlite } from 'pglite-prisma-adapter'
import { readMigrations } from '#infra/migrations/migration-files'
import { databaseSnapshot } from './database-snapshot.ts'
import { makeTestHome } from './light-database.ts'

export interface SchemaEngine {
  /**
   * The SQL that takes the migrated database to what schema.prisma says; empty where they agree. Of what Prisma cannot express
   * (checks, triggers, functions, expression indexes) it sees nothing; columns of types it does not know are `Unsupported("…")`.
   */
  drift(): Promise<string>
  /** What Prisma finds in `_prisma_migrations`, compared with the files. */
  history(): Promise<DiagnoseMigrationHistoryOutput>
  close(): Promise<void>
}

const NO_FILTERS = { externalTables: [], externalEnums: [] }

/** `schemaFile` and `migrations` are paths. */
export async function openSchemaEngine({ schemaFile, migrations }: { schemaFile: string; migrations: string }): Promise<SchemaEngine> {
  const home = makeTestHome()
  cpSync(await databaseSnapshot(migrations), join(home, 'pg'), { recursive: true })
  const database = await PGlite.create({ dataDir: join(home, 'pg'), extensions: { vector } })
  const content = readFileSync(schemaFile, 'utf8')
  const files = [{ path: 'schema.prisma', content }]
  const engine = await startEngine(database, content)
  return {
    drift: async () => {
      const { exitCode, stdout } = await engine.diff({
        from: { tag: 'schemaDatasource', files, configDir: home },
        to: { tag: 'schemaDatamodel', files },
        script: true,
        exitCode: true,
        filters: NO_FILTERS,
      })
      const script = exitCode === 0 ? '' : (stdout ?? 'the engine gives no script')
      return [script, ...(await unsupportedTypeDrift(database, content))].filter((part) => part !== '').join('\n')
    },
    history: () =>
      engine.diagnoseMigrationHistory({ migrationsList: migrationList(migrations), optInToShadowDatabase: false, filters: NO_FILTERS }),
    close: async () => {
      engine.free()
      await database.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

function startEngine(database: PGlite, content: string): Promise<SchemaEngineInstance> {
  const factory = new PrismaPGlite(database)
  // The engine wants a way to a shadow database, which nothing here lets it use.
  const migrationAware = Object.assign(factory, { connectToShadowDb: () => factory.connect() })
  const ignoreLog = (): void => {}
  return SchemaEngineInstance.new(
    { datamodels: [['schema.prisma', content]] },
    ignoreLog,
    bindMigrationAwareSqlAdapterFactory(migrationAware),
  )
}

interface UnsupportedColumn {
  table: string
  column: string
  type: string
}

/** The engine looks at nothing of an `Unsupported("…")` column but its being there: its type is compared here. */
async function unsupportedTypeDrift(database: PGlite, schema: string): Promise<string[]> {
  const { rows } = await database.query<UnsupportedColumn>(`
    SELECT c.relname AS table, a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped`)
  const actual = new Map(rows.map(({ table, column, type }) => [`${table}.${column}`, type]))
  return unsupportedColumns(schema)
    .filter(({ table, column, type }) => actual.get(`${table}.${column}`) !== type)
    .map(({ table, column, type }) => `ALTER TABLE "${table}" ALTER COLUMN "${column}" SET DATA TYPE ${type};`)
}

function unsupportedColumns(schema: string): UnsupportedColumn[] {
  return [...schema.matchAll(/^model (\w+) \{([^}]*)\}/gm)].flatMap(([, table = '', body = '']) =>
    [...body.matchAll(/^\s*(\w+)\s+Unsupported\("([^"]+)"\)/gm)].map(([, column = '', type = '']) => ({ table, column, type })),
  )
}

function migrationList(folder: string): MigrationList {
  return {
    baseDir: folder,
    lockfile: { path: 'migration_lock.toml', content: 'provider = "postgresql"\n' },
    shadowDbInitScript: '',
    migrationDirectories: readMigrations(folder).map(({ name, sql }) => ({
      path: name,
      migrationFile: { path: 'migration.sql', content: { tag: 'ok', value: sql } },
    })),
  }
}
