import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { collectDefaultMetrics } from 'prom-client'
import type { Config } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import { serveAdminSocket } from './admin-socket/serve.ts'
import { answerVerb } from './cli/run-cli.ts'
import { composeSystem } from './composition/compose-system.ts'
import type { System } from './composition/compose-system.ts'
import { signinLink } from './session/signin-link.ts'

/** Runs a process of the configured role until it is told to stop. Throws where it cannot start. */
export async function runProcess(config: Config): Promise<void> {
  const logger = createLogger()
  const stop = stopSignal()
  // The framework loads while the database opens in its own thread.
  const [system, { startHttpServer }] = await Promise.all([composeSystem({ config, logger }), import('./http/server.ts')])
  try {
    collectDefaultMetrics({ register: system.metrics })
    const isWorker = config.role === 'worker'
    const server = await startHttpServer(system, { api: !isWorker, pageFolder: pageFolder() })
    system.lifecycle.onClose('http server', () => server.close())
    await system.lifecycle.startWork(config.role)
    if (system.lightDatabase) await openToCommands(system, server.url)
    if (!isWorker) await greet(system, server.url)
    logger.info({ role: config.role, tier: config.tier, url: server.url }, 'ready')
    await Promise.race([stop, system.lifecycle.failure])
    logger.info('stopping')
  } finally {
    await system.close()
  }
}

async function openToCommands(system: System, url: string): Promise<void> {
  system.lightDatabase?.announce(url)
  const socket = await serveAdminSocket({
    home: system.config.home,
    handle: (request, note) => answerVerb({ system, baseUrl: url, note }, request),
  })
  system.lifecycle.onClose('admin socket', () => socket.close())
}

/** Tells the person at the terminal where to go, and as long as nobody is signed in, how to get in. */
async function greet(system: System, url: string): Promise<void> {
  const { model } = system.config
  const lines = [
    `Lingtai ${system.version}, ${system.config.tier} tier, ${model.demo ? 'built-in demo model (set LINGTAI_MODEL for a real one)' : `model ${model.name}`}`,
    `  Open     ${url}/`,
  ]
  if (!(await system.identity.signin.isAnybodySignedIn())) {
    const secret = await system.identity.signin.mintLink(system.firstOwner.id)
    lines.push(`  Sign in  ${signinLink(url, secret)}`, '           (good once, within 15 minutes; `npm run -s signin` prints another)')
  }
  process.stdout.write(`${lines.join('\n')}\n`)
}

/** Resolves at the first SIGTERM, SIGINT or SIGHUP; a second one ends the process where it stands. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false
    const onSignal = (): void => {
      if (asked) process.exit(130)
      asked = true
      resolve()
    }
    process.on('SIGTERM', onSignal)
    process.on('SIGINT', onSignal)
    // A closed terminal asks to leave too.
    process.on('SIGHUP', onSignal)
  })
}

/** `dist/web`, seen from the built file or from the source. */
function pageFolder(): string | undefined {
  return ['./web', '../../dist/web'].map((path) => fileURLToPath(new URL(path, import.meta.url))).find((path) => existsSync(path))
}
