import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FIXTURE_MIGRATIONS, makeTestHome, PROJECT_MIGRATIONS } from '../support/light-database.ts'
import { openSchemaEngine, type SchemaEngine } from '../support/schema-engine.ts'

const projectSchema = fileURLToPath(new URL('../../prisma/schema.prisma', import.meta.url))
const fixtureSchema = fileURLToPath(new URL('./fixtures/schema.prisma', import.meta.url))

let engine: SchemaEngine | undefined

async function open(schemaFile: string, migrations: string): Promise<SchemaEngine> {
  engine = await openSchemaEngine({ schemaFile, migrations })
  return engine
}

afterEach(() => engine?.close())

describe('prisma/schema.prisma', { timeout: 120_000 }, () => {
  it('says what the migrations make', async () => {
    // To see what to do about it: node scripts/schema-diff.mjs
    expect(await (await open(projectSchema, PROJECT_MIGRATIONS)).drift()).toBe('')
  })

  it('is migrated by our runner just as Prisma would do it', async () => {
    expect(await (await open(projectSchema, PROJECT_MIGRATIONS)).history()).toEqual({
      hasMigrationsTable: true,
      history: null,
      editedMigrationNames: [],
      failedMigrationNames: [],
    })
  })
})

describe('the drift test', { timeout: 120_000 }, () => {
  let folder: string

  beforeEach(() => {
    folder = makeTestHome()
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  /** The drift of the fixture's migrations from its schema with one passage replaced. */
  async function driftWhere(passage: string, replacement: string): Promise<string> {
    const content = readFileSync(fixtureSchema, 'utf8')
    expect(content).toContain(passage)
    const changed = join(folder, 'schema.prisma')
    writeFileSync(changed, content.replace(passage, replacement))
    return (await open(changed, FIXTURE_MIGRATIONS)).drift()
  }

  it('sees no drift in what Prisma cannot express', async () => {
    expect(await (await open(fixtureSchema, FIXTURE_MIGRATIONS)).drift()).toBe('')
  })

  it.each([
    ['a column that no migration makes', 'writer       Int', 'writer       Int\n  mood Int?', 'ADD COLUMN     "mood" INTEGER'],
    ['a column that the schema lacks', 'body         String', '', 'DROP COLUMN "body"'],
    ['another type', 'writer       Int', 'writer       BigInt', '"writer" SET DATA TYPE BIGINT'],
    ['another nullability', 'body         String', 'body         String?', '"body" DROP NOT NULL'],
    ['another unknown type', 'Unsupported("halfvec")', 'Unsupported("vector")', '"v" SET DATA TYPE vector'],
    ['a missing index', '@@index([writer])', '', 'DROP INDEX "notes_writer_idx"'],
    ['another condition of a partial index', "'first'", "'last'", 'notes_first_of_writer_key'],
  ])('sees %s', async (_, passage, replacement, sql) => {
    expect(await driftWhere(passage, replacement)).toContain(sql)
  })
})
