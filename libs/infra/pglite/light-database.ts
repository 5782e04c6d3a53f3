/**
 * The light tier's database: PGlite on a folder of LINGTAI_HOME, durable, watched, and spoken to like any Postgres over a local socket
 * (decisions 1 to 4). One process at a time.
 */
import { join, resolve } from 'node:path'
import { type BackendSettings, DATABASE_NAME, DATABASE_USER } from './backend.ts'
import { prepareDataFolder } from './data-folder.ts'
import { type HomeLock, lockHome } from './home-lock.ts'
import { SharedCounters } from './shared-counters.ts'
import { makeSocketFolder, SOCKET_PORT, type SocketFolder } from './socket-folder.ts'
import { startWatchdog, type Watchdog } from './watchdog.ts'
import { startWorkerThread, type WorkerThread } from './worker-thread.ts'
import type { FromWorker, WorkerTask } from './worker-messages.ts'

/** Something went wrong in the database; what was done about it is in the name. Connections that were cut report errors of their own. */
export type LightDatabaseIncident =
  /** A statement ran longer than `afterMs` and the worker was ended and started again. */
  | { kind: 'stuck_and_restarted'; afterMs: number }
  /** The worker ended by itself and was started again. */
  | { kind: 'crashed_and_restarted'; reason: string }
  /** A connection kept a transaction open unused for `unusedMs` while others waited; it was cut and its transaction rolled back. */
  | { kind: 'idle_transaction_cut'; unusedMs: number }
  /** A checkpoint or vacuum failed; it is tried again later. */
  | { kind: 'maintenance_failed'; reason: string }
  /** The worker could not be started again: the database is down and the process had better end. */
  | { kind: 'down'; reason: string }

export interface LightDatabaseOptions {
  /** LINGTAI_HOME; made (mode 0700) if it is not there. */
  home: string
  /** Told what happens, in words for the operator and fields without content. */
  log?: (message: string, fields: Readonly<Record<string, unknown>>) => void
  onIncident?: (incident: LightDatabaseIncident) => void
  /** A data folder, cleanly closed, that a home without one starts from instead of being initialised (4 to 14 s). */
  snapshot?: string
  /** Postgres settings for the backend, for example `hnsw.ef_search` (decision 31). */
  settings?: BackendSettings
  /** Milliseconds after which a statement, or an unused transaction that others wait for, counts as stuck. */
  stuckAfterMs?: number
}

export interface LightDatabase {
  readonly home: string
  /** For `new pg.Pool(…)` or Prisma's adapter-pg. */
  readonly connection: { readonly host: string; readonly port: number; readonly user: string; readonly database: string }
  /** The same as a URL, for psql and logs. */
  readonly connectionString: string
  /** Lets a refused second start say where this process listens. */
  announce(address: string): void
  /** How often the data folder has been synced to disk since it was opened. */
  fsyncCount(): number
  /** Runs `work` without the watchdog, for statements known to be long: an index build, a migration. */
  allowLongStatements<T>(work: () => Promise<T>): Promise<T>
  /**
   * Ends the database and starts it again, while nobody is connected: WebAssembly memory that once was needed is given back only with its
   * worker (bar P9). Throws what Postgres said where it does not start again.
   */
  renew(): Promise<void>
  /** Checkpoints, ends all connections and frees the home. End the pool first. */
  close(): Promise<void>
}

const STUCK_AFTER_MS = 30_000

/** Restarts without a stretch of `CALM_MS` between them, after which the database is given up. */
const MOST_RESTARTS = 3
const CALM_MS = 60_000

/**
 * Takes the home, prepares its data folder and starts the database.
 * Throws HomeInUseError, DataFolderVersionError, DataFolderDamagedError, DataFolderCreationError, or what Postgres said where it
 * would not start.
 */
export async function openLightDatabase(options: LightDatabaseOptions): Promise<LightDatabase> {
  const home = resolve(options.home)
  const lock = lockHome(home)
  try {
    const folder = join(home, 'pg')
    const startedAt = performance.now()
    const origin = await prepareDataFolder({ folder, snapshot: options.snapshot })
    const preparedAt = performance.now()
    const sockets = makeSocketFolder(home)
    const database = new RunningDatabase({ options: { ...options, home }, folder, lock, sockets })
    await database.start()
    options.log?.('database opened', {
      origin,
      preparedInMs: Math.round(preparedAt - startedAt),
      openedInMs: Math.round(performance.now() - preparedAt),
    })
    return database
  } catch (error) {
    lock.release()
    throw error
  }
}

