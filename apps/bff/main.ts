import { loadConfig } from '#infra/config/config'
import { exitMessage } from './exit-message.ts'
import { runProcess } from './run-process.ts'

/** The server: everything in one process, or with LINGTAI_ROLE one part of it. */
try {
  await runProcess(loadConfig())
} catch (error) {
  process.stderr.write(`${exitMessage(error)}\n`)
  process.exitCode = 1
}
