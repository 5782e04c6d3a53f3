import { isIP } from 'node:net'
import { isLoopback } from '#infra/config/config'
import type { Bind } from '#infra/config/config'

/**
 * Whether a `Host` header names this server (decision 33). A web site that lets its name resolve to our address ("DNS rebinding") sends
 * its own name here; an address cannot be rebound, so addresses count where others than this machine can connect at all.
 */
export function isKnownHost(header: string | undefined, bind: Bind): boolean {
  const match = /^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::\d{1,5})?$/i.exec(header ?? '')
  const host = match?.[1]
    ?.toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
  if (host === undefined || host === '') return false
  return isLoopback(host) || bind.hosts.includes(host) || (bind.beyondLoopback && isIP(host) !== 0)
}
