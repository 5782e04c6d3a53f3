import { setTimeout as delay } from 'node:timers/promises'
import type { Transport } from '@modelcontextprotocol/client'
import type { AddressGuard } from '../http/address-guard.ts'
import { guardedFetch, MCP_ANSWER_MAX_BYTES } from './guarded-fetch.ts'
import type { ListedTool } from './offer.ts'

/** A server that the operator lets be started here: trusted code, in a process of its own (decision 36). */
export type StdioServer = { command: string; args: readonly string[]; env: Readonly<Record<string, string>>; cwd: string | null }

export type McpPlace =
  { type: 'http'; url: string; headers: Readonly<Record<string, string>>; guard: AddressGuard } | { type: 'stdio'; server: StdioServer }

/** Time for everything that one session does, in ms. */
export const MCP_TIME_LIMIT_MS = 60_000
/** Pages of a list of tools, and messages of a session: what goes beyond is no honest server. */
const MAX_PAGES = 16
const MAX_MESSAGES = 5_000
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

/** The server sent more messages than any honest one does. */
export class TooManyMessagesError extends Error {
  override readonly name = 'TooManyMessagesError'
}

/**
 * Connects, does the work and lets go: one session for one thing, so that nothing a server says lingers. The client offers the server
 * nothing (no sampling, no elicitation, no roots). Rejects with whatever the connection, the protocol or the work rejects with.
 */
export async function withMcpSession<Result>(
  place: McpPlace,
  options: { version: string; signal: AbortSignal; timeLimitMs: number },
  work: (session: McpSession) => Promise<Result>,
): Promise<Result> {
  const limited = AbortSignal.any([options.signal, AbortSignal.timeout(options.timeLimitMs)])
  // Loaded when the first server is asked: most instances have none, and start sooner.
  const { Client } = await import('@modelcontextprotocol/client')
  const { transport, farewell } = await transportTo(place, limited)
  const client = new Client(
    { name: 'lingtai', version: options.version },
    { capabilities: {}, jsonSchemaValidator: believesNothing, listMaxPages: MAX_PAGES },
  )
  const request = { signal: limited, timeout: options.timeLimitMs, maxTotalTimeout: options.timeLimitMs }
  try {
    await client.connect(transport, request)
    boundMessages(transport)
    return await work({
      listTools: async () => (await client.listTools(undefined, { ...request, cacheMode: 'bypass' })).tools,
      callTool: async (name, args) => {
        const result = await client.callTool({ name, arguments: args }, request)
        return { isError: result.isError === true, content: result.content, structured: result.structuredContent }
      },
    })
  } finally {
    // A server that cannot be told any more forgets the session by itself.
    await Promise.race([farewell().catch(() => undefined), delay(FAREWELL_MS, undefined, { ref: false })])
    await client.close()
  }
}

async function transportTo(place: McpPlace, signal: AbortSignal): Promise<{ transport: Transport; farewell(): Promise<void> }> {
  if (place.type === 'http') {
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
    const transport = new StreamableHTTPClientTransport(place.guard.read(place.url), {
      requestInit: { headers: { ...place.headers } },
      fetch: guardedFetch(place.guard, signal),
      reconnectionOptions: { maxRetries: 0, initialReconnectionDelay: 1_000, maxReconnectionDelay: 1_000, reconnectionDelayGrowFactor: 1 },
    })
    return { transport, farewell: () => transport.terminateSession() }
  }
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio')
  const { command, args, env, cwd } = place.server
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    env: { ...env },
    stderr: 'ignore',
    maxBufferSize: MCP_ANSWER_MAX_BYTES,
    ...(cwd === null ? {} : { cwd }),
  })
  return { transport, farewell: async () => undefined }
}

/** Closes the connection of a server that talks without end. */
function boundMessages(transport: Transport): void {
  const deliver = transport.onmessage
  let messages = 0
  const counted: Transport['onmessage'] = (message, extra) => {
    if (++messages <= MAX_MESSAGES) return deliver?.(message, extra)
    transport.onerror?.(new TooManyMessagesError(`more than ${MAX_MESSAGES} messages`))
    void transport.close()
  }
  Object.assign(transport, { onmessage: counted })
}
