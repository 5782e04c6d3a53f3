import { Id, LingtaiError } from '#contracts'

/** A page's cursor that is the id of the last row seen; null on the first page. Throws validation_failed. */
export function idCursor(cursor: string | undefined): string | null {
  if (cursor === undefined) return null
  const parsed = Id.safeParse(cursor.toLowerCase())
  if (!parsed.success)
    throw new LingtaiError('validation_failed', undefined, { errors: [{ path: 'query.cursor', message: 'is no cursor of this list' }] })
  return parsed.data
}
