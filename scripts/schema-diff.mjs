// `node scripts/schema-diff.mjs`: prints the SQL that takes a database with all migrations to what prisma/schema.prisma says, as a
// draft for the next migration. Prints nothing, and says so, where they agree; exits with 2 where they do not. Needs Node 24.
import { fileURLToPath } from 'node:url'
import { openSchemaEngine } from '../test/support/schema-engine.ts'

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url))

const engine = await openSchemaEngine({ schemaFile: at('prisma/schema.prisma'), migrations: at('prisma/migrations') })
const sql = await engine.drift()
await engine.close()
if (sql === '') {
  process.stderr.write('prisma/schema.prisma and the migrations agree.\n')
} else {
  process.stdout.write(`${sql}\n`)
  process.exitCode = 2
}
