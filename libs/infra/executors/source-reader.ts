import { LingtaiError, TOOLS_PER_SOURCE } from '#contracts'
import type { CreateToolSource, FieldError, HttpSourceInput, McpSourceInput, OpenApiSourceInput } from '#contracts'
import type { DeclaredSource, OfferedTool, SourceReader, ToolSourceRow } from '#domains/tools/ports'
import { addressRefusalOf } from './http/address-guard.ts'
import type { AddressGuard, AddressRefusal } from './http/address-guard.ts'
import { declareHttpTool } from './http/declare-http.ts'
import type { HttpRemote } from './http/declare-http.ts'
import { importOpenApi } from './http/openapi.ts'
import { readTemplate } from './http/url-template.ts'
import { withMcpSession } from './mcp/mcp-session.ts'
import type { McpPlace, StdioServer } from './mcp/mcp-session.ts'
import { faultOf } from './mcp/mcp-target.ts'
import { offerTools } from './mcp/offer.ts'

/** Time for asking a server what it offers, in ms. */
const DISCOVERY_LIMIT_MS = 20_000

export type SourceReaderParts = {
  guard: AddressGuard
  /** Servers that the operator lets be started, by name. */
  servers: ReadonlyMap<string, StdioServer>
  version: string
}

/** Reads declarations of HTTP tools, OpenAPI documents and MCP servers. */
export class DeclarationReader implements SourceReader {
  readonly #parts: SourceReaderParts

  constructor(parts: SourceReaderParts) {
    this.#parts = parts
  }

  declare({ http, openapi, mcp }: CreateToolSource, { isAdmin }: { isAdmin: boolean }): DeclaredSource {
    if (http) return this.#http(http)
    if (openapi) return this.#openApi(openapi)
    if (mcp) return this.#mcp(mcp, isAdmin)
    throw refused({ path: 'http', message: 'exactly one of http, openapi and mcp must be given' })
  }

  async discover(source: ToolSourceRow, { headers, signal }: { headers: Readonly<Record<string, string>>; signal: AbortSignal }) {
    const place = placeOf(source, { headers, ...this.#parts })
    if (!place) {
      const errors = [{ path: 'mcp.server', message: 'is no longer listed' }]
      throw new LingtaiError('wrong_state', 'The operator no longer lists this server.', { errors })
    }
    try {
      const options = { version: this.#parts.version, signal, timeLimitMs: DISCOVERY_LIMIT_MS }
      return offerTools(await withMcpSession(place, options, (session) => session.listTools()), TOOLS_PER_SOURCE)
    } catch (error) {
      const refusal = addressRefusalOf(error)
      if (refusal !== null) throw refused(unreachable('mcp.url', refusal))
      const { code } = await faultOf(error, signal)
      const path = place.type === 'http' ? 'mcp.url' : 'mcp.server'
      throw new LingtaiError('remote_failed', `The server did not say what it offers: ${code}.`, {
        errors: [{ path, message: `did not answer as it should: ${code}` }],
        data: { code },
        cause: error,
      })
    }
  }

  #http({ tools, headers = {} }: HttpSourceInput): DeclaredSource {
    const offered: OfferedTool[] = []
    for (const [index, input] of tools.entries()) {
      const path = `http.tools[${index}]`
      const declared = declareHttpTool(input, path)
      if ('path' in declared) throw refused(declared)
      if (offered.some((other) => other.name === declared.name))
        throw refused({ path: `${path}.name`, message: 'is the name of an earlier one' })
      this.#checkAddress(input.url, `${path}.url`)
      if (input.look_up_url !== undefined) this.#checkAddress(input.look_up_url, `${path}.look_up_url`)
      offered.push(declared)
    }
    return { kind: 'http', settings: { place: originOf(offered) }, headers, offered, refused: [] }
  }

  #openApi(input: OpenApiSourceInput): DeclaredSource {
    const imported = importOpenApi(input)
    if ('path' in imported) throw refused(imported)
    const { base, offered, refused: left } = imported
    this.#checkAddress(base.address, base.field)
    if (offered.length === 0) {
      throw refused(
        ...left.map(({ name, code }) => ({
          path: `openapi.operations[${input.operations.indexOf(name)}]`,
          message: `cannot be used: ${code}`,
        })),
      )
    }
    return { kind: 'openapi', settings: { place: originOf(offered) }, headers: input.headers ?? {}, offered, refused: left }
  }

  #mcp({ url, server, headers = {} }: McpSourceInput, isAdmin: boolean): DeclaredSource {
    const nothing = { kind: 'mcp', headers, offered: [], refused: [] } as const
    if (server !== undefined) {
      if (!isAdmin || !this.#parts.servers.has(server))
        throw refused({ path: 'mcp.server', message: 'is no server that you may have started here' })
      if (Object.keys(headers).length > 0) throw refused({ path: 'mcp.headers', message: 'go to servers with an address alone' })
      return { ...nothing, settings: { place: server, server } }
    }
    const address = url ?? ''
    this.#checkAddress(address, 'mcp.url')
    return { ...nothing, settings: { place: new URL(address).origin, url: address } }
  }

  /** What can be said of an address without asking anybody; names are judged when they are resolved. */
  #checkAddress(address: string, path: string): void {
    const template = readTemplate(address)
    if (template?.chooses) return
    try {
      this.#parts.guard.read(address.replaceAll(/\{[^{}]*\}/g, 'x'))
    } catch (error) {
      const refusal = addressRefusalOf(error)
      if (refusal !== null) throw refused(unreachable(path, refusal))
      throw error
    }
  }
}

/** Where an MCP source is reached; null where the operator took its server off the list. */
export function placeOf(
  { settings }: Pick<ToolSourceRow, 'settings'>,
  parts: Pick<SourceReaderParts, 'guard' | 'servers'> & { headers: Readonly<Record<string, string>> },
): McpPlace | null {
  if (settings.url !== undefined) return { type: 'http', url: settings.url, headers: parts.headers, guard: parts.guard }
  const server = parts.servers.get(settings.server ?? '')
  return server ? { type: 'stdio', server } : null
}

function originOf(tools: readonly OfferedTool[]): string {
  const origins = new Set(tools.map((tool) => readTemplate((tool.declaration.remote as HttpRemote).url)?.origin ?? 'anywhere'))
  return [...origins].join(' ')
}

function unreachable(path: string, refusal: AddressRefusal): FieldError {
  return { path, message: `may not be reached: ${refusal}` }
}

function refused(...errors: FieldError[]): LingtaiError {
  return new LingtaiError('validation_failed', undefined, { errors })
}
