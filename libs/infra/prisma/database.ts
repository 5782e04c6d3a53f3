import { AsyncLocalStorage } from 'node:async_hooks'
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { PrismaClient } from '#prisma-client'
import type { Prisma } from '#prisma-client'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { Sql, SqlParameter } from './sql.ts'

/** A query went around the transaction it stands in; on the light tier that would wait for itself for ever (decision 4). */
export class OffTransactionError extends Error {
  constructor() {
    super('a query off its transaction: use the repositories, which join the running unit of work')
    this.name = 'OffTransactionError'
  }
}

type Scope = { tx: Prisma.TransactionClient; committed: (() => void)[]; rolledBack: (() => Promise<void>)[] }

/** Statement parameters stay under this size (decision 7), so that a caller's mistake is a clear error on both tiers. */
const PARAMETER_MAX_BYTES = 1024 * 1024

/**
 * One database, one pool, both tiers. Prisma and plain SQL inside `run` share its transaction; `pool` is for hot statements that are
 * transactions of their own, and refuses to be used inside one.
 */
export class Database implements UnitOfWork, Sql {
  readonly prisma: PrismaClient
  readonly #pool: pg.Pool
  readonly #scope = new AsyncLocalStorage<Scope>()

  constructor(config: pg.PoolConfig) {
    this.#pool = new pg.Pool(config)
    this.#pool.on('error', (error) => this.onPoolError(error))
    this.prisma = new PrismaClient({ adapter: new PrismaPg(this.#pool) })
  }

  /** Idle connections that break are replaced by the pool; the owner of the process may want to know. */
  onPoolError: (error: Error) => void = () => undefined

  /** The Prisma client of the running transaction, or the plain one. */
  get client(): Prisma.TransactionClient {
    return this.#scope.getStore()?.tx ?? this.prisma
  }

  /** True inside `run`. */
  get inTransaction(): boolean {
    return this.#scope.getStore() !== undefined
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.inTransaction) return work()
    const committed: Scope['committed'] = []
    const rolledBack: Scope['rolledBack'] = []
    let result: Result
    try {
      result = await this.prisma.$transaction((tx) => this.#scope.run({ tx, committed, rolledBack }, work), { maxWait: 30_000, timeout: 60_000 })
    } catch (error) {
      for (const callback of rolledBack) await callback()
      throw error
    }
    for (const callback of committed) callback()
    return result
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
    checkSizes(params)
    const rows = await this.client.$queryRawUnsafe<Record<string, unknown>[]>(text, ...params)
    return rows.map(plainRow) as Row[]
  }

  async execute(text: string, params: readonly SqlParameter[] = []): Promise<number> {
    checkSizes(params)
    return this.client.$executeRawUnsafe(text, ...params)
  }

  /** A hot statement of its own, on the same pool without Prisma's cost. */
  async direct<Row extends pg.QueryResultRow>(text: string, params: readonly SqlParameter[]): Promise<Row[]> {
    if (this.inTransaction) throw new OffTransactionError()
    checkSizes(params)
    const result = await this.#pool.query<Row>(text, params.map(plainParameter))
    return result.rows
  }

  async close(): Promise<void> {
    await this.prisma.$disconnect()
    await this.#pool.end()
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

/** Prisma's raw rows in the types that `Sql` promises. */
function plainRow(row: Record<string, unknown>): Record<string, unknown> {
  for (const [key, value] of Object.entries(row)) row[key] = plainValue(value)
  return row
}

function plainValue(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  if (Array.isArray(value)) return value.map(plainValue)
  if (typeof value === 'object' && value !== null && 'toNumber' in value && typeof value.toNumber === 'function') return Number(value.toNumber())
  return value
}
