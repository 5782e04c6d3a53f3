/**
 * The parts of the Postgres wire protocol (version 3) that the light tier's socket front needs: cutting what a client sends into
 * startup packets and whole batches, reading the names and SQL inside a batch, and building the few answers the front gives itself.
 */

const MESSAGE = {
  bind: 0x42,
  close: 0x43,
  describe: 0x44,
  execute: 0x45,
  flush: 0x48,
  functionCall: 0x46,
  parse: 0x50,
  query: 0x51,
  sync: 0x53,
  terminate: 0x58,
} as const

/** First byte of a Describe or Close that is about a statement and not about a portal. */
const NAMES_A_STATEMENT = 0x53

/** First byte of an ErrorResponse. */
const ERROR_RESPONSE = 0x45

const SSL_REQUEST = 80877103
const GSS_REQUEST = 80877104
const CANCEL_REQUEST = 80877102

/** A message longer than this (bytes) is taken for garbage: statement parameters end at 1 MB (decision 7). */
const LONGEST_MESSAGE = 64 * 1024 * 1024

const INITIAL_CAPACITY = 16 * 1024
const KEPT_CAPACITY = 1024 * 1024

/** What a client sent, cut at the points where it waits for an answer. */
export type ClientItem =
  | { kind: 'startup'; protocolMajor: number; parameters: Map<string, string> }
  | { kind: 'encryption_request' }
  | { kind: 'cancel_request' }
  | { kind: 'batch'; bytes: Uint8Array }
  | { kind: 'terminate' }

/** The client sent bytes that are no Postgres message; its connection cannot go on. */
export class ProtocolViolationError extends Error {
  override readonly name = 'ProtocolViolationError'
}

/**
 * Cuts one client's byte stream into items. A batch reaches up to and including a Sync, a Query or a function call: everything that
 * the backend must see in one go, so that no other connection's messages come between a statement and its parameters (decision 1).
 */
export class ClientStream {
  #buffer = Buffer.allocUnsafe(INITIAL_CAPACITY)
  #batchStart = 0
  #scanned = 0
  #end = 0
  #greeted = false

  /** Takes a chunk and returns the items it completes, in order. Throws ProtocolViolationError. */
  push(chunk: Uint8Array): ClientItem[] {
    this.#append(chunk)
    const items: ClientItem[] = []
    for (let item = this.#next(); item !== undefined; item = this.#next()) items.push(item)
    this.#compact()
    return items
  }

  #append(chunk: Uint8Array): void {
    const needed = this.#end + chunk.length
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2))
      this.#buffer.copy(larger, 0, 0, this.#end)
      this.#buffer = larger
    }
    this.#buffer.set(chunk, this.#end)
    this.#end = needed
  }

  #next(): ClientItem | undefined {
    while (true) {
      const item = this.#greeted ? this.#nextMessage() : this.#nextStartup()
      if (item !== 'message_inside_a_batch') return item
    }
  }

  #nextStartup(): ClientItem | undefined {
    const available = this.#end - this.#scanned
    if (available < 8) return undefined
    const length = this.#lengthAt(this.#scanned, 8)
    if (available < length) return undefined
    const code = this.#buffer.readInt32BE(this.#scanned + 4)
    const body = this.#buffer.subarray(this.#scanned + 8, this.#scanned + length)
    this.#scanned += length
    this.#batchStart = this.#scanned
    if (code === SSL_REQUEST || code === GSS_REQUEST) return { kind: 'encryption_request' }
    if (code === CANCEL_REQUEST) return { kind: 'cancel_request' }
    this.#greeted = true
    return { kind: 'startup', protocolMajor: code >>> 16, parameters: startupParameters(body) }
  }

  #nextMessage(): ClientItem | undefined | 'message_inside_a_batch' {
    const available = this.#end - this.#scanned
    if (available < 5) return undefined
    const length = 1 + this.#lengthAt(this.#scanned + 1, 4)
    if (available < length) return undefined
    const type = this.#buffer[this.#scanned]
    this.#scanned += length
    switch (type) {
      case MESSAGE.query:
      case MESSAGE.sync:
      case MESSAGE.functionCall: {
        const bytes = new Uint8Array(this.#buffer.subarray(this.#batchStart, this.#scanned)) // a copy: the buffer is used again
        this.#batchStart = this.#scanned
        return { kind: 'batch', bytes }
      }
      case MESSAGE.terminate:
        this.#batchStart = this.#scanned
        return { kind: 'terminate' }
      case MESSAGE.parse:
      case MESSAGE.bind:
      case MESSAGE.describe:
      case MESSAGE.execute:
      case MESSAGE.close:
        return 'message_inside_a_batch'
      case MESSAGE.flush:
        // Its client waits for an answer in the middle of a batch.
        throw new ProtocolViolationError('Flush is not supported in the light tier: end each batch with Sync')
      default:
        throw new ProtocolViolationError(`message type ${type} is not supported in the light tier`)
    }
  }

  #lengthAt(offset: number, least: number): number {
    const length = this.#buffer.readInt32BE(offset)
    if (length < least || length > LONGEST_MESSAGE) throw new ProtocolViolationError(`message of ${length} bytes`)
    return length
  }

  /** Moves what is left to the front, and gives back the memory of an unusually large batch. */
  #compact(): void {
    if (this.#batchStart === 0) return
    const left = this.#end - this.#batchStart
    if (this.#buffer.length > KEPT_CAPACITY && left < INITIAL_CAPACITY) {
      const smaller = Buffer.allocUnsafe(INITIAL_CAPACITY)
      this.#buffer.copy(smaller, 0, this.#batchStart, this.#end)
      this.#buffer = smaller
    } else {
      this.#buffer.copyWithin(0, this.#batchStart, this.#end)
    }
    this.#scanned -= this.#batchStart
    this.#end = left
    this.#batchStart = 0
  }
}

