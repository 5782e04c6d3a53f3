// The set-up steps as data: what each reads, what it leaves, and how it is done. A step is skipped while the content
// of what it reads hashes to what its stamp says and everything it leaves is there.
import { existsSync, readFileSync } from 'node:fs'
import { at } from './paths.mjs'

/** @typedef {'dependencies' | 'database-client' | 'server' | 'web'} StepName */

/**
 * @typedef {object} Step
 * @property {string} says what is told before it runs
 * @property {string} todo what to do when it fails
 * @property {string[]} inputs files and folders whose content decides whether it runs
 * @property {string[]} outputs what must be there for it to count as done
 * @property {(() => boolean)} [isDoneByHand] whether someone did the same without us
 */

/** What the bundler makes: files under dist, and the source that each begins with. The last two are started as a thread and a process. */
const entries = {
  'server.mjs': 'apps/bff/main.ts',
  'cli.mjs': 'apps/bff/cli.ts',
  'database-worker.js': 'libs/infra/pglite/database-worker.ts',
  'sandbox-worker.js': 'libs/infra/executors/sandbox/sandbox-worker.ts',
  'database-creator.js': 'libs/infra/pglite/database-creator.ts',
}

/** @type {Record<StepName, Step>} */
export const steps = {
  dependencies: {
    says: 'Installing packages (the first time takes a minute or two) …',
    todo: 'Check that the package registry can be reached and that about 1 GB of disk is free, then run the same command again.',
    inputs: ['package-lock.json'],
    outputs: ['node_modules/.package-lock.json'],
    isDoneByHand: isInstalledAsLocked,
  },
  'database-client': {
    says: 'Generating the database client …',
    todo: 'The schema in prisma/schema.prisma does not pass: correct what is named above, then run the same command again.',
    inputs: ['prisma/schema.prisma', 'prisma.config.ts', 'package-lock.json'],
    outputs: ['prisma/generated/client.ts'],
  },
  server: {
    says: 'Building the server …',
    todo: 'Correct what is named above, then run the same command again.',
    inputs: [
      'apps/bff',
      'apps/worker',
      'libs',
      'prisma/schema.prisma',
      'package.json',
      'package-lock.json',
      'tsconfig.json',
      'scripts/bootstrap',
    ],
    outputs: Object.keys(entries).map((output) => `dist/${output}`),
  },
  web: {
    says: 'Building the web page …',
    todo: 'Correct what is named above, then run the same command again.',
    inputs: ['apps/web', 'libs/contracts', 'package.json', 'package-lock.json', 'scripts/bootstrap'],
    outputs: ['dist/web/index.html'],
  },
}

/** The bundle's entries as the bundler wants them: output names and absolute sources. */
export const serverEntries = () => Object.fromEntries(Object.entries(entries).map(([output, source]) => [output, at(source)]))

/**
 * npm writes node_modules/.package-lock.json last; where it names every package of the lockfile in the same version, the install is
 * whole, whoever made it. Optional packages (other platforms' binaries) may be missing.
 */
function isInstalledAsLocked() {
  const hidden = at('node_modules/.package-lock.json')
  if (!existsSync(hidden)) return false
  let installed
  try {
    installed = JSON.parse(readFileSync(hidden, 'utf8')).packages
  } catch {
    return false // cut short by a kill: install again
  }
  const locked = JSON.parse(readFileSync(at('package-lock.json'), 'utf8')).packages
  return Object.entries(locked).every(([path, wanted]) => {
    if (path === '' || wanted.optional || wanted.devOptional) return true
    const found = installed[path]
    return found?.version === wanted.version && found?.integrity === wanted.integrity
  })
}
