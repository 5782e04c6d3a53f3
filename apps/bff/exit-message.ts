import { ConfigError } from '#infra/config/config'
import { HomeInUseError } from '#infra/pglite/home-lock'

/** Errors whose message is all that a person needs; others are told with where they came from. */
const plainNames: ReadonlySet<string> = new Set([
  ConfigError.name,
  HomeInUseError.name,
  'ListenError',
  'DataFolderVersionError',
  'EmbedderRefusedError',
  'UnknownMigrationsError',
])

/** What a process says when it cannot start or go on. */
export function exitMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return plainNames.has(error.name) ? error.message : (error.stack ?? error.message)
}
