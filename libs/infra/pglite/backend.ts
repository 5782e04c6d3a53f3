/** The one Postgres backend of the light tier, opened durably, reached by whole protocol batches. */
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { DurableFolder } from './durable-folder.ts'
import { queryMessage, startupMessage } from './wire-protocol.ts'

/** How clients name themselves: PGlite has one user and one database. */
export const DATABASE_USER = 'postgres'
export const DATABASE_NAME = 'postgres'

/** Settings of the backend, by name, as they are given to `postgres -c`. */
export type BackendSettings = Readonly<Record<string, string>>

const DURABLE_SETTINGS: BackendSettings = {
  // PGlite's fdatasync does nothing; its fsync reaches DurableFolder.
  wal_sync_method: 'fsync',
  // 128 MB by default, all of it touched in time; the operating system caches the files anyway.
  shared_buffers: '16MB',
  // How much of the log is kept for reuse after a checkpoint.
  min_wal_size: '32MB',
  max_wal_size: '128MB',
}

/** Status with which PGlite's main loop reports an ordinary SQL error (a long jump), after which the backend is sound. */
const SQL_ERROR_STATUS = 100

export interface Backend {
  /**
   * Runs one whole batch and gives its answers to `onData`, synchronously; the bytes are only valid during the call.
   * SQL errors are answers. The promise is settled when the call returns.
   */
  execute(batch: Uint8Array, onData: (bytes: Uint8Array) => void): Promise<void>
  /** Runs statements of our own and returns the rows of the last. Throws on a SQL error. */
  query(sql: string): Promise<Record<string, unknown>[]>
  /** Whether a transaction is open or failed and not yet rolled back. */
  isInTransaction(): boolean
  /** What a client gets on connecting: authentication, parameters, ready. */
  readonly greeting: Buffer
  /** Checkpoints and closes. Throws nothing on a sound folder. */
  close(): Promise<void>
}

export interface OpenBackendOptions {
  /** The data folder; created and initialised when it is not there. */
  folder: string
  settings?: BackendSettings
  /** Called after each fsync of the data folder. */
  onFsync: () => void
  /**
   * Called when the WebAssembly code ends otherwise than by a SQL error (a trap, a stack overflow, a fatal exit). PGlite would go on
   * as if nothing had happened; the state inside is unknown, so this must end the thread or process at once.
   */
  onTrap: (error: unknown) => never
}

/** Postgres did not start on its data folder. `postgresLog` holds what it said last. */
export class BackendStartError extends Error {
  override readonly name = 'BackendStartError'
  readonly postgresLog: readonly string[]

  constructor(postgresLog: readonly string[], options: ErrorOptions) {
    super(`the database did not start: ${postgresLog.join(' | ') || String(options.cause)}`, options)
    this.postgresLog = postgresLog
  }
}

const KEPT_LOG_LINES = 12

/** Opens the data folder and recovers it if need be. Throws BackendStartError. */
export async function openBackend({ folder, settings = {}, onFsync, onTrap }: OpenBackendOptions): Promise<Backend> {
  const database = await startPostgres({ folder, settings, onFsync })
  watchForTraps(database, onTrap)
  const execute = (batch: Uint8Array, onData: (bytes: Uint8Array) => void): Promise<void> =>
    database.execProtocolRawStream(batch, { syncToFs: false, onRawData: onData })
  return {
    execute,
    query: async (sql) => (await database.exec(sql)).at(-1)?.rows ?? [],
    isInTransaction: () => database.isInTransaction(),
    greeting: await greetingOf(execute),
    close: () => database.close(),
  }
}

async function startPostgres({ folder, settings, onFsync }: Required<Omit<OpenBackendOptions, 'onTrap'>>): Promise<PGlite> {
  const postgresLog: string[] = []
  let starting = true
  try {
    return await PGlite.create({
      fs: new DurableFolder({ folder, onFsync }),
      extensions: { vector },
      startParams: startParameters({ ...DURABLE_SETTINGS, ...settings }),
      onStderr: (line) => {
        // Later lines can quote statements, which hold what people wrote: they are not kept.
        if (starting && postgresLog.push(line) > KEPT_LOG_LINES) postgresLog.shift()
        return false
      },
    })
  } catch (error) {
    throw new BackendStartError(postgresLog, { cause: error })
  } finally {
    starting = false
  }
}

/** PGlite's own start parameters without `-F` (fsync off), and ours. */
function startParameters(settings: BackendSettings): string[] {
  const own = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return [...PGlite.defaultStartParams.filter((parameter) => parameter !== '-F'), ...own]
}

function watchForTraps(database: PGlite, onTrap: (error: unknown) => never): void {
  const module = database.Module
  const mainLoopOnce = module._PostgresMainLoopOnce.bind(module)
  module._PostgresMainLoopOnce = () => {
    try {
      mainLoopOnce()
    } catch (error) {
      if (hasStatus(error) && error.status === SQL_ERROR_STATUS) throw error
      onTrap(error)
    }
  }
}

function hasStatus(error: unknown): error is { status: number } {
  return typeof error === 'object' && error !== null && 'status' in error
}

/** The backend's answer to a startup packet, asked for once: it is the same for every client, and need not wait for a transaction. */
async function greetingOf(execute: Backend['execute']): Promise<Buffer> {
  const parts: Buffer[] = []
  const collect = (bytes: Uint8Array): void => void parts.push(Buffer.from(bytes))
  await execute(startupMessage({ user: DATABASE_USER, database: DATABASE_NAME, client_encoding: 'UTF8' }), collect)
  return Buffer.concat(parts)
}

/** A batch that rolls back whatever transaction is open. */
export const ROLLBACK = queryMessage('ROLLBACK')
