/**
 * The lock on LINGTAI_HOME: the kernel frees it when its process ends, however it ends (decision 2). Two processes on one data folder
 * would both acknowledge writes and lose each other's.
 *
 * The lock is SQLite's POSIX lock on `<home>/lock`. Closing any descriptor of that file drops it, so nothing else may open the file,
 * and what is told about the holder stands in `<home>/holder.json`.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'

const LOCK_FILE = 'lock'
const HOLDER_FILE = 'holder.json'

const holderSchema = z.object({ pid: z.number().int().positive(), address: z.string().optional() })

/** The process that holds a home: its id, and where it listens once it does. */
export type HomeHolder = z.infer<typeof holderSchema>

/** Another process, or this one, already uses the home. `holder` is undefined when the holder could not be told. */
export class HomeInUseError extends Error {
  override readonly name = 'HomeInUseError'
  readonly home: string
  readonly holder: HomeHolder | undefined

  constructor(home: string, holder: HomeHolder | undefined) {
    const who = holder === undefined ? 'another process' : `process ${holder.pid}`
    const where = holder?.address === undefined ? '' : ` (${holder.address})`
    super(`${home} is in use by ${who}${where}; stop it first, or set LINGTAI_HOME to another folder`)
    this.home = home
    this.holder = holder
  }
}

export interface HomeLock {
  readonly home: string
  /** Lets a refused second start say where the first one listens. */
  announce(address: string): void
  release(): void
}

/** Keeps each handle reachable for life: a collected one would free its lock. */
const held = new Set<DatabaseSync>()

/** Takes the home (making the folder, mode 0700, if need be) or throws HomeInUseError at once. */
export function lockHome(home: string): HomeLock {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const database = new DatabaseSync(join(home, LOCK_FILE), { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (isBusy(error)) throw new HomeInUseError(home, readHolder(home))
    throw error
  }
  held.add(database)
  writeHolder(home, { pid: process.pid })
  return {
    home,
    announce: (address) => writeHolder(home, { pid: process.pid, address }),
    release: () => {
      if (!held.delete(database)) return
      rmSync(join(home, HOLDER_FILE), { force: true })
      database.close()
    },
  }
}

const SQLITE_BUSY = 5

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}

function writeHolder(home: string, holder: HomeHolder): void {
  const file = join(home, HOLDER_FILE)
  writeFileSync(`${file}.new`, JSON.stringify(holder), { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** What the holder said of itself, unless that is left over from a process that is gone. */
function readHolder(home: string): HomeHolder | undefined {
  let text: string
  try {
    text = readFileSync(join(home, HOLDER_FILE), 'utf8')
  } catch {
    return undefined // Taken a moment ago, and not yet written.
  }
  const parsed = holderSchema.safeParse(parseJson(text))
  return parsed.success && isAlive(parsed.data.pid) ? parsed.data : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // Not ours; the schema refuses it.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
