import { createHash } from 'node:crypto'
import type { JsonObject, JsonValue } from '#kernel/ports/model-gateway'
import type { HttpRemote } from './declare-http.ts'
import { fillTemplate, readTemplate } from './url-template.ts'

/** What goes over the wire for one call; null where the arguments make no address. */
export function buildRequest(
  remote: HttpRemote,
  { arguments: given, idempotencyKey }: { arguments: JsonObject; idempotencyKey: string },
): { url: URL; method: string; headers: Record<string, string>; body: Uint8Array | null } | null {
  const template = readTemplate(remote.url)
  const url = template && fillTemplate(template, given)
  if (!template || !url) return null
  const body: JsonObject = {}
  for (const [name, value] of Object.entries(given)) {
    if (template.names.includes(name)) continue
    const place = Object.hasOwn(remote.places, name) ? remote.places[name] : undefined
    if (place === 'query') for (const text of queryTexts(value)) url.searchParams.append(name, text)
    else if (place === 'body') body[name] = value
    // The schema let through what the declaration gives no place.
    else return null
  }
  const reads = remote.method === 'GET' || remote.method === 'HEAD'
  const hasBody = remote.whole_body === null ? Object.keys(body).length > 0 : Object.hasOwn(body, remote.whole_body)
  return {
    url,
    method: remote.method,
    headers: {
      ...(reads ? {} : { 'idempotency-key': headerKey(idempotencyKey) }),
      ...(hasBody ? { 'content-type': 'application/json' } : {}),
    },
    body: hasBody ? Buffer.from(JSON.stringify(remote.whole_body === null ? body : body[remote.whole_body])) : null,
  }
}

function queryTexts(value: JsonValue): string[] {
  if (value === null) return []
  if (Array.isArray(value)) return value.map((item) => (typeof item === 'string' ? item.toWellFormed() : JSON.stringify(item)))
  return [typeof value === 'string' ? value.toWellFormed() : JSON.stringify(value)]
}

/** A key as a header can carry it: itself, or its digest. */
function headerKey(key: string): string {
  return /^[!-~]{1,255}$/.test(key) ? key : createHash('sha256').update(key).digest('hex')
}
