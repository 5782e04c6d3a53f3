import type { McpResult } from './mcp-session.ts'

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** A result as text: texts as they are, everything else by what it is. */
export function readResult({ content, structured }: McpResult): string {
  const texts = content.map(textOf).filter((text) => text !== '')
  if (texts.length === 0 && structured !== undefined) return JSON.stringify(structured)
  return texts.join('\n')
}

function textOf(part: unknown): string {
  if (!isObject(part)) return ''
  const { type, text, mimeType, resource, uri, data } = part
  if (type === 'text' && typeof text === 'string') return text
  if (type === 'resource' && isObject(resource)) {
    return typeof resource['text'] === 'string'
      ? resource['text']
      : `(${wordOf(resource['mimeType'], 'bytes')} at ${wordOf(resource['uri'], 'nowhere')}, not read)`
  }
  if (type === 'resource_link') return `(see ${wordOf(uri, 'nowhere')})`
  return `(${wordOf(mimeType, wordOf(type, 'something'))}${typeof data === 'string' ? `, ${data.length} characters` : ''}, not read)`
}

function wordOf(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
}