class RunningDatabase implements LightDatabase {
  readonly home: string
  readonly connection: LightDatabase['connection']
  readonly connectionString: string
  readonly #options: LightDatabaseOptions
  readonly #lock: HomeLock
  readonly #sockets: SocketFolder
  readonly #counters = new SharedCounters()
  readonly #task: WorkerTask
  readonly #watchdog: Watchdog
  #worker: WorkerThread | undefined
  #stuck = false
  #renewing = false
  #restarting: Promise<void> = Promise.resolve()
  #closing: Promise<void> | undefined
  #restarts = 0
  #startedAt = 0

  constructor(parts: { options: LightDatabaseOptions; folder: string; lock: HomeLock; sockets: SocketFolder }) {
    const { options, folder, lock, sockets } = parts
    this.home = options.home
    this.#options = options
    this.#lock = lock
    this.#sockets = sockets
    this.connection = { host: sockets.folder, port: SOCKET_PORT, user: DATABASE_USER, database: DATABASE_NAME }
    this.connectionString = `postgresql://${DATABASE_USER}@/${DATABASE_NAME}?host=${encodeURIComponent(sockets.folder)}&port=${SOCKET_PORT}`
    const stuckAfterMs = options.stuckAfterMs ?? STUCK_AFTER_MS
    this.#task = {
      folder,
      socketPath: sockets.socketPath,
      settings: options.settings ?? {},
      counters: this.#counters.buffer,
      stuckAfterMs,
    }
    this.#watchdog = startWatchdog({
      beats: () => this.#counters.beats,
      limitMs: stuckAfterMs,
      onStuck: () => this.#endStuckWorker(),
    })
  }

  async start(): Promise<void> {
    try {
      await this.#startWorker()
    } catch (error) {
      this.#watchdog.stop()
      this.#sockets.remove()
      throw error
    }
  }

  announce(address: string): void {
    this.#lock.announce(address)
  }

  fsyncCount(): number {
    return this.#counters.fsyncs
  }

  allowLongStatements<T>(work: () => Promise<T>): Promise<T> {
    return this.#watchdog.pauseDuring(work)
  }

  async renew(): Promise<void> {
    await this.#restarting
    this.#renewing = true
    try {
      await this.#worker?.close()
      this.#sockets.removeSocket()
      await this.#startWorker()
    } finally {
      this.#renewing = false
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#restarting
    // The watchdog goes on: a worker that is stuck now is ended by it, and this call returns.
    await this.#worker?.close()
    this.#watchdog.stop()
    this.#sockets.remove()
    this.#lock.release()
    this.#options.log?.('database closed', {})
  }

  async #startWorker(): Promise<void> {
    // Recovery after a crash may take its time, and the worker shows no life before it is done.
    const worker = await this.#watchdog.pauseDuring(() => startWorkerThread(this.#task, (message) => this.#hear(message)))
    this.#worker = worker
    this.#startedAt = performance.now()
    void worker.gone.then((reason) => {
      if (this.#closing === undefined && !this.#renewing) this.#restarting = this.#restart(reason)
    })
  }

  #hear(message: FromWorker): void {
    if (message.kind === 'transaction_cut') this.#report({ kind: 'idle_transaction_cut', unusedMs: message.unusedMs })
    if (message.kind === 'maintenance_failed') this.#report({ kind: 'maintenance_failed', reason: message.reason })
  }

  #endStuckWorker(): void {
    this.#stuck = true
    void this.#worker?.terminate()
  }

  async #restart(reason: string): Promise<void> {
    this.#restarts = performance.now() - this.#startedAt > CALM_MS ? 1 : this.#restarts + 1
    if (this.#restarts > MOST_RESTARTS) return this.#report({ kind: 'down', reason })
    const stuck = this.#stuck
    this.#stuck = false
    try {
      this.#sockets.removeSocket()
      await this.#startWorker()
    } catch (error) {
      return this.#report({ kind: 'down', reason: String(error) })
    }
    this.#report(stuck ? { kind: 'stuck_and_restarted', afterMs: this.#task.stuckAfterMs } : { kind: 'crashed_and_restarted', reason })
  }

  #report(incident: LightDatabaseIncident): void {
    this.#options.log?.('database incident', incident)
    this.#options.onIncident?.(incident)
  }
}
