import { ConfigError, loadConfig } from '#infra/config/config'
import { HomeInUseError } from '#infra/pglite/home-lock'
import { runProcess } from './run-process.ts'

/** The server: everything in one process, or with LINGTAI_ROLE one part of it. */
try {
  await runProcess(loadConfig())
} catch (error) {
  const isExpected = error instanceof ConfigError || error instanceof HomeInUseError
  process.stderr.write(`${isExpected || !(error instanceof Error) ? String(error) : (error.stack ?? error.message)}\n`)
  process.exitCode = 1
}
