import type { Database } from '#infra/prisma/database'

/** A place of the database that holds a text: the table, the column, and the row by its id where it has one. */
export type Standing = { place: string; id: string | null }

type Column = { schema: string; table: string; column: string; type: string; has_id: boolean }

/**
 * Every row of every table that holds one of these words in a column of text, JSON or bytes, whatever the column is for. Words are looked for
 * without regard to case, and also inside of longer ones.
 */
export async function standingTexts(database: Database, words: readonly string[]): Promise<Standing[]> {
  const columns = await database.query<Column>(
    `SELECT c.table_schema AS schema, c.table_name AS table, c.column_name AS column, c.data_type AS type,
       EXISTS (SELECT 1 FROM information_schema.columns i
               WHERE i.table_schema = c.table_schema AND i.table_name = c.table_name AND i.column_name = 'id') AS has_id
     FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
     WHERE t.table_type = 'BASE TABLE' AND c.table_schema NOT IN ('pg_catalog', 'information_schema')
       AND c.data_type NOT IN ('uuid', 'integer', 'bigint', 'smallint', 'boolean', 'double precision', 'timestamp with time zone', 'xid8')
     ORDER BY 2, 3`,
  )
  // All in one statement: there are hundreds of columns, and the light tier feels each question.
  const searches = columns.map(({ schema, table, column, type, has_id: hasId }) => {
    const name = `"${column}"`
    const holds = type === 'bytea' ? `position(convert_to(w, 'UTF8') in ${name}) > 0` : `position(lower(w) in lower(${name}::text)) > 0`
    return `SELECT '${table}.${column}' AS place, ${hasId ? 'id::text' : 'NULL'} AS id FROM "${schema}"."${table}"
      WHERE EXISTS (SELECT 1 FROM unnest($1::text[]) AS w WHERE ${holds})`
  })
  return database.query<Standing>(searches.join(' UNION ALL '), [[...words]])
}
