/** HTTP as no browser or fetch would send it: any header, any bytes. */
import { request } from 'node:http'
import { connect } from 'node:net'

export type RawAnswer = { status: number; headers: Record<string, string | string[] | undefined>; text: string }

/** One request with exactly these headers (Host included, where it is named). */
export function sendHttp(
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: options.method ?? 'GET', headers: options.headers ?? {}, agent: false }, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8')
      incoming.on('data', (piece: string) => (text += piece))
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text }))
    })
    outgoing.on('error', reject)
    outgoing.end(options.body)
  })
}

/** Sends bytes on a connection of their own and answers all that came back until the other side closed it. */
export function sendBytes(url: string, bytes: string | Uint8Array): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    socket.setEncoding('utf8')
    socket.on('data', (piece: string) => (text += piece))
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}
