/**
 * A provider on the loopback in a process of its own: answers every chat completion with CHUNKS pieces at PER_SECOND of them a second. What
 * it says follows from the key in the last message, so that whoever asked can tell whether every piece arrived. Prints its port.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CHUNKS, keyOf, pieceOf, PIECE_MS } from './script.ts'

type Body = { messages: { role: string; content: string }[] }

const frame = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const chunk = (delta: Record<string, string>, finish: string | null): string =>
  frame({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'bench', choices: [{ index: 0, delta, finish_reason: finish }] })

const server = createServer((incoming, outgoing) => {
  const pieces: Buffer[] = []
  incoming.on('data', (piece: Buffer) => pieces.push(piece))
  incoming.on('end', () => {
    const { messages } = JSON.parse(Buffer.concat(pieces).toString('utf8')) as Body
    const key = keyOf(messages.findLast((message) => message.role === 'user')?.content ?? '')
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' })
    outgoing.flushHeaders()
    const start = performance.now()
    let sent = 0
    // Each piece has its time from the start, so that a late one does not make all after it late.
    const next = (): void => {
      if (outgoing.destroyed) return
      outgoing.write(chunk(sent === 0 ? { role: 'assistant', content: pieceOf(key, 0) } : { content: pieceOf(key, sent) }, null))
      sent += 1
      if (sent < CHUNKS) return plan()
      outgoing.write(chunk({}, 'stop'))
      outgoing.write(
        frame({
          id: 'c',
          object: 'chat.completion.chunk',
          choices: [],
          usage: { prompt_tokens: 100, completion_tokens: CHUNKS, total_tokens: 100 + CHUNKS },
        }),
      )
      outgoing.end('data: [DONE]\n\n')
    }
    const plan = (): void => {
      setTimeout(next, Math.max(0, start + (sent + 1) * PIECE_MS - performance.now()))
    }
    plan()
  })
})
server.keepAliveTimeout = 60_000
server.on('connection', (socket) => socket.setNoDelay(true))
server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`))
process.on('SIGTERM', () => process.exit(0))
