import { loadConfig } from '#infra/config/config'
import { runCli } from './cli/run-cli.ts'
import { exitMessage } from './exit-message.ts'

/** `npm run -s token|signin|verify|replay|db:migrate`: standard output is the value alone. */
try {
  process.exitCode = await runCli({
    argv: process.argv.slice(2),
    config: loadConfig(),
    output: { value: (text) => console.log(text), say: (text) => console.error(text) },
  })
} catch (error) {
  console.error(exitMessage(error))
  process.exitCode = 1
}
