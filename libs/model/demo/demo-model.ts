import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerChat, DEMO_MODEL_NAME, listModels, RequestProblem } from './answer-chat.ts'
import { answerEmbeddings } from './answer-embeddings.ts'

export type DemoModel = {
  /** With its `/v1`. */
  baseUrl: string
  /** Cuts what is still running. */
  close(): Promise<void>
}

const MAX_BODY_BYTES = 8 * 1024 * 1024

const sendJson = (response: ServerResponse, status: number, value: unknown): void => {
  const body = JSON.stringify(value)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body)
}

const sendProblem = (response: ServerResponse, problem: RequestProblem): void =>
  sendJson(response, problem.status, {
    error: { message: problem.message, type: 'invalid_request_error', param: null, code: problem.code },
  })

const readJson = async (request: IncomingMessage): Promise<unknown> => {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > MAX_BODY_BYTES) throw new RequestProblem(413, 'body_too_large', `The body passes ${MAX_BODY_BYTES} bytes`)
    pieces.push(piece)
  }
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'))
  } catch {
    throw new RequestProblem(400, 'invalid_json', 'The body is not JSON')
  }
}

const route = async (request: IncomingMessage, response: ServerResponse, tokenDelayMs: number): Promise<void> => {
  const path = (request.url ?? '').split('?')[0] ?? ''
  const method = request.method ?? ''
  if (path === '/v1/models') {
    if (method !== 'GET') throw new RequestProblem(405, 'method_not_allowed', 'Use GET')
    return sendJson(response, 200, listModels())
  }
  if (path !== '/v1/chat/completions' && path !== '/v1/embeddings') throw new RequestProblem(404, 'not_found', `There is no ${path} here`)
  if (method !== 'POST') throw new RequestProblem(405, 'method_not_allowed', 'Use POST')
  const body = await readJson(request)
  if (path === '/v1/embeddings') return sendJson(response, 200, answerEmbeddings(body))
  await answerChat(body, { response, sendJson: (value) => sendJson(response, 200, value), tokenDelayMs })
}

/**
 * The demo model: an OpenAI-compatible server on a loopback port of its own, so that the same path is walked as to any other endpoint. It is
 * rules, no language model, and says so when asked. `tokenDelayMs`: between two pieces of a stream, about a word each.
 */
export const startDemoModel = async ({ tokenDelayMs = 15 }: { tokenDelayMs?: number } = {}): Promise<DemoModel> => {
  const server = createServer((request, response) => {
    route(request, response, tokenDelayMs).catch((error: unknown) => {
      const problem = error instanceof RequestProblem ? error : new RequestProblem(500, 'internal_error', 'The demo model failed')
      if (response.headersSent) response.destroy()
      else sendProblem(response, problem)
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    close: async () => {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

export { DEMO_MODEL_NAME }
