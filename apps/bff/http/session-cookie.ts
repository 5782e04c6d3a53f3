import type { IncomingMessage } from 'node:http'

/** The cookie carries the port in its name, since browsers share cookies between the ports of a host (decision 33). */
function cookieName(request: IncomingMessage): string {
  return `lingtai_session_${request.socket.localPort ?? 0}`
}

/** The session secret that the request's cookie holds, if any. */
export function sessionSecretOf(request: IncomingMessage): string | null {
  const prefix = `${cookieName(request)}=`
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const text = pair.trim()
    if (text.startsWith(prefix)) return text.slice(prefix.length)
  }
  return null
}

/** `Set-Cookie` for a fresh session. */
export function sessionCookie(request: IncomingMessage, session: { secret: string; maxAgeSeconds: number }): string {
  return `${cookieName(request)}=${session.secret}; Path=/; Max-Age=${session.maxAgeSeconds}; HttpOnly; SameSite=Strict`
}

/** `Set-Cookie` that takes it away. */
export function endedSessionCookie(request: IncomingMessage): string {
  return sessionCookie(request, { secret: '', maxAgeSeconds: 0 })
}