/** One message inside a batch, with the fields the front looks at. */
export type BatchMessage =
  | { kind: 'parse'; statement: string; sql: string }
  | { kind: 'bind'; statement: string }
  | { kind: 'describe_statement'; statement: string }
  | { kind: 'close_statement'; statement: string }
  | { kind: 'query'; sql: string }
  | { kind: 'function_call' }
  | { kind: 'other' }

/** The messages of a whole batch, in order. */
export function* messagesOf(batch: Uint8Array): Generator<BatchMessage> {
  const buffer = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength)
  for (let at = 0; at < buffer.length;) {
    const body = at + 5
    yield readMessage(buffer, buffer[at], body)
    at += 1 + buffer.readInt32BE(at + 1)
  }
}

function readMessage(buffer: Buffer, type: number | undefined, body: number): BatchMessage {
  switch (type) {
    case MESSAGE.parse: {
      const statement = cString(buffer, body)
      return { kind: 'parse', statement: statement.text, sql: cString(buffer, statement.next).text }
    }
    case MESSAGE.bind:
      return { kind: 'bind', statement: cString(buffer, cString(buffer, body).next).text }
    case MESSAGE.describe:
    case MESSAGE.close: {
      if (buffer[body] !== NAMES_A_STATEMENT) return { kind: 'other' }
      const statement = cString(buffer, body + 1).text
      return type === MESSAGE.close ? { kind: 'close_statement', statement } : { kind: 'describe_statement', statement }
    }
    case MESSAGE.query:
      return { kind: 'query', sql: cString(buffer, body).text }
    case MESSAGE.functionCall:
      return { kind: 'function_call' }
    default:
      return { kind: 'other' }
  }
}

function cString(buffer: Buffer, from: number): { text: string; next: number } {
  const end = buffer.indexOf(0, from)
  if (end < 0) throw new ProtocolViolationError('a string without its end')
  return { text: buffer.toString('utf8', from, end), next: end + 1 }
}

function startupParameters(body: Buffer): Map<string, string> {
  const parameters = new Map<string, string>()
  for (let at = 0; at < body.length && body[at] !== 0;) {
    const name = cString(body, at)
    const value = cString(body, name.next)
    parameters.set(name.text, value.text)
    at = value.next
  }
  return parameters
}

/** The answer to a request for TLS or GSS: no, go on in the clear (the socket lies in a folder of mode 0700). */
export const ENCRYPTION_REFUSED = Buffer.from('N')

/** A simple query message. */
export function queryMessage(sql: string): Uint8Array {
  const text = Buffer.from(sql, 'utf8')
  const message = Buffer.alloc(1 + 4 + text.length + 1)
  message[0] = MESSAGE.query
  message.writeInt32BE(message.length - 1, 1)
  text.copy(message, 5)
  return message
}

/** A startup packet of protocol 3.0. */
export function startupMessage(parameters: Readonly<Record<string, string>>): Uint8Array {
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}\0${value}\0`)
  const body = Buffer.from(pairs.join('') + '\0', 'utf8')
  const message = Buffer.alloc(8 + body.length)
  message.writeInt32BE(message.length, 0)
  message.writeInt32BE(3 << 16, 4)
  body.copy(message, 8)
  return message
}

/** An ErrorResponse that ends the connection. `code` is a SQLSTATE. */
export function fatalError(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`, 'utf8')
  const response = Buffer.alloc(5 + fields.length)
  response[0] = ERROR_RESPONSE
  response.writeInt32BE(response.length - 1, 1)
  fields.copy(response, 5)
  return response
}
