// `npm test` (light tier), `npm run test:full` (PostgreSQL and Redis), `npm run test:e2e` (a real browser); further arguments go to Vitest.
import { bootstrap } from './bootstrap.mjs'
import { say } from './bootstrap/report.mjs'

const tiers = {
  light: { projects: ['unit', 'light'], steps: ['dependencies', 'database-client'], keeps: [] },
  full: { projects: ['full'], steps: ['dependencies', 'database-client', 'server'], keeps: ['DATABASE_URL', 'REDIS_URL'] },
  e2e: { projects: ['e2e'], steps: ['dependencies', 'database-client', 'server', 'web'], keeps: [] },
}

const [name, ...args] = process.argv.slice(2)
const tier = tiers[name]
const missing = tier.keeps.filter((variable) => !process.env[variable])
if (missing.length > 0) {
  say(
    `The full-tier tests need ${missing.join(' and ')}: a PostgreSQL 15 or newer with pgvector 0.8 or newer, and a Redis, both empty and only for tests.`,
  )
  say('On Debian as root, `bash scripts/services.sh start DIR` installs and starts both and prints the two settings.')
  process.exit(2)
}

await bootstrap(tier.steps)

// Tests run the same on every machine: none of the settings of a Lingtai that lives here reaches them.
for (const variable of Object.keys(process.env)) {
  if (!tier.keeps.includes(variable) && /^(LINGTAI_|OPENAI_|DATABASE_URL$|REDIS_URL$|PORT$)/.test(variable)) delete process.env[variable]
}
const { become } = await import('./bootstrap/become.mjs')
await become('node_modules/vitest/vitest.mjs', ['run', ...tier.projects.flatMap((project) => ['--project', project]), ...args])
