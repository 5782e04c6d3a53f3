/** A service seen through a line that a test can cut, close and block, since the service itself is others' too. */
import { createConnection, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

export type TcpProxy = {
  port: number
  /** The service's URL by way of the proxy. */
  url: string
  /** Breaks every connection; new ones are let through. */
  cut(): void
  /** Breaks every connection and refuses new ones. */
  close(): Promise<void>
  /** Lets connections through again. */
  open(): Promise<void>
  /** Nothing passes in either direction, nothing is said; until `open` or `cut`. */
  block(): void
  /** `listener` is asked about each piece on its way to the service; false cuts the line before that piece passes. Null: nobody is asked. */
  watch(listener: (() => boolean) | null): void
  connections(): number
}

export async function startTcpProxy(serviceUrl: string): Promise<TcpProxy> {
  const service = new URL(serviceUrl)
  const pairs = new Set<[Socket, Socket]>()
  let blocked = false
  let watcher: (() => boolean) | null = null
  const server = createServer((near) => {
    const far = createConnection({ host: service.hostname, port: Number(service.port) })
    const pair: [Socket, Socket] = [near, far]
    pairs.add(pair)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.setNoDelay(true)
      from.on('data', (bytes) => {
        if (from === near && watcher && !watcher()) cut()
        else to.write(bytes)
      })
      from.on('error', () => to.destroy())
      from.on('close', () => {
        to.destroy()
        pairs.delete(pair)
      })
    }
    if (blocked) for (const socket of pair) socket.pause()
  })
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()))
  await listen(0)
  const { port } = server.address() as AddressInfo
  const url = new URL(serviceUrl)
  url.hostname = '127.0.0.1'
  url.port = String(port)

  const cut = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.destroy()
    blocked = false
  }
  return {
    port,
    url: url.href,
    cut,
    close: async () => {
      const closed = server.listening ? new Promise<void>((resolve) => server.close(() => resolve())) : undefined
      cut()
      await closed
    },
    open: async () => {
      blocked = false
      for (const pair of pairs) for (const socket of pair) socket.resume()
      if (!server.listening) await listen(port)
    },
    block: () => {
      blocked = true
      for (const pair of pairs) for (const socket of pair) socket.pause()
    },
    watch: (listener) => {
      watcher = listener
    },
    connections: () => pairs.size,
  }
}
