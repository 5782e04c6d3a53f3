// `npm test` (light tier), `npm run test:full` (PostgreSQL and Redis), `npm run test:e2e` (a real browser); further arguments go to Vitest.
// `npm run test:faults -- --seeds 40` kills servers at 40 seeded moments; `--seed 17` repeats one, with `--seeds` it is the first of so many.
import { parseArgs } from 'node:util'
import { bootstrap } from './bootstrap.mjs'
import { say } from './bootstrap/report.mjs'

const tiers = {
  // One process more than elsewhere: many of these tests wait, for a restart or a lease.
  light: { projects: ['unit', 'light'], steps: ['dependencies', 'database-client'], keeps: [], options: ['--maxWorkers=3'] },
  full: { projects: ['full'], steps: ['dependencies', 'database-client', 'server'], keeps: ['DATABASE_URL', 'REDIS_URL'] },
  faults: { projects: ['faults'], steps: ['dependencies', 'database-client', 'server'], keeps: ['DATABASE_URL', 'REDIS_URL'] },
  e2e: { projects: ['e2e'], steps: ['dependencies', 'database-client', 'server', 'web'], keeps: [] },
}

const [name, ...given] = process.argv.slice(2)
const tier = tiers[name]
const missing = tier.keeps.filter((variable) => !process.env[variable])
if (missing.length > 0) {
  say(
    `The full-tier tests need ${missing.join(' and ')}: a PostgreSQL 15 or newer with pgvector 0.8 or newer, and a Redis, both empty and only for tests.`,
  )
  say('On Debian as root, `bash scripts/services.sh start DIR` installs and starts both and prints the two settings.')
  process.exit(2)
}

const args = name === 'faults' ? takeSeeds(given) : given

await bootstrap(tier.steps)

// Tests run the same on every machine: none of the settings of a Lingtai that lives here reaches them.
for (const variable of Object.keys(process.env)) {
  if (!tier.keeps.includes(variable) && /^(LINGTAI_|OPENAI_|DATABASE_URL$|REDIS_URL$|PORT$)/.test(variable)) delete process.env[variable]
}
const { become } = await import('./bootstrap/become.mjs')
const projects = tier.projects.flatMap((project) => ['--project', project])
await become('node_modules/vitest/vitest.mjs', ['run', ...projects, ...(tier.options ?? []), ...args])

/**
 * Takes `--seed N` and `--seeds N` out of the arguments and into the environment, where the suite looks for them.
 * @param {string[]} given
 */
function takeSeeds(given) {
  const { values, tokens } = parseArgs({
    args: given,
    strict: false,
    tokens: true,
    options: { seed: { type: 'string' }, seeds: { type: 'string' } },
  })
  const taken = new Set()
  for (const token of tokens) {
    if (token.kind !== 'option' || (token.name !== 'seed' && token.name !== 'seeds')) continue
    taken.add(token.index)
    if (!token.inlineValue) taken.add(token.index + 1)
    if (!/^[1-9][0-9]{0,8}$/.test(String(token.value))) {
      say(`--${token.name} wants a whole number from 1 on.`)
      process.exit(2)
    }
  }
  process.env.FAULT_SEED = String(values.seed ?? 1)
  process.env.FAULT_SEEDS = String(values.seeds ?? (values.seed === undefined ? 40 : 1))
  return given.filter((_, index) => !taken.has(index))
}
