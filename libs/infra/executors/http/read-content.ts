import { htmlToText } from './html-text.ts'

/** A body as text for a model; null where its type is none that can be shown. */
export type ReadContent = { mediaType: 'text/plain' | 'application/json'; text: string }

const textTypes = /^(text\/(?!html)[a-z0-9.+-]+|application\/(xml|yaml|x-yaml|csv|javascript|[a-z0-9.+-]+\+xml|x-ndjson))$/
const jsonTypes = /^application\/(json|[a-z0-9.+-]+\+json)$/

/**
 * Routes a body by its content type: JSON as it is, text as it is, HTML reduced to what it says. Everything else, and whatever is packed
 * or in a charset that is not known, answers null.
 */
export function readContent(parts: {
  bytes: Uint8Array
  contentType: string | undefined
  contentEncoding: string | undefined
}): ReadContent | null {
  const { bytes, contentType, contentEncoding } = parts
  if (bytes.byteLength === 0) return { mediaType: 'text/plain', text: '' }
  if (contentEncoding !== undefined && contentEncoding.trim().toLowerCase() !== 'identity') return null
  const [type = '', ...parameters] = (contentType ?? '')
    .toLowerCase()
    .split(';')
    .map((piece) => piece.trim())
  const isJson = jsonTypes.test(type)
  const isHtml = type === 'text/html' || type === 'application/xhtml+xml'
  if (!isJson && !isHtml && !textTypes.test(type)) return null
  const charset =
    parameters
      .find((parameter) => parameter.startsWith('charset='))
      ?.slice('charset='.length)
      .replaceAll('"', '') ?? 'utf-8'
  const text = decode(bytes, charset)
  if (text === null) return null
  if (isHtml) return { mediaType: 'text/plain', text: htmlToText(text) }
  return { mediaType: isJson && isJsonText(text) ? 'application/json' : 'text/plain', text }
}

function decode(bytes: Uint8Array, charset: string): string | null {
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return null // a charset that this platform does not know is exactly what null says
  }
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false // JSON by its label alone
  }
}
