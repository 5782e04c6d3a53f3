import type { IncomingMessage } from 'node:http'
import { LingtaiError } from '#contracts'
import { cleanJson } from './clean-input.ts'

/** JSON bodies in bytes, where a route says nothing else. */
export const JSON_BODY_LIMIT = 1024 * 1024

const JSON_TYPES = ['application/json']

/** Reads a JSON body and cleans it. An empty body is `{}`, so that what is missing is told field by field. */
export async function readJson(request: IncomingMessage, limit: number): Promise<{ bytes: Buffer; value: unknown }> {
  const bytes = await readBytes(request, { limit, types: JSON_TYPES })
  if (bytes.byteLength === 0) return { bytes, value: {} }
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    const message = error instanceof SyntaxError ? 'is not well-formed JSON' : 'is not UTF-8'
    throw new LingtaiError('malformed_body', undefined, { errors: [{ path: 'body', message }], cause: error })
  }
  return { bytes, value: cleanJson(value) }
}

/**
 * Reads a whole body up to `limit` bytes. A type that is not among `types` is refused unless there is no body at all.
 * Throws unsupported_media_type, payload_too_large, malformed_body (the client went away).
 */
export async function readBytes(request: IncomingMessage, { limit, types }: { limit: number; types: readonly string[] }): Promise<Buffer> {
  const length = request.headers['content-length']
  const isEmpty = length === '0' || (length === undefined && request.headers['transfer-encoding'] === undefined)
  if (isEmpty) return Buffer.alloc(0)
  checkType(request, types)
  if (Number(length) > limit) throw tooLarge(limit)
  const pieces: Buffer[] = []
  let size = 0
  try {
    for await (const piece of request.iterator({ destroyOnReturn: false })) {
      const bytes = piece as Buffer
      size += bytes.byteLength
      if (size > limit) throw tooLarge(limit)
      pieces.push(bytes)
    }
  } catch (error) {
    if (error instanceof LingtaiError) throw error
    throw new LingtaiError('malformed_body', 'The body ended early.', { errors: [{ path: 'body', message: 'ended early' }], cause: error })
  }
  return Buffer.concat(pieces, size)
}

function tooLarge(limit: number): LingtaiError {
  const message = `must be at most ${limit} bytes`
  return new LingtaiError('payload_too_large', `The body ${message}.`, { errors: [{ path: 'body', message }] })
}

function checkType(request: IncomingMessage, types: readonly string[]): void {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    refuseType('headers.content-encoding', 'must be absent: send the body as it is')
  }
  const [type = '', ...parameters] = (request.headers['content-type'] ?? '').split(';').map((part) => part.trim().toLowerCase())
  if (!types.includes(type)) refuseType('headers.content-type', `must be ${types.join(' or ')}`)
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '')
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8') refuseType('headers.content-type', 'must be in UTF-8')
}

function refuseType(path: string, message: string): never {
  throw new LingtaiError('unsupported_media_type', undefined, { errors: [{ path, message }] })
}
