import pg from 'pg'

const { builtins } = pg.types
type Parser = (text: string) => unknown
const INT8_ARRAY = 1016
const NUMERIC_ARRAY = 1231

const toNumber = (text: string): number => Number(text)
/** These arrays hold no text that would need quotes. */
const toNumbers = (text: string): (number | null)[] =>
  text === '{}'
    ? []
    : text
        .slice(1, -1)
        .split(',')
        .map((item) => (item === 'NULL' ? null : Number(item)))

const own = new Map<number, Parser>([
  [builtins.INT8, toNumber],
  [builtins.NUMERIC, toNumber],
  [INT8_ARRAY, toNumbers],
  [NUMERIC_ARRAY, toNumbers],
])

/** The types that `Sql` promises: pg's own, but int8 and numeric as numbers. */
export const rowTypes: pg.CustomTypesConfig = {
  getTypeParser: (oid: Parameters<typeof pg.types.getTypeParser>[0], format?: 'text' | 'binary') =>
    own.get(oid) ?? (pg.types.getTypeParser(oid, format) as Parser),
}
