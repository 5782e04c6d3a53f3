import type { Client, Transport } from '@modelcontextprotocol/client'
import type { AddressGuard } from '../http/address-guard.ts'
import { guardedFetch, MCP_ANSWER_MAX_BYTES } from './guarded-fetch.ts'
import type { ListedTool } from './offer.ts'

/** A server that the operator lets be started here: trusted code, in a process of its own (decision 36). */
export type StdioServer = { command: string; args: readonly string[]; env: Readonly<Record<string, string>>; cwd: string | null }

export type McpPlace =
  { type: 'http'; url: string; headers: Readonly<Record<string, string>>; guard: AddressGuard } | { type: 'stdio'; server: StdioServer }

/** Time for everything that one call does, in ms. */
export const MCP_TIME_LIMIT_MS = 60_000
/** Pages of a list of tools, and messages within one call: what goes beyond is no honest server. */
const MAX_PAGES = 16
const MAX_MESSAGES = 5_000
/** Messages between two calls: nothing is asked then, so that there is little to say. */
const MAX_IDLE_MESSAGES = 256
/** Time for telling a server that its session is over, in ms. */
const FAREWELL_MS = 2_000

/** Checks nothing: what a server says of its results binds nobody, and its schemas are not compiled here. */
const believesNothing = {
  getValidator: () => (input: unknown) => ({ valid: true as const, data: input as never, errorMessage: undefined }),
}

export type McpSession = {
  listTools(): Promise<ListedTool[]>
  callTool(name: string, args: Record<string, unknown>): Promise<McpResult>
}

/** A result as the protocol has it, read with care. */
export type McpResult = { isError: boolean; content: readonly unknown[]; structured: unknown }

/** What one use of a session may take; the signal is to abort when the time is over as well. */
export type McpLimits = { signal: AbortSignal; timeLimitMs: number }

/** The server sent more messages than any honest one does. */
export class TooManyMessagesError extends Error {
  override readonly name = 'TooManyMessagesError'
}

/**
 * Connects, does the work and lets go: one session for one thing, for what no run goes on with. Rejects with whatever the connection, the
 * protocol or the work rejects with.
 */
export async function withMcpSession<Result>(
  place: McpPlace,
  { version, signal, timeLimitMs }: McpLimits & { version: string },
  work: (session: McpSession) => Promise<Result>,
): Promise<Result> {
  const limits = { signal: AbortSignal.any([signal, AbortSignal.timeout(timeLimitMs)]), timeLimitMs }
  const connection = await McpConnection.open(place, { version, limits })
  try {
    return await connection.during(limits, work)
  } finally {
    await connection.close()
  }
}

/**
 * An open session with a server, used for one thing at a time; limits hold for each use by itself. The client offers the server nothing (no
 * sampling, no elicitation, no roots), and listens to nothing between two uses: a server that talks all the same is let go of.
 */
export class McpConnection {
  readonly #client: Client
  readonly #link: Link
  /** What the requests of now end with; aborted between two uses. */
  #signal = AbortSignal.abort()
  #isUsed = false
  #messages = 0
  #closing: Promise<void> | undefined

  private constructor(client: Client, link: (signal: () => AbortSignal) => Link) {
    this.#client = client
    this.#link = link(() => this.#signal)
  }

  /** Connects, within the limits of the one who needs it first. Where that fails nothing stays open. */
  static async open(place: McpPlace, { version, limits }: { version: string; limits: McpLimits }): Promise<McpConnection> {
    // Loaded when the first server is asked: most instances have none, and start sooner.
    const { Client } = await import('@modelcontextprotocol/client')
    const client = new Client(
      { name: 'lingtai', version },
      { capabilities: {}, jsonSchemaValidator: believesNothing, listMaxPages: MAX_PAGES },
    )
    const connection = new McpConnection(client, await linkTo(place))
    try {
      await connection.#within(limits, () => client.connect(connection.#link.transport, requestOf(limits)))
      connection.#boundMessages()
    } catch (error) {
      await connection.close()
      throw error
    }
    return connection
  }

