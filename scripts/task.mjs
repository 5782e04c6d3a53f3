// The repository's own checks and tools as data: `npm run lint`, `typecheck`, `format`, … Every part of a task runs, even after one
// failed; the task fails if any did. Further arguments go to the last part.
import { existsSync } from 'node:fs'
import { bootstrap } from './bootstrap.mjs'
import { at } from './bootstrap/paths.mjs'
import { run } from './bootstrap/processes.mjs'
import { say } from './bootstrap/report.mjs'

const code = ['apps', 'libs', 'test'].filter((folder) => existsSync(at(folder)))
const oxlint = ['node_modules/oxlint/bin/oxlint', '--type-aware', '--deny-warnings', '--report-unused-disable-directives']
const depcruise = ['node_modules/dependency-cruiser/bin/dependency-cruiser.mjs', '--config', '.dependency-cruiser.mjs', ...code]
const tsc = 'node_modules/typescript/bin/tsc'
const prettier = 'node_modules/prettier/bin/prettier.cjs'

const lint = [oxlint, depcruise]
const typecheck = [[tsc, '-p', '.'], ...(existsSync(at('apps/web/tsconfig.json')) ? [[tsc, '-p', 'apps/web']] : [])]
const formatCheck = [[prettier, '--check', '--log-level', 'warn', '.']]

const tasks = {
  lint,
  'lint:code': [oxlint],
  'lint:dependencies': [depcruise],
  typecheck,
  'format:check': formatCheck,
  format: [[prettier, '--write', '--log-level', 'warn', '.']],
  check: [...lint, ...typecheck, ...formatCheck],
  bench: [['test/bench/main.ts']],
}

const [name, ...args] = process.argv.slice(2)
const parts = tasks[name]
await bootstrap(name === 'bench' ? ['dependencies', 'database-client', 'server'] : ['dependencies', 'database-client'])

let failed = 0
for (const [index, part] of parts.entries()) {
  const extra = index === parts.length - 1 ? args : []
  const { code: exit } = await run({ command: process.execPath, args: [at(part[0]), ...part.slice(1), ...extra] })
  if (exit > 128) process.exit(exit)
  if (exit !== 0) {
    failed++
    say(`${name}: \`${part[0].replace('node_modules/', '').split('/')[0]}\` found something to correct (exit code ${exit}).`)
  }
}
process.exit(failed > 0 ? 1 : 0)
