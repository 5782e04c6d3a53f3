import { ConfigError, loadConfig } from '#infra/config/config'
import { exitMessage } from '../bff/exit-message.ts'
import { runProcess } from '../bff/run-process.ts'

/** A worker: the outbox and its jobs, beside any number of servers; the same as `LINGTAI_ROLE=worker` with the server's bundle. */
try {
  const config = loadConfig()
  if (config.tier === 'light') {
    const fault = 'is missing: the light tier does its jobs in its one process; a worker of its own needs the full tier'
    throw new ConfigError([{ variable: 'DATABASE_URL', fault }])
  }
  await runProcess({ ...config, role: 'worker' })
} catch (error) {
  process.stderr.write(`${exitMessage(error)}\n`)
  process.exitCode = 1
}
