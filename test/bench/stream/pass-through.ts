/** Bytes from the upstream to whoever asks and nothing else: the least that a process between the two can cost. Prints its port. */
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

const upstream = new URL(process.argv[2] ?? '')
const agent = new Agent({ keepAlive: true })
const server = createServer((incoming, outgoing) => {
  const onward = request(
    new URL(incoming.url ?? '/', upstream),
    { method: incoming.method, headers: incoming.headers, agent },
    (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    },
  )
  onward.on('error', () => outgoing.destroy())
  incoming.pipe(onward)
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`))
process.on('SIGTERM', () => process.exit(0))
