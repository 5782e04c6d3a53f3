import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '#infra/config/config'
import { createLogger } from '#infra/logging/logger'
import { HomeInUseError } from '#infra/pglite/home-lock'
import { adminVerbs, runVerb, UsageError } from '../admin/admin-verbs.ts'
import { archiveOptions, restoreArchive } from '../admin/archive-verb.ts'
import { callAdminSocket } from '../admin-socket/call.ts'
import type { AdminAnswer } from '../admin-socket/call.ts'
import { composeSystem } from '../composition/compose-system.ts'
import type { System } from '../composition/compose-system.ts'
import { baseUrlOf } from '../http/base-url.ts'
import { parseArguments } from './arguments.ts'

export type CliOutput = { value: (text: string) => void; say: (text: string) => void }

/** How long a server that is just starting is waited for. */
const STARTING_MS = 20_000
const LOOK_EVERY_MS = 200

const EXIT_OK = 0
const EXIT_NOT_OK = 1
const EXIT_USAGE = 2

/**
 * Runs one command and answers its exit code. On the light tier a running server is asked; with none running this process takes the home
 * itself. On the full tier it works on the database directly. Throws what opening the database throws.
 */
export async function runCli({ argv, config, output }: { argv: readonly string[]; config: Config; output: CliOutput }): Promise<number> {
  let request
  try {
    request = withWholePaths(parseArguments(argv, (verb) => (Object.hasOwn(adminVerbs, verb) ? (adminVerbs[verb]?.operands ?? []) : [])))
    if (!Object.hasOwn(adminVerbs, request.verb)) throw new UsageError(`${request.verb} is no command`)
    if (request.verb === 'archive') archiveOptions(request.options)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    output.say(`${error.message}. Commands:\n${usage()}`)
    return EXIT_USAGE
  }
  const answer = config.tier === 'light' ? await askOrRun(config, request, output) : await runHere(config, request, output)
  if ('error' in answer) {
    output.say(answer.error)
    return answer.isUsage ? EXIT_USAGE : EXIT_NOT_OK
  }
  output.value(answer.value)
  return answer.ok ? EXIT_OK : EXIT_NOT_OK
}

type Request = ReturnType<typeof parseArguments>

/** Files are named from where the command is given, which need not be where the server runs. */
function withWholePaths({ verb, options }: Request): Request {
  const paths = ['file', 'erasures'].flatMap((name) => (options[name] ? [[name, resolve(options[name])]] : []))
  return { verb, options: { ...options, ...Object.fromEntries(paths) } }
}

async function askOrRun(config: Config, request: Request, output: CliOutput): Promise<AdminAnswer> {
  for (let waitedMs = 0; ; waitedMs += LOOK_EVERY_MS) {
    const answer = await callAdminSocket(config.home, request, output.say)
    if (answer) return answer
    try {
      return await runHere(config, request, output)
    } catch (error) {
      // Somebody has the home and does not listen yet, or no more: it is starting or ending.
      if (!(error instanceof HomeInUseError) || waitedMs >= STARTING_MS) throw error
      await sleep(LOOK_EVERY_MS)
    }
  }
}

async function runHere(config: Config, request: Request, output: CliOutput): Promise<AdminAnswer> {
  // What is to be restored into must not be made an instance of its own first.
  if (request.verb === 'archive' && request.options['direction'] === 'in') return restoreHere(config, request)
  const system = await composeSystem({ config, logger: createLogger('warn') })
  try {
    return await answerVerb({ system, baseUrl: baseUrlOf(config.bind, config.port), note: output.say }, request)
  } finally {
    await system.close()
  }
}

async function restoreHere(config: Config, { options }: Request): Promise<AdminAnswer> {
  try {
    return await restoreArchive({ config, logger: createLogger('warn'), options })
  } catch (error) {
    if (error instanceof Error && RESTORE_REFUSALS.has(error.name)) return { error: error.message, isUsage: false }
    throw error
  }
}

/** Errors of restoring whose message is all that a person needs. */
const RESTORE_REFUSALS: ReadonlySet<string> = new Set([
  'NotEmptyError',
  'ArchiveDamagedError',
  'ArchiveVersionError',
  'RestoredBrokenError',
])

/** A verb's answer, its usage errors told rather than thrown. */
export async function answerVerb(
  context: { system: System; baseUrl: string; note: (text: string) => void },
  request: Request,
): Promise<AdminAnswer> {
  try {
    return await runVerb(context, request)
  } catch (error) {
    if (error instanceof UsageError) return { error: error.message, isUsage: true }
    context.system.logger.error({ verb: request.verb, err: error }, 'a command failed')
    return { error: `${request.verb} failed: ${error instanceof Error ? error.message : String(error)}`, isUsage: false }
  }
}

function usage(): string {
  return Object.values(adminVerbs)
    .map((verb) => `  ${verb.usage}`)
    .join('\n')
}
