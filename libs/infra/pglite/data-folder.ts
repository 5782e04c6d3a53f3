/** The data folder of the light tier (`<home>/pg`): made whole or not at all, and only opened by the Postgres version it belongs to. */
import { spawn } from 'node:child_process'
import { closeSync, constants, cpSync, existsSync, fsyncSync, openSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { siblingEntry } from './sibling-entry.ts'

/** The major version of Postgres that is PGlite, as PG_VERSION in a data folder gives it. */
export const POSTGRES_MAJOR = '18'

const UNFINISHED = '.unfinished-'

/** The data folder was made by another version of Postgres, which alone can read it. */
export class DataFolderVersionError extends Error {
  override readonly name = 'DataFolderVersionError'
  readonly folder: string
  readonly found: string
  readonly expected = POSTGRES_MAJOR

  constructor(folder: string, found: string) {
    super(
      `${folder} holds the data of Postgres ${found}, and this version of Lingtai runs Postgres ${POSTGRES_MAJOR}. ` +
        'To move on: start the version of Lingtai that wrote it, write an archive there, then import the archive here into an empty LINGTAI_HOME.',
    )
    this.folder = folder
    this.found = found
  }
}

/** There is a folder where the data should be, but it is no data folder. */
export class DataFolderDamagedError extends Error {
  override readonly name = 'DataFolderDamagedError'
  readonly folder: string

  constructor(folder: string) {
    super(`${folder} exists but has no PG_VERSION file: it is not a data folder, or it was damaged. Restore it, or move it away.`)
    this.folder = folder
  }
}

/** The process that initialises a data folder failed. */
export class DataFolderCreationError extends Error {
  override readonly name = 'DataFolderCreationError'
  readonly output: string

  constructor(output: string) {
    super(`the database could not be initialised: ${output}`)
    this.output = output
  }
}

/**
 * Makes sure that `folder` is a data folder that this version can open: an existing one is checked, a missing one is copied from
 * `snapshot` or initialised. The caller holds the lock on the home. Returns how it came to be.
 * Throws DataFolderVersionError, DataFolderDamagedError, DataFolderCreationError.
 */
export async function prepareDataFolder({
  folder,
  snapshot,
}: {
  folder: string
  snapshot?: string
}): Promise<'found' | 'copied' | 'created'> {
  removeUnfinished(folder)
  if (existsSync(folder)) {
    checkVersion(folder)
    return 'found'
  }
  const unfinished = `${folder}${UNFINISHED}${process.pid}`
  if (snapshot === undefined) {
    await initialiseInChildProcess(unfinished)
    syncTree(unfinished)
  } else {
    checkVersion(snapshot)
    // Not synced, which can take seconds: whoever has a snapshot can copy it again.
    cpSync(snapshot, unfinished, { recursive: true, mode: constants.COPYFILE_FICLONE })
  }
  // Renamed into place, so that a start that is cut off leaves no half-made database.
  renameSync(unfinished, folder)
  syncPath(dirname(folder))
  return snapshot === undefined ? 'created' : 'copied'
}

function checkVersion(folder: string): void {
  const file = join(folder, 'PG_VERSION')
  if (!existsSync(file)) throw new DataFolderDamagedError(folder)
  const found = readFileSync(file, 'utf8').trim()
  if (found !== POSTGRES_MAJOR) throw new DataFolderVersionError(folder, found)
}

function removeUnfinished(folder: string): void {
  const parent = dirname(folder)
  for (const name of readdirSync(parent)) {
    if (name.startsWith(basename(folder) + UNFINISHED)) rmSync(join(parent, name), { recursive: true, force: true })
  }
}

/**
 * A process of its own, thrown away afterwards: initialising takes several hundred MB that a process would keep (bar P9).
 * It ends by itself if this process does.
 */
function initialiseInChildProcess(folder: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const child = spawn(process.execPath, [fileURLToPath(siblingEntry('database-creator', import.meta.url)), folder], {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-4_000)))
  child.once('error', (error) => reject(new DataFolderCreationError(String(error))))
  child.once('close', (code, signal) => {
    if (code === 0) resolve()
    else reject(new DataFolderCreationError(`${output.trim()} (${signal ?? `exit code ${code}`})`))
  })
  return promise
}

function syncTree(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) syncPath(join(entry.parentPath, entry.name))
  syncPath(folder)
}

function syncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
