// The set-up steps as data: when each applies, what it reads, what it leaves, and how it is done. A step is skipped while the content
// of what it reads hashes to what its stamp says and everything it leaves is there.
import { existsSync, readFileSync } from 'node:fs'
import { at } from './paths.mjs'

/** @typedef {'dependencies' | 'database-client' | 'server' | 'web'} StepName */

/**
 * @typedef {object} Step
 * @property {string} says what is told before it runs
 * @property {string} todo what to do when it fails
 * @property {() => boolean} applies
 * @property {string[]} inputs files and folders whose content decides whether it runs
 * @property {string[]} outputs what must be there for it to count as done
 * @property {(() => boolean)} [isDoneByHand] whether someone did the same without us
 */

const entries = ['apps/bff/main.ts', 'apps/bff/cli.ts', 'libs/infra/pglite/database-worker.ts']

/** @type {Record<StepName, Step>} */
export const steps = {
  dependencies: {
    says: 'Installing packages (the first time takes about a minute) …',
    todo: 'Check that the package registry can be reached and that about 1 GB of disk is free, then run the same command again.',
    applies: () => true,
    inputs: ['package-lock.json'],
    outputs: ['node_modules/.package-lock.json'],
    isDoneByHand: isInstalledAsLocked,
  },
  'database-client': {
    says: 'Generating the database client …',
    todo: 'The schema in prisma/schema.prisma does not pass: correct what is named above, then run the same command again.',
    applies: () => existsSync(at('prisma/schema.prisma')),
    inputs: ['prisma/schema.prisma', 'prisma.config.ts', 'package-lock.json'],
    outputs: ['prisma/generated/client.ts'],
  },
  server: {
    says: 'Building the server …',
    todo: 'Correct what is named above, then run the same command again.',
    applies: () => existsSync(at('apps/bff/main.ts')),
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
    outputs: ['dist/server.mjs', ...existingOutputs()],
  },
  web: {
    says: 'Building the web page …',
    todo: 'Correct what is named above, then run the same command again.',
    applies: () => existsSync(at('apps/web/index.html')),
    inputs: ['apps/web', 'libs/contracts', 'package.json', 'package-lock.json', 'scripts/bootstrap'],
    outputs: ['dist/web/index.html'],
  },
}

/** The bundle's entries that exist, by the name of the file each becomes under dist. */
export function serverEntries() {
  return Object.fromEntries(entries.filter((path) => existsSync(at(path))).map((path) => [outputName(path), at(path)]))
}

function outputName(entry) {
  return entry.endsWith('database-worker.ts') ? 'database-worker.js' : entry.endsWith('cli.ts') ? 'cli.mjs' : 'server.mjs'
}

function existingOutputs() {
  return entries.filter((path) => existsSync(at(path))).map((path) => `dist/${outputName(path)}`)
}

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
