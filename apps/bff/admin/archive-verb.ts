import { layFoundation } from '../composition/foundation.ts'
import { composeRecord } from '../composition/compose-record.ts'
import type { Config } from '#infra/config/config'
import type { Logger } from 'pino'
import type { AdminVerb, VerbAnswer } from './admin-verbs.ts'
import { UsageError } from './usage-error.ts'

/** The archive on an instance that is in use: it can be written from there, and nothing can be restored over it. */
export const archive: AdminVerb = {
  usage: `archive out FILE   writes everything but what gives access to a new file
  archive in FILE [--erasures LEDGER]   restores into an empty instance and verifies; what the ledger says was erased since, is erased again`,
  operands: ['direction', 'file'],
  run: async ({ system }, options) => {
    const { direction, file } = archiveOptions(options)
    if (direction === 'in') throw new UsageError('a server runs on this instance, so that it is not empty; restore before the first start')
    const { rows, bytes, sha256 } = await system.record.archive.out(file)
    return { value: `${file}: ${rows} rows, ${bytes} bytes, ends with ${sha256}`, ok: true }
  },
}

export function archiveOptions(options: Readonly<Record<string, string>>): {
  direction: 'in' | 'out'
  file: string
  erasures: string | null
} {
  const { direction, file, erasures } = options
  if (direction !== 'in' && direction !== 'out') throw new UsageError('say `archive out FILE` or `archive in FILE`')
  if (file === undefined || file === '') throw new UsageError(`archive ${direction} wants a file`)
  if (erasures !== undefined && direction === 'out') throw new UsageError('--erasures belongs to `archive in`')
  return { direction, file, erasures: erasures ?? null }
}

/** Restores into the configured instance, which nobody may have started yet. Throws what Archive.in throws. */
export async function restoreArchive(input: {
  config: Config
  logger: Logger
  options: Readonly<Record<string, string>>
}): Promise<VerbAnswer> {
  const { file, erasures } = archiveOptions(input.options)
  const foundation = await layFoundation({ config: input.config, logger: input.logger, overrides: {} })
  try {
    const record = composeRecord(foundation)
    const { report, erased, epoch, aside } = await record.archive.in(file, erasures)
    await record.keepFiles({ trustsAll: true })
    await record.anchors.anchor()
    const value = `restored: ${report.streams} chains, ${report.events} events, ${report.anchors.count} anchors: intact; ${erased} texts erased again; epoch ${epoch}${aside ? `; ${aside.count} anchors of this home from after the archive were put aside in ${aside.path}` : ''}`
    return { value, ok: true }
  } finally {
    await foundation.lifecycle.close()
  }
}
