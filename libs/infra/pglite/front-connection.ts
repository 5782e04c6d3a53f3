/** One client of the socket front: its bytes in, its batches out, its answers back. */
import type { Socket } from 'node:net'
import { type ClientItem, ClientStream, ENCRYPTION_REFUSED, fatalError, ProtocolViolationError } from './wire-protocol.ts'

const PROTOCOL_VIOLATION = '08P01'
const FEATURE_NOT_SUPPORTED = '0A000'

/** Startup parameters that change nothing in the session; `client_encoding` only as UTF8. */
const HARMLESS_PARAMETERS = new Set(['user', 'database', 'application_name', 'fallback_application_name', 'client_encoding'])

export interface ConnectionEvents {
  /** A whole batch has come. */
  onBatch: (connection: FrontConnection, batch: Uint8Array) => void
  /** The connection is gone, whoever ended it. Called once. */
  onClosed: (connection: FrontConnection) => void
}

export class FrontConnection {
  readonly #socket: Socket
  readonly #greeting: Buffer
  readonly #events: ConnectionEvents
  readonly #stream = new ClientStream()
  #closed = false

  constructor({ socket, greeting, events }: { socket: Socket; greeting: Buffer; events: ConnectionEvents }) {
    this.#socket = socket
    this.#greeting = greeting
    this.#events = events
    socket.on('data', (chunk) => this.#receive(chunk))
    // A client that dies resets its socket; what matters of it is the close event that follows.
    socket.on('error', () => this.#finish())
    socket.on('close', () => this.#finish())
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Gathers the answers of one batch into one write. `bytes` are copied: the backend reuses their memory. */
  async answer(run: (write: (bytes: Uint8Array) => void) => Promise<void>): Promise<void> {
    this.#socket.cork()
    try {
      await run((bytes) => {
        if (!this.#closed) this.#socket.write(Buffer.from(bytes))
      })
    } finally {
      this.#socket.uncork()
    }
  }

  /** Ends the connection, telling the client why. `code` is a SQLSTATE. */
  refuse(code: string, message: string): void {
    if (this.#closed) return
    this.#socket.end(fatalError(code, message))
    this.#finish()
  }

  /** Cuts the connection without a word. */
  destroy(): void {
    this.#socket.destroy()
    this.#finish()
  }

  #receive(chunk: Buffer): void {
    if (this.#closed) return
    try {
      for (const item of this.#stream.push(chunk)) this.#handle(item)
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error
      this.refuse(PROTOCOL_VIOLATION, error.message)
    }
  }

  #handle(item: ClientItem): void {
    switch (item.kind) {
      case 'encryption_request':
        this.#socket.write(ENCRYPTION_REFUSED)
        return
      case 'startup':
        this.#greet(item)
        return
      case 'batch':
        this.#events.onBatch(this, item.bytes)
        return
      case 'cancel_request': // The backend cannot be interrupted (decision 4).
      case 'terminate':
        this.#socket.end()
        this.#finish()
    }
  }

  #greet({ protocolMajor, parameters }: { protocolMajor: number; parameters: Map<string, string> }): void {
    if (protocolMajor !== 3) return this.refuse(FEATURE_NOT_SUPPORTED, `protocol version ${protocolMajor} is not supported`)
    for (const [name, value] of parameters) {
      const encoding = name === 'client_encoding' && !/^['"]?utf-?8['"]?$/i.test(value)
      if (encoding || !HARMLESS_PARAMETERS.has(name)) {
        const message = `the session setting ${name} is not supported in the light tier: all connections share one session`
        return this.refuse(FEATURE_NOT_SUPPORTED, message)
      }
    }
    this.#socket.write(this.#greeting)
  }

  #finish(): void {
    if (this.#closed) return
    this.#closed = true
    this.#events.onClosed(this)
  }
}
