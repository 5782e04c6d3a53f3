import type { Request, Response } from 'express'
import type { SentFile } from './route-shapes.ts'

/** Sets a file's headers; answers its bytes, or undefined where the client has it already (304). */
export function sendFile(request: Request, response: Response, { bytes, type, name, etag, policy }: SentFile): Uint8Array | undefined {
  response.setHeader('Content-Type', type)
  // Opened by itself, a file that a person uploaded runs nothing and reaches nothing.
  response.setHeader('Content-Security-Policy', policy ?? "default-src 'none'; sandbox")
  if (name !== undefined) response.setHeader('Content-Disposition', attachment(name))
  if (etag !== undefined) {
    const tag = `"${etag}"`
    response.setHeader('ETag', tag)
    response.setHeader('Cache-Control', 'private, no-cache')
    if (request.headers['if-none-match'] === tag) {
      response.status(304)
      return undefined
    }
  }
  response.setHeader('Content-Length', bytes.byteLength)
  return bytes
}

/** `Content-Disposition` for a name in any script (RFC 6266): a plain ASCII name for old readers, and the real one. */
export function attachment(name: string): string {
  const safe = name
    .toWellFormed()
    // What file systems refuse, and control characters.
    .replaceAll(/[\p{Cc}/\\:*?"<>|]/gu, '_')
    .slice(0, 150)
    .toWellFormed()
  const ascii = safe.replaceAll(/[^\u0020-\u007e]/g, '_')
  const encoded = encodeURIComponent(safe).replaceAll(/['()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`
}
