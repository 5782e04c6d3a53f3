import type { IncomingMessage } from 'node:http'
import { LingtaiError } from '#contracts'

/**
 * Refuses a mutation by cookie that does not come from this server's own page (decision 33). Browsers send `Origin` with every mutation;
 * whoever sends a cookie without one is told to use a token. Throws origin_refused.
 */
export function checkOrigin(request: IncomingMessage): void {
  const { origin, host } = request.headers
  if (origin === undefined) refuse('is missing: send the address of this server, or use a bearer token')
  if (!URL.canParse(origin) || new URL(origin).host !== host?.toLowerCase()) refuse('is not the address of this server')
}

/** The same for a mutation without credentials, where only a browser sends `Origin` at all. */
export function checkOriginIfAny(request: IncomingMessage): void {
  if (request.headers.origin !== undefined) checkOrigin(request)
}

function refuse(message: string): never {
  throw new LingtaiError('origin_refused', undefined, { errors: [{ path: 'headers.origin', message }] })
}