  /** False once the server is gone or was let go of. That it is true promises nothing. */
  get isOpen(): boolean {
    return this.#client.transport !== undefined && !this.#link.isClosing()
  }

  /** Rejects with whatever the connection, the protocol or the work rejects with. */
  during<Result>(limits: McpLimits, work: (session: McpSession) => Promise<Result>): Promise<Result> {
    const request = requestOf(limits)
    return this.#within(limits, () =>
      work({
        listTools: async () => (await this.#client.listTools(undefined, { ...request, cacheMode: 'bypass' })).tools,
        callTool: async (name, args) => {
          const result = await this.#client.callTool({ name, arguments: args }, request)
          return { isError: result.isError === true, content: result.content, structured: result.structuredContent }
        },
      }),
    )
  }

  /** Says goodbye and ends the server's process, by force where it does not end by itself; later calls wait for the first. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.isOpen) {
      this.#signal = AbortSignal.timeout(FAREWELL_MS)
      // A server that cannot be told any more forgets the session by itself.
      await this.#link.farewell().catch(() => undefined)
    }
    await this.#client.close()
    await this.#link.transport.close()
  }

  async #within<Result>({ signal }: McpLimits, work: () => Promise<Result>): Promise<Result> {
    const over = new AbortController()
    this.#signal = AbortSignal.any([signal, over.signal])
    this.#messages = 0
    this.#isUsed = true
    try {
      return await work()
    } finally {
      this.#isUsed = false
      this.#messages = 0
      // A stream that the server keeps open after its answer is not read on.
      over.abort()
    }
  }

  /** Closes the connection of a server that talks without end. */
  #boundMessages(): void {
    const { transport } = this.#link
    const { onmessage: deliver, onerror: report } = transport
    const mayGoOn = (): boolean => {
      const most = this.#isUsed ? MAX_MESSAGES : MAX_IDLE_MESSAGES
      if (++this.#messages <= most) return true
      report?.(new TooManyMessagesError(`more than ${most} messages`))
      void transport.close()
      return false
    }
    const counted: Pick<Transport, 'onmessage' | 'onerror'> = {
      onmessage: (message, extra) => {
        if (mayGoOn()) deliver?.(message, extra)
      },
      // What is no message at all is counted where nothing was asked.
      onerror: (error) => {
        if (this.#isUsed || mayGoOn()) report?.(error)
      },
    }
    Object.assign(transport, counted)
  }
}

type Link = { transport: Transport; farewell(): Promise<void>; isClosing(): boolean }

function requestOf({ signal, timeLimitMs }: McpLimits) {
  return { signal, timeout: timeLimitMs, maxTotalTimeout: timeLimitMs }
}

async function linkTo(place: McpPlace): Promise<(signal: () => AbortSignal) => Link> {
  if (place.type === 'http') {
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
    return (signal) => {
      const transport = new StreamableHTTPClientTransport(place.guard.read(place.url), {
        requestInit: { headers: { ...place.headers } },
        fetch: guardedFetch(place.guard, signal),
        reconnectionOptions: {
          maxRetries: 0,
          initialReconnectionDelay: 1_000,
          maxReconnectionDelay: 1_000,
          reconnectionDelayGrowFactor: 1,
        },
      })
      return closedOnce(transport, () => transport.terminateSession())
    }
  }
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio')
  const { command, args, env, cwd } = place.server
  const parameters = {
    command,
    args: [...args],
    env: { ...env },
    stderr: 'ignore' as const,
    maxBufferSize: MCP_ANSWER_MAX_BYTES,
    ...(cwd === null ? {} : { cwd }),
  }
  return () => closedOnce(new StdioClientTransport(parameters), async () => undefined)
}

/**
 * A transport closes itself too (an answer that is too large, a handshake that fails), and then tells whoever closes it again that it is done
 * while its process still ends. So all share the first closing.
 */
function closedOnce(transport: Transport, farewell: () => Promise<void>): Link {
  const close = transport.close.bind(transport)
  let closing: Promise<void> | undefined
  transport.close = () => (closing ??= close())
  return { transport, farewell, isClosing: () => closing !== undefined }
}
