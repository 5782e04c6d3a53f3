// `npm run conformance`: everything that the Kernel must do (test/conformance/clauses.ts) → the tests that prove it → whether they pass.
// Runs those tests alone: on the light tier, and with DATABASE_URL and REDIS_URL on the full one too. Fails where a clause has no test, a
// name matches none, or one failed or was skipped.
//
//   npm run conformance -- K3 M          only clauses whose ids begin so
//   npm run conformance -- --from FILE   reads a Vitest JSON report instead of running anything; may be given several times
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bootstrap } from './bootstrap.mjs'
import { at, root } from './bootstrap/paths.mjs'
import { run } from './bootstrap/processes.mjs'

const { values, positionals } = parseArgs({ options: { from: { type: 'string', multiple: true } }, allowPositionals: true })
const hasFullTier = Boolean(process.env.DATABASE_URL && process.env.REDIS_URL)
await bootstrap(['dependencies', 'database-client', ...(hasFullTier && !values.from ? ['server'] : [])])

const { clauses } = await import('../test/conformance/clauses.ts')
const { judge, needsFullTier, readReport, runsOnBothTiers, show } = await import('../test/conformance/matrix.ts')

const wanted = clauses.filter(({ id }) => positionals.length === 0 || positionals.some((beginning) => id.startsWith(beginning)))
const files = [...new Set(wanted.flatMap(({ tests }) => Object.keys(tests)))]

/** Runs the given files in one Vitest and answers its JSON report. */
async function report(projects, chosen, { keepServices }) {
  const folder = mkdtempSync(join(tmpdir(), 'lingtai-conformance-'))
  try {
    const file = join(folder, 'report.json')
    const env = Object.fromEntries(
      Object.entries(process.env).filter(
        ([name]) =>
          (keepServices && /^(DATABASE_URL|REDIS_URL)$/.test(name)) || !/^(LINGTAI_|OPENAI_|DATABASE_URL$|REDIS_URL$|PORT$)/.test(name),
      ),
    )
    const reporters = ['--reporter=dot', '--reporter=json', `--outputFile.json=${file}`]
    const { code } = await run({
      command: process.execPath,
      args: [at('node_modules/vitest/vitest.mjs'), 'run', ...projects.flatMap((name) => ['--project', name]), ...reporters, ...chosen],
      env,
    })
    if (code > 128) process.exit(code)
    return readFileSync(file, 'utf8')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function reports() {
  if (values.from) return values.from.map((file) => readFileSync(file, 'utf8'))
  const light = files.filter((file) => !needsFullTier(file))
  const full = hasFullTier ? files.filter((file) => needsFullTier(file) || runsOnBothTiers(file)) : []
  const made = []
  if (light.length > 0) made.push(await report(['unit', 'light'], light, { keepServices: false }))
  if (full.length > 0) made.push(await report(['full'], full, { keepServices: true }))
  return made
}

const rows = judge(
  wanted,
  (await reports()).flatMap((text) => readReport(text, root)),
)
process.stdout.write(`${show(rows).join('\n')}\n`)
process.exit(rows.length > 0 && rows.every(({ standing }) => standing === 'passed' || standing === 'other tier') ? 0 : 1)
