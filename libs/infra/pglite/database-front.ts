/**
 * The socket front of the light tier: several Postgres clients, one backend. Each client's batches reach the backend whole, and a
 * client that opens a transaction keeps the backend until the transaction ends (decision 1). Transactions are therefore serial.
 */
import { createServer, type Server } from 'node:net'
import { type Backend, ROLLBACK } from './backend.ts'
import { FrontConnection } from './front-connection.ts'
import { raiseSql, SessionGuard } from './session-guard.ts'
import { ProtocolViolationError, queryMessage } from './wire-protocol.ts'

const PROTOCOL_VIOLATION = '08P01'
const IDLE_IN_TRANSACTION = '25P03'
const ADMIN_SHUTDOWN = '57P01'

interface WaitingBatch {
  readonly connection: FrontConnection
  readonly bytes: Uint8Array
}

export interface DatabaseFrontOptions {
  backend: Backend
  /** Milliseconds on a clock that only rises. */
  now: () => number
}

export class DatabaseFront {
  readonly #backend: Backend
  readonly #now: () => number
  readonly #guard = new SessionGuard()
  readonly #connections = new Set<FrontConnection>()
  readonly #server: Server
  #waiting: WaitingBatch[] = []
  /** The connection whose transaction is open. */
  #holder: FrontConnection | undefined
  #lastUsedAt: number
  #running = false
  #closing = false

  constructor({ backend, now }: DatabaseFrontOptions) {
    this.#backend = backend
    this.#now = now
    this.#lastUsedAt = now()
    this.#server = createServer((socket) => {
      const events = {
        onBatch: (connection: FrontConnection, bytes: Uint8Array) => this.#enqueue(connection, bytes),
        onClosed: (connection: FrontConnection) => this.#forget(connection),
      }
      this.#connections.add(new FrontConnection({ socket, greeting: backend.greeting, events }))
    })
  }

  listen(socketPath: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#server.once('error', reject)
    this.#server.listen(socketPath, () => {
      this.#server.off('error', reject)
      resolve()
    })
    return promise
  }

  /** Stops listening and ends all connections. An open transaction ends unfinished with the backend. */
  close(): void {
    this.#closing = true
    this.#server.close()
    for (const connection of this.#connections) connection.refuse(ADMIN_SHUTDOWN, 'the database is closing')
  }

  /** Milliseconds since a client last used the backend, or 0 while one uses it, waits for it or holds a transaction. */
  idleMs(): number {
    return this.#running || this.#holder !== undefined || this.#waiting.length > 0 ? 0 : this.#now() - this.#lastUsedAt
  }

  /** Runs `task` with the backend to itself, or answers false at once if a client uses it. */
  async runWhileFree(task: () => Promise<void>): Promise<boolean> {
    if (this.#running || this.#holder !== undefined) return false
    this.#running = true
    try {
      await task()
    } finally {
      this.#running = false
    }
    void this.#pump()
    return true
  }

  /**
   * Ends a connection that keeps its transaction open without using it for `limitMs`, while others wait: for example one that awaits
   * a pool query inside its own transaction and would do so for ever (decision 4). Returns how long it was unused, in ms.
   */
  cutIdleHolder(limitMs: number): number | undefined {
    const holder = this.#holder
    const unusedMs = this.#now() - this.#lastUsedAt
    if (holder === undefined || this.#running || this.#waiting.length === 0 || unusedMs < limitMs) return undefined
    holder.refuse(IDLE_IN_TRANSACTION, `the transaction was left open unused for ${Math.round(unusedMs)} ms while others waited`)
    return unusedMs
  }

  #enqueue(connection: FrontConnection, bytes: Uint8Array): void {
    this.#waiting.push({ connection, bytes })
    void this.#pump()
  }

  #forget(connection: FrontConnection): void {
    this.#connections.delete(connection)
    this.#waiting = this.#waiting.filter((waiting) => waiting.connection !== connection)
    void this.#pump()
  }

  /** Runs waiting batches until none may run. Only one call is active at a time; the others leave their work to it. */
  async #pump(): Promise<void> {
    if (this.#running || this.#closing) return
    this.#running = true
    try {
      await this.#releaseHolderThatLeft()
      for (let next = this.#takeNext(); next !== undefined; next = this.#takeNext()) {
        await this.#run(next)
        await this.#releaseHolderThatLeft()
      }
    } finally {
      this.#running = false
    }
  }

  #takeNext(): WaitingBatch | undefined {
    const holder = this.#holder
    if (holder === undefined) return this.#waiting.shift()
    const at = this.#waiting.findIndex(({ connection }) => connection === holder)
    return at < 0 ? undefined : this.#waiting.splice(at, 1)[0]
  }

  async #run({ connection, bytes }: WaitingBatch): Promise<void> {
    const admitted = this.#admit(connection, bytes)
    if (admitted === undefined) return
    await connection.answer((write) => this.#backend.execute(admitted, write))
    this.#holder = this.#backend.isInTransaction() ? connection : undefined
    this.#lastUsedAt = this.#now()
  }

  /** The batch itself, or in place of a refused one a batch that raises the refusal; nothing if the connection had to be ended. */
  #admit(connection: FrontConnection, bytes: Uint8Array): Uint8Array | undefined {
    try {
      const refusal = this.#guard.check(bytes)
      return refusal === undefined ? bytes : queryMessage(raiseSql(refusal))
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error
      connection.refuse(PROTOCOL_VIOLATION, error.message)
      return undefined
    }
  }

  async #releaseHolderThatLeft(): Promise<void> {
    if (this.#holder?.closed !== true) return
    await this.#backend.execute(ROLLBACK, () => {})
    this.#holder = undefined
  }
}
