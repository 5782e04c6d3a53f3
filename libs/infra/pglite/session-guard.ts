/**
 * The light tier has one Postgres backend for all connections, so whatever lives as long as a session would be shared by strangers:
 * settings, named statements, temporary tables, session locks. The guard refuses them, with the way to do it instead (decision 1).
 */
import { type BatchMessage, messagesOf } from './wire-protocol.ts'
import { statementsOf } from './sql-statements.ts'

/** Why a batch is not handed to the backend. `code` is a SQLSTATE. */
export interface Refusal {
  readonly code: string
  readonly message: string
  readonly hint: string
}

const FEATURE_NOT_SUPPORTED = '0A000'
const INVALID_STATEMENT_NAME = '26000'

/** Words without which no statement is refused: most SQL is let through on this look alone. */
const SUSPICIOUS =
  /\b(?:set|reset|discard|listen|unlisten|prepare|execute|deallocate|temp|temporary|hold|copy|load|set_config|pg_(?:try_)?advisory_\w*)\b/i

const REMEMBERED_TEXTS = 500
const LONGEST_REMEMBERED = 8192

/** Says what in a batch cannot be done on a shared session, or undefined. Throws ProtocolViolationError on a malformed message. */
export class SessionGuard {
  readonly #verdicts = new Map<string, Refusal | undefined>()

  check(batch: Uint8Array): Refusal | undefined {
    let parsedHere = false
    for (const message of messagesOf(batch)) {
      const refusal = refusedMessage(message, parsedHere) ?? this.#refusedSql(message)
      if (refusal !== undefined) return refusal
      if (message.kind === 'parse') parsedHere = true
    }
    return undefined
  }

  #refusedSql(message: BatchMessage): Refusal | undefined {
    if (message.kind !== 'query' && message.kind !== 'parse') return undefined
    const { sql } = message
    if (!SUSPICIOUS.test(sql)) return undefined
    if (this.#verdicts.has(sql)) return this.#verdicts.get(sql)
    const verdict = refusedStatement(sql)
    if (sql.length <= LONGEST_REMEMBERED) this.#remember(sql, verdict)
    return verdict
  }

  #remember(sql: string, verdict: Refusal | undefined): void {
    if (this.#verdicts.size >= REMEMBERED_TEXTS) this.#verdicts.clear()
    this.#verdicts.set(sql, verdict)
  }
}

function refusedMessage(message: BatchMessage, parsedHere: boolean): Refusal | undefined {
  switch (message.kind) {
    case 'parse':
      return message.statement === '' ? undefined : namedStatement(message.statement)
    case 'bind':
    case 'describe_statement':
      if (message.statement !== '') return namedStatement(message.statement)
      if (parsedHere) return undefined
      return {
        code: INVALID_STATEMENT_NAME,
        message: 'the unnamed statement is used without being parsed in the same batch',
        hint: 'Send Parse, Bind, Execute and Sync together: another connection may have replaced the unnamed statement.',
      }
    case 'function_call':
      return notSupported('the function call message', 'Call the function in a SELECT.')
    default:
      return undefined
  }
}

/** The first statement of a SQL text that would outlive its transaction in the session. */
export function refusedStatement(sql: string): Refusal | undefined {
  for (const words of statementsOf(sql)) {
    const refusal = refusedByFirstWord(words) ?? refusedByCall(words)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

function refusedByFirstWord(words: readonly string[]): Refusal | undefined {
  const [first, second] = words
  switch (first) {
    case 'set':
      if (second === 'local' || second === 'transaction' || second === 'constraints') return undefined
      return notSupported('a session SET', 'Use SET LOCAL inside a transaction, or give the setting when the database is opened.')
    case 'reset':
    case 'discard':
      return notSupported(first.toUpperCase(), 'Settings are made with SET LOCAL and end with their transaction.')
    case 'prepare':
      return second === 'transaction' ? undefined : notSupported('PREPARE', 'Send the statement with its parameters each time.')
    case 'execute':
    case 'deallocate':
      return notSupported(first.toUpperCase(), 'Send the statement with its parameters each time.')
    case 'listen':
    case 'unlisten':
      return notSupported(first.toUpperCase(), 'In the light tier one process holds everything: tell it directly.')
    case 'load':
      return notSupported('LOAD', 'Name the extension when the database is opened.')
    case 'copy':
      return words.includes('stdin') ? notSupported('COPY FROM STDIN', 'Insert rows with unnest() over array parameters.') : undefined
    case 'declare':
      return hasPair(words, 'with', 'hold')
        ? notSupported('a cursor WITH HOLD', 'Read the cursor inside the transaction that declares it.')
        : undefined
    case 'create':
      return createsTemporary(words) && !(hasPair(words, 'on', 'commit') && words.at(-1) === 'drop') ? temporaryObject() : undefined
    case 'select':
    case 'with':
      return hasPair(words, 'into', 'temp') || hasPair(words, 'into', 'temporary') ? temporaryObject() : undefined
    default:
      return undefined
  }
}

function refusedByCall(words: readonly string[]): Refusal | undefined {
  for (const [at, word] of words.entries()) {
    if (words[at + 1] !== '(') continue
    if (/^pg_(?:try_)?advisory_(?:un)?lock/.test(word)) {
      return notSupported(`${word}()`, 'All connections share one session, so it would exclude nobody: use pg_advisory_xact_lock().')
    }
    if (word === 'set_config' && lastArgument(words, at + 1) !== 'true') {
      return notSupported('set_config() for the session', 'Give the literal true as its third argument, inside a transaction.')
    }
  }
  return undefined
}

/** The last word before the parenthesis that closes the one at `open`. */
function lastArgument(words: readonly string[], open: number): string | undefined {
  let depth = 0
  for (let at = open; at < words.length; at++) {
    if (words[at] === '(') depth++
    if (words[at] === ')' && --depth === 0) return words[at - 1]
  }
  return undefined
}

const WORDS_BEFORE_KIND = new Set(['create', 'or', 'replace', 'global', 'local'])

function createsTemporary(words: readonly string[]): boolean {
  const kind = words.find((word) => !WORDS_BEFORE_KIND.has(word))
  return kind === 'temp' || kind === 'temporary'
}

function hasPair(words: readonly string[], first: string, second: string): boolean {
  return words.some((word, at) => word === first && words[at + 1] === second)
}

function namedStatement(name: string): Refusal {
  return notSupported(`the named statement "${name.slice(0, 60)}"`, 'Send the statement unnamed, with its parameters, each time.')
}

function temporaryObject(): Refusal {
  return notSupported('a temporary object', 'Create a temporary table with ON COMMIT DROP, inside a transaction.')
}

function notSupported(what: string, hint: string): Refusal {
  return { code: FEATURE_NOT_SUPPORTED, message: `${what} is not supported in the light tier`, hint }
}

/**
 * The SQL that makes the backend itself raise a refusal, so that an open transaction fails as it would on any Postgres and the
 * ReadyForQuery that follows tells the truth.
 */
export function raiseSql(refusal: Refusal): string {
  const fields = [`ERRCODE = ${literal(refusal.code)}`, `MESSAGE = ${literal(refusal.message)}`, `HINT = ${literal(refusal.hint)}`]
  return `DO LANGUAGE plpgsql ${literal(`BEGIN RAISE EXCEPTION USING ${fields.join(', ')}; END`)}`
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
