import type { Bind } from '#infra/config/config'

/** How people open a server that listens there: an address that stands for all of them is told as this machine. */
export function baseUrlOf({ address }: Bind, port: number): string {
  const host = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
