import { ConfigError, loadConfig } from '#infra/config/config'
import { HomeInUseError } from '#infra/pglite/home-lock'
import { runCli } from './cli/run-cli.ts'

/** `npm run -s token|signin|verify|replay|db:migrate`: standard output is the value alone. */
try {
  process.exitCode = await runCli({
    argv: process.argv.slice(2),
    config: loadConfig(),
    output: { value: (text) => console.log(text), say: (text) => console.error(text) },
  })
} catch (error) {
  const isExpected = error instanceof ConfigError || error instanceof HomeInUseError
  console.error(isExpected ? error.message : error)
  process.exitCode = 1
}
