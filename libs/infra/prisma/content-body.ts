/** SQL for the whole text of a row of `contents` under an alias, put together where it stands in chunks (decision 9). */
export function bodyOf(alias: string): string {
  return `coalesce(${alias}.body, (
    SELECT convert_from(string_agg(k.bytes, ''::bytea ORDER BY k.ordinal), 'UTF8') FROM content_chunks k WHERE k.content_id = ${alias}.id))`
}
