import { AsyncLocalStorage } from 'node:async_hooks'
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { PrismaClient } from '#prisma-client'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { rowTypes } from './row-types.ts'
import type { Sql, SqlParameter } from './sql.ts'
import { TurnSocket } from './turn-socket.ts'

/** A query went around the transaction it stands in; on the light tier that would wait for itself for ever (decision 4). */
export class OffTransactionError extends Error {
  constructor() {
    super('a query off its transaction: use the repositories, which join the running unit of work')
    this.name = 'OffTransactionError'
  }
}

/** Something went on after its unit of work had ended: it was not awaited. */
export class TransactionEndedError extends Error {
  constructor() {
    super('the unit of work that this query belongs to has ended: await everything that is begun inside')
    this.name = 'TransactionEndedError'
  }
}

/** The database refused a statement of the transaction, and the work went on as if it had not: nothing of it is kept. */
export class TransactionAbortedError extends Error {
  constructor() {
    super('a statement of the unit of work had failed, so the database rolled it back instead of committing it')
    this.name = 'TransactionAbortedError'
  }
}

type Scope = { connection: pg.PoolClient; ended: boolean; committed: (() => void)[]; rolledBack: (() => Promise<void>)[] }

/** Statement parameters stay under this size (decision 7), so that a caller's mistake is a clear error on both tiers. */
const PARAMETER_MAX_BYTES = 1024 * 1024

/**
 * One database, one pool, both tiers. Prisma and plain SQL inside `run` share its connection, whose statements are pipelined: those that do
 * not wait for each other's rows may be awaited together and cost one round trip. `direct` is for hot statements that are transactions of
 * their own, and refuses to be used inside one.
 */
export class Database implements UnitOfWork, Sql {
  /** Prisma's model calls, on the transaction of the calling unit of work where there is one. */
  readonly client: PrismaClient
  readonly #pool: pg.Pool
  readonly #names: StatementNames | null
  readonly #scope = new AsyncLocalStorage<Scope>()

  /** `prepares`: statements are kept prepared with each connection. Not on the light tier, whose connections share one session. */
  constructor(config: pg.PoolConfig, { prepares = false }: { prepares?: boolean } = {}) {
    this.#names = prepares ? new StatementNames() : null
    this.#pool = new pg.Pool({ ...config, pipeline: true, stream: () => new TurnSocket() })
    this.#pool.on('error', (error) => this.onPoolError(error))
    this.client = new PrismaClient({ adapter: new PrismaPg(this.#scopedPool()) })
  }

  /** Idle connections that break are replaced by the pool; the owner of the process may want to know. */
  onPoolError: (error: Error) => void = () => undefined

  /** True inside `run`. */
  get inTransaction(): boolean {
    return this.#scope.getStore() !== undefined
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.inTransaction) return work()
    const connection = await this.#pool.connect()
    const scope: Scope = { connection, ended: false, committed: [], rolledBack: [] }
    let broken: Error | undefined
    // A connection that breaks while it is lent is an error of its queries; without a listener it would be one of the process.
    const onBroken = (error: Error): void => {
      broken = error
    }
    connection.on('error', onBroken)
    let result: Result
    try {
      result = await this.#transact(scope, work)
    } catch (error) {
      await connection.query('ROLLBACK').catch(onBroken)
      this.#giveBack(scope, onBroken, broken)
      for (const callback of scope.rolledBack) await callback()
      throw error
    }
    this.#giveBack(scope, onBroken, broken)
    for (const callback of scope.committed) callback()
    return result
  }

  async #transact<Result>(scope: Scope, work: () => Promise<Result>): Promise<Result> {
    const begun = scope.connection.query('BEGIN')
    try {
      const [, result] = await Promise.all([begun, this.#scope.run(scope, work)])
      scope.ended = true
      const { command } = await scope.connection.query('COMMIT')
      // Postgres answers the COMMIT of a failed transaction with ROLLBACK, and no error.
      if (command !== 'COMMIT') throw new TransactionAbortedError()
      return result
    } finally {
      scope.ended = true
    }
  }

  #giveBack({ connection }: Scope, onBroken: (error: Error) => void, broken: Error | undefined): void {
    connection.off('error', onBroken)
    connection.release(broken)
  }

  afterCommit(callback: () => void): void {
    const scope = this.#scope.getStore()
    if (scope) scope.committed.push(callback)
    else callback()
  }

  async afterRollback(callback: () => Promise<void>): Promise<void> {
    const scope = this.#scope.getStore()
    if (scope) scope.rolledBack.push(callback)
    else await callback()
  }

  async query<Row>(text: string, params: readonly SqlParameter[] = []): Promise<Row[]> {
    return (await this.#send(text, params)).rows as Row[]
  }

  async execute(text: string, params: readonly SqlParameter[] = []): Promise<number> {
    return (await this.#send(text, params)).rowCount ?? 0
  }

  /** A hot statement that is a transaction of its own. */
  async direct<Row>(text: string, params: readonly SqlParameter[]): Promise<Row[]> {
    if (this.inTransaction) throw new OffTransactionError()
    return this.query<Row>(text, params)
  }

  async #send(text: string, params: readonly SqlParameter[]): Promise<pg.QueryResult> {
    checkSizes(params)
    return this.#target().query({ text, name: this.#names?.nameOf(text), values: params.map(plainParameter), types: rowTypes })
  }

  #target(): pg.PoolClient | pg.Pool {
    const scope = this.#scope.getStore()
    if (scope?.ended) throw new TransactionEndedError()
    return scope?.connection ?? this.#pool
  }

  /** The pool as Prisma sees it: a query goes where the calling unit of work is. Prisma opens no transactions of its own inside one. */
  #scopedPool(): pg.Pool {
    const query = (...args: [pg.QueryConfig]): Promise<pg.QueryResult> => this.#target().query(...args)
    const connect = (): Promise<pg.PoolClient> => {
      if (this.inTransaction) throw new OffTransactionError()
      return this.#pool.connect()
    }
    return Object.assign(Object.create(this.#pool) as pg.Pool, { query, connect })
  }

  async close(): Promise<void> {
    await this.client.$disconnect()
    await this.#pool.end()
  }
}

/** Most statements that a connection keeps prepared; what comes later is parsed each time. */
const PREPARED_MAX = 200

/** Parsing and planning cost more than most of our statements' work; their texts are few and do not change. */
class StatementNames {
  readonly #names = new Map<string, string>()

  nameOf(text: string): string | undefined {
    const known = this.#names.get(text)
    if (known !== undefined || this.#names.size >= PREPARED_MAX) return known
    const name = `lt${this.#names.size}`
    this.#names.set(text, name)
    return name
  }
}

function plainParameter(value: SqlParameter): unknown {
  return value instanceof Uint8Array && !Buffer.isBuffer(value) ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value
}

function checkSizes(params: readonly SqlParameter[]): void {
  for (const value of params) {
    const size = typeof value === 'string' ? Buffer.byteLength(value) : value instanceof Uint8Array ? value.byteLength : 0
    if (size > PARAMETER_MAX_BYTES) throw new RangeError(`a statement parameter of ${size} bytes is over ${PARAMETER_MAX_BYTES}`)
  }
}
