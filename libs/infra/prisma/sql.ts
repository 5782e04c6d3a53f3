/**
 * Plain SQL with $1-style parameters, on the transaction of the calling UnitOfWork where there is one.
 *
 * Rows come with one set of types on both tiers: int8 and numeric as numbers (safe integers or doubles), timestamptz as Date,
 * bytea as Buffer, json as parsed values, arrays as arrays. Parameters: strings, numbers, booleans, Date, Uint8Array, null and arrays
 * of these; cast in the SQL (`$1::uuid[]`, `$2::halfvec`). Types without a JavaScript counterpart are selected as `::text`.
 */
export interface Sql {
  query<Row>(text: string, params?: readonly SqlParameter[]): Promise<Row[]>
  /** Runs a statement and answers the number of rows it touched. */
  execute(text: string, params?: readonly SqlParameter[]): Promise<number>
}

export type SqlScalar = string | number | bigint | boolean | Date | Uint8Array | null
export type SqlParameter = SqlScalar | readonly SqlScalar[]
