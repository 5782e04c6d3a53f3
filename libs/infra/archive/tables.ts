import type { Sql } from '../prisma/sql.ts'

export type ArchiveColumn = { name: string; type: string }

export type TablePlan = {
  name: string
  columns: readonly ArchiveColumn[]
  /** Columns of the primary key, in its order. */
  key: readonly string[]
  identity: readonly string[]
  /** Foreign keys of the table to itself that are checked at once. */
  selfReferences: readonly string[]
}

/**
 * What stays behind, since whoever holds an archive should not thereby hold a way in: sessions, sign-in links, tokens (people sign in
 * anew and make fresh ones), secrets at rest, and answers kept for repeated requests, which outlive no move. Salts of embedding requests go
 * with any erasure after them, of which an archive made before it knows nothing.
 */
const LEFT_OUT = /^(_prisma_migrations|sessions|signin_links|tokens|idempotency_keys|.*_secrets)$/
const COLUMNS_LEFT_OUT: Readonly<Record<string, ReadonlySet<string>>> = {
  owners: new Set(['password_hash']),
  embedding_requests: new Set(['salt']),
}

type ColumnRow = { table: string; name: string; type: string; identity: boolean; key_place: number | null }
type ReferenceRow = { name: string; from: string; to: string }

/** Every table that an archive holds, each after those that its rows refer to. */
export async function planTables(sql: Sql): Promise<TablePlan[]> {
  const columns = await sql.query<ColumnRow>(
    `SELECT c.relname AS "table", a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attidentity <> '' AS identity,
            array_position(i.indkey::int2[], a.attnum) AS key_place
     FROM pg_class c
     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
     LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
     WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
     ORDER BY c.relname COLLATE "C", a.attnum`,
  )
  const references = await sql.query<ReferenceRow>(
    `SELECT conname AS name, conrelid::regclass::text AS "from", confrelid::regclass::text AS "to"
     FROM pg_constraint
     WHERE contype = 'f' AND NOT condeferrable AND connamespace = current_schema()::regnamespace ORDER BY conname COLLATE "C"`,
  )
  const names = [...new Set(columns.map((column) => column.table))].filter((name) => !LEFT_OUT.test(name))
  return inOrder(names, references).map((name) => {
    const own = columns.filter((column) => column.table === name && COLUMNS_LEFT_OUT[name]?.has(column.name) !== true)
    const key = own
      .filter((column) => column.key_place !== null)
      .toSorted((left, right) => (left.key_place ?? 0) - (right.key_place ?? 0))
      .map((column) => column.name)
    if (key.length === 0) throw new Error(`table ${name} has no primary key to be archived by`)
    return {
      name,
      columns: own.map((column) => ({ name: column.name, type: column.type })),
      key,
      identity: own.filter((column) => column.identity).map((column) => column.name),
      selfReferences: references.filter(({ from, to }) => from === name && to === name).map((reference) => reference.name),
    }
  })
}

function inOrder(names: readonly string[], references: readonly ReferenceRow[]): string[] {
  const ordered: string[] = []
  let waiting = [...names]
  while (waiting.length > 0) {
    const open = new Set(waiting)
    const ready = waiting.filter((name) => !references.some(({ from, to }) => from === name && to !== name && open.has(to)))
    if (ready.length === 0) throw new Error(`tables refer to each other in a circle that is checked at once: ${waiting.join(', ')}`)
    ordered.push(...ready)
    waiting = waiting.filter((name) => !ready.includes(name))
  }
  return ordered
}

/** A name in double quotes. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** SQL for a column's value as an archive's text. */
export function textOf({ name, type }: ArchiveColumn): string {
  return type === 'bytea' ? `translate(encode(${quoted(name)}, 'base64'), E'\\n', '')` : `${quoted(name)}::text`
}

/** SQL for the value of an archive's text. */
export function valueOf(text: string, { type }: Pick<ArchiveColumn, 'type'>): string {
  return type === 'bytea' ? `decode(${text}, 'base64')` : `${text}::${type}`
}

/** Values are printed and read the same wherever and however the database is set up; reading a file may take long between statements. */
export const SETTINGS: readonly string[] = [
  "SET LOCAL TimeZone = 'UTC'",
  "SET LOCAL DateStyle = 'ISO, YMD'",
  "SET LOCAL IntervalStyle = 'postgres'",
  'SET LOCAL extra_float_digits = 1',
  'SET LOCAL idle_in_transaction_session_timeout = 0',
]
