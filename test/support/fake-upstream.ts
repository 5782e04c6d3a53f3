import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** A door that a test opens: `await gate.opened` inside a script, `gate.open()` in the test. */
export type Gate = { opened: Promise<void>; open(): void }
export const createGate = (): Gate => {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}

/** One step of a scripted answer: bytes written at once, a gate to wait for, the socket cut off, or the answer left open for ever. */
export type FakeStep = string | Uint8Array | Gate | 'CUT' | 'HOLD'
export const CUT = 'CUT' as const
export const HOLD = 'HOLD' as const

/** An answer; the body ends after the last step unless that is CUT or HOLD. `beforeHeaders` delays the status line. */
export type FakeResponse = { status?: number; headers?: Record<string, string>; beforeHeaders?: Gate | 'CUT' | 'HOLD'; steps?: FakeStep[] }

export type FakeRequest = {
  method: string
  url: string
  headers: IncomingHttpHeaders
  bodyText: string
  /** Which connection carried it; the same number = the same socket. */
  connection: number
  /** The client gave the answer up before it ended. */
  isAbandoned: boolean
  /** Settles when the exchange is over: true where the client closed the connection before the answer ended. */
  closed: Promise<boolean>
}

export type FakeUpstream = {
  /** Ends in `/v1`, as OpenAI's does. */
  baseUrl: string
  port: number
  requests: FakeRequest[]
  /** Answers for the coming requests, one each, in order; a function sees the request. After the last one, 500 `script_empty`. */
  script(...responses: (FakeResponse | ((request: FakeRequest) => FakeResponse))[]): void
  /** Forgets answers that no request has come for. */
  unscript(): void
  /** The request number `index` (from 0), as soon as it has come. */
  request(index: number): Promise<FakeRequest>
  openConnections(): number
  close(): Promise<void>
}

/**
 * A provider on the loopback whose every byte and chunk boundary is scripted. With `answersJobs`, requests of jobs (those that want JSON
 * back) take none of the scripts and are not listed: each is told that there is nothing to remember. With `embeddings`, requests for those
 * take none either, and are answered by that. With `answers`, whatever is not scripted is answered by that.
 */
export const startFakeUpstream = async ({
  answersJobs = false,
  embeddings,
  answers,
}: {
  answersJobs?: boolean
  embeddings?: (request: FakeRequest) => Promise<FakeResponse>
  answers?: (request: FakeRequest) => FakeResponse
} = {}): Promise<FakeUpstream> => {
  const scripts: (FakeResponse | ((request: FakeRequest) => FakeResponse))[] = []
  const requests: FakeRequest[] = []
  const waiters: { index: number; resolve: (request: FakeRequest) => void }[] = []
  const connections = new Map<Socket, number>()
  let connectionCount = 0

  const server = createServer((incoming, outgoing) => {
    const socket = incoming.socket
    const pieces: Buffer[] = []
    incoming.on('data', (piece: Buffer) => pieces.push(piece))
    incoming.on('end', () => {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      const request: FakeRequest = {
        method: incoming.method ?? '',
        url: incoming.url ?? '',
        headers: incoming.headers,
        bodyText: Buffer.concat(pieces).toString('utf8'),
        connection: connections.get(socket) ?? -1,
        isAbandoned: false,
        closed: promise,
      }
      let cutByUs = false
      outgoing.on('close', () => {
        request.isAbandoned = !outgoing.writableFinished && !cutByUs
        resolve(request.isAbandoned)
      })
      const cut = (): void => {
        cutByUs = true
        socket.destroy()
      }
      if (answersJobs && request.bodyText.includes('"response_format"')) {
        void play({ steps: [textChunk('{"proposals":[]}'), finishChunk('stop'), usageChunk(1, 1), DONE] })
        return
      }
      if (embeddings && request.url.endsWith('/embeddings')) {
        void embeddings(request).then(play)
        return
      }
      requests.push(request)
      for (const waiter of waiters) if (waiter.index < requests.length) waiter.resolve(requests[waiter.index] ?? request)
      const script = scripts.shift() ??
        answers ?? { status: 500, steps: ['{"error":{"code":"script_empty","message":"no answer was scripted"}}'] }
      void play(typeof script === 'function' ? script(request) : script)

      async function play(response: FakeResponse): Promise<void> {
        if (response.beforeHeaders === 'HOLD') return
        if (response.beforeHeaders === 'CUT') return cut()
        await response.beforeHeaders?.opened
        outgoing.writeHead(response.status ?? 200, { 'content-type': 'text/event-stream', ...response.headers })
        outgoing.flushHeaders()
        for (const step of response.steps ?? []) {
          if (outgoing.destroyed) return
          if (step === 'HOLD') return
          if (step === 'CUT') return cut()
          if (typeof step === 'string' || step instanceof Uint8Array) {
            await new Promise<void>((done) => outgoing.write(step, () => done()))
          } else await step.opened
        }
        outgoing.end()
      }
    })
  })
  // Longer than any client keeps an idle connection, however busy the machine: only scripts cut connections.
  server.keepAliveTimeout = 120_000
  server.on('connection', (socket) => {
    connections.set(socket, connectionCount++)
    socket.setNoDelay(true)
    socket.on('close', () => connections.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    port,
    requests,
    script: (...responses) => void scripts.push(...responses),
    unscript: () => void scripts.splice(0),
    request: (index) =>
      new Promise((resolve) => {
        const present = requests[index]
        if (present !== undefined) resolve(present)
        else waiters.push({ index, resolve })
      }),
    openConnections: () => connections.size,
    close: async () => {
      for (const socket of connections.keys()) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

/** One SSE event with this JSON. */
export const sse = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
export const DONE = 'data: [DONE]\n\n'
/** A chunk with this delta. */
export const deltaChunk = (delta: Record<string, unknown>, finishReason: string | null = null): string =>
  sse({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finishReason }] })
export const textChunk = (content: string): string => deltaChunk({ content })
export const finishChunk = (finishReason = 'stop'): string => deltaChunk({}, finishReason)
/** The last chunk of a stream with usage: no choices (case T10). */
export const usageChunk = (promptTokens: number, completionTokens: number): string =>
  sse({
    id: 'c',
    object: 'chat.completion.chunk',
    choices: [],
    usage: { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens: promptTokens + completionTokens },
  })
