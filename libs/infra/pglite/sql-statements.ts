/**
 * A light reading of SQL: its statements as lists of lower-case words and punctuation, with comments left out and strings, quoted
 * names and dollar-quoted bodies reduced to a mark. Enough to see what kind of statement something is; it checks no syntax.
 */

const TOKEN_START = /--|\/\*|[eE]'|'|"|\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*|[(),;]/g

/** What a quoted literal or name becomes, so that it cannot be taken for a key word. */
export const QUOTED = "''"

/** The statements of a SQL text, in order, empty ones left out. */
export function statementsOf(sql: string): string[][] {
  const statements: string[][] = []
  let words: string[] = []
  TOKEN_START.lastIndex = 0
  for (let match = TOKEN_START.exec(sql); match !== null; match = TOKEN_START.exec(sql)) {
    const token = match[0]
    const from = TOKEN_START.lastIndex
    if (token === '--') {
      TOKEN_START.lastIndex = after(sql, '\n', from)
    } else if (token === '/*') {
      TOKEN_START.lastIndex = afterComment(sql, from)
    } else if (token === ';') {
      if (words.length > 0) statements.push(words)
      words = []
    } else if (token.endsWith("'") || token === '"' || token.startsWith('$')) {
      TOKEN_START.lastIndex = afterQuoted(sql, token, from)
      words.push(QUOTED)
    } else {
      words.push(token.toLowerCase())
    }
  }
  if (words.length > 0) statements.push(words)
  return statements
}

function afterQuoted(sql: string, opening: string, from: number): number {
  if (opening.startsWith('$')) return after(sql, opening, from)
  const quote = opening.endsWith("'") ? "'" : '"'
  const escapes = opening.length === 2
  for (let at = from; at < sql.length; at++) {
    if (escapes && sql[at] === '\\') at++
    else if (sql[at] === quote && sql[at + 1] === quote) at++
    else if (sql[at] === quote) return at + 1
  }
  return sql.length
}

/** Block comments nest in Postgres. */
function afterComment(sql: string, from: number): number {
  let depth = 1
  for (let at = from; at < sql.length; at++) {
    if (sql.startsWith('/*', at)) {
      depth++
      at++
    } else if (sql.startsWith('*/', at)) {
      depth--
      at++
      if (depth === 0) return at + 1
    }
  }
  return sql.length
}

function after(sql: string, end: string, from: number): number {
  const at = sql.indexOf(end, from)
  return at < 0 ? sql.length : at + end.length
}
