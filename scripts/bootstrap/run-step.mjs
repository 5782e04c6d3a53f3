// Does one set-up step in this process, under the set-up lock, and stamps it. Started by up-to-date.mjs with LINGTAI_PARENT set and
// the person's stderr as descriptor 3. The work itself runs inside this process wherever that is possible, so that the
// lock lasts exactly as long as the work, even when everything around it is killed.
import { writeSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { become } from './become.mjs'
import { contentHash } from './content-hash.mjs'
import { takeLock } from './lock.mjs'
import { npmEntry } from './npm.mjs'
import { at } from './paths.mjs'
import { run, watchParent } from './processes.mjs'
import { dropStamp, isCurrent, writeStamp } from './stamps.mjs'
import { steps } from './steps.mjs'

const tell = (line) => writeSync(3, `${line}\n`)

/** @type {Record<import('./steps.mjs').StepName, () => Promise<unknown>>} */
const work = {
  dependencies: async () => {
    const args = ['ci', '--include=dev', '--include=optional', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    const entry = npmEntry()
    if (entry) return become(entry, args)
    const { code, output } = await run({ command: 'npm', args, capture: true })
    if (code !== 0) throw new Error(output)
  },
  'database-client': () => {
    // No engine is needed to generate the client; naming one keeps Prisma from fetching one.
    Object.assign(process.env, { PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', PRISMA_HIDE_UPDATE_MESSAGE: '1', CHECKPOINT_DISABLE: '1' })
    return become('node_modules/prisma/build/index.js', ['generate'])
  },
  server: async () => (await import('./build-server.mjs')).buildServer(),
  web: async () => (await import('./build-web.mjs')).buildWeb(),
}

watchParent(Number(process.env.LINGTAI_PARENT), () => process.exit(1))
delete process.env.LINGTAI_PARENT
const name = process.argv[2]
// On the global object, since a handle that is collected frees its lock.
globalThis.lingtaiSetUpLock = await takeLock(at('.lingtai/set-up.lock'), () =>
  tell('Another Lingtai command is setting up this folder; waiting for it …'),
)
if (isCurrent(name)) process.exit(0)
tell(steps[name].says)
dropStamp(name)
const hash = contentHash(steps[name].inputs)
process.on('exit', (code) => {
  if (code === 0) writeStamp(name, hash)
})
try {
  await work[name]()
} catch (error) {
  process.stderr.write(`${stripVTControlCharacters(error instanceof Error ? error.message : String(error))}\n`)
  process.exit(1)
}
