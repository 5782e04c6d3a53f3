import type { FieldError } from '#contracts'
import type { JsonObject, JsonValue } from '#kernel/ports/model-gateway'
import { membersOf } from './declare-http.ts'
import { readTemplate } from './url-template.ts'

/** An API's address without a slash at its end, and the field of the request that says so. */
export type ApiBase = { address: string; field: string }

export type OperationAddress = { address: string } | { refusal: 'server_elsewhere' | 'server_unusable' }

/** Where the API is: the owner's `base_url`, else the document's first server. Answers the fault of the field that has one. */
export function baseOf(document: JsonObject, baseUrl: string | undefined): ApiBase | FieldError {
  const rule = 'must be an http or https address without a query'
  if (baseUrl !== undefined) return baseAt(baseUrl, 'openapi.base_url') ?? { path: 'openapi.base_url', message: rule }
  const servers = document['servers'] ?? []
  if (!Array.isArray(servers)) return { path: 'openapi.document.servers', message: 'must be a list' }
  if (servers.length === 0) return { path: 'openapi.base_url', message: 'must be given: the document names no server' }
  const field = 'openapi.document.servers[0].url'
  return baseAt(membersOf(servers[0])['url'], field) ?? { path: field, message: `${rule}, where no base_url is given` }
}

function baseAt(address: JsonValue | undefined, field: string): ApiBase | null {
  const read = serverAddress(address)
  return read === null ? null : { address: read, field }
}

/** An address that stands for one place, without a slash at its end; null for any other. */
function serverAddress(text: JsonValue | undefined): string | null {
  if (typeof text !== 'string' || /[?#]/.test(text)) return null
  const template = readTemplate(text)
  return template && template.names.length === 0 ? text.replace(/\/+$/, '') : null
}

/**
 * Where one operation is, by the servers that it names itself, else by those of its path: the first that is the source's own, at its base or
 * below. The source's address was judged, and its headers are for it alone, so an operation of another server has no address here.
 */
export function operationAddress(base: string, given: readonly (JsonValue | undefined)[]): OperationAddress {
  const servers = given.find((list) => list !== undefined && !(Array.isArray(list) && list.length === 0))
  if (servers === undefined) return { address: base }
  const addresses = (Array.isArray(servers) ? servers : []).flatMap((server) => {
    const address = serverAddress(membersOf(server)['url'])
    return address === null ? [] : [plainAddress(address)]
  })
  if (addresses.length === 0) return { refusal: 'server_unusable' }
  const own = plainAddress(base)
  const address = addresses.find((each) => each === own || each.startsWith(`${own}/`))
  return address === undefined ? { refusal: 'server_elsewhere' } : { address }
}

/** One spelling of a host and its usual port. */
function plainAddress(address: string): string {
  const { origin, pathname } = new URL(address)
  return `${origin}${pathname}`.replace(/\/+$/, '')
}
