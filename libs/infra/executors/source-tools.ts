import type { OfferedTool, SecretBox, SourceToolRow, ToolSourceRow, ToolSourceStore } from '#domains/tools/ports'
import { contractOfSource, isAccepted } from '#domains/tools/source-contract'
import { openHeaders } from '#domains/tools/source-headers'
import type { Clock } from '#kernel/ports/clock'
import type { EffectTarget, ToolCatalogue, ToolContract } from '#kernel/ports/effect-target'
import { sha256Hex } from '#kernel/record/chain'
import { constraintsOf } from './contract.ts'
import { HttpTarget } from './http/http-target.ts'
import type { McpSessions } from './mcp/mcp-sessions.ts'
import { McpTarget } from './mcp/mcp-target.ts'
import { failed } from './observation.ts'
import { placeOf } from './source-reader.ts'
import type { SourceReaderParts } from './source-reader.ts'

export type SourceToolsParts = Pick<SourceReaderParts, 'guard' | 'servers'> & {
  /** Where the sessions with MCP servers are kept. */
  sessions: McpSessions
  store: ToolSourceStore
  secrets: SecretBox
  clock: Clock
  /** Told what an MCP server offers now, where a tool is no longer the accepted one. */
  onOffered: (source: ToolSourceRow, offered: readonly OfferedTool[]) => Promise<void>
}

/** The accepted tools of an owner's sources, and how each is called. */
export class SourceTools implements ToolCatalogue {
  readonly #parts: SourceToolsParts

  constructor(parts: SourceToolsParts) {
    this.#parts = parts
  }

  async list(ownerId: string): Promise<readonly ToolContract[]> {
    return (await this.#accepted(ownerId)).map(boundToSource)
  }

  async find(ownerId: string, name: string): Promise<{ contract: ToolContract; target: EffectTarget } | null> {
    // Names of other kinds are known by their beginning, and cost no question.
    if (!/^(http|mcp)\//.test(name)) return null
    const found = (await this.#accepted(ownerId)).find(({ contract }) => contract.name === name)
    return found ? { contract: boundToSource(found), target: await this.#target(found) } : null
  }

  async #accepted(ownerId: string): Promise<Accepted[]> {
    const rows = (await this.#parts.store.tools(ownerId, null)).filter(isAccepted)
    if (rows.length === 0) return []
    const sources = new Map((await this.#parts.store.list(ownerId)).map((source) => [source.id, source]))
    return rows.flatMap((row) => {
      const source = sources.get(row.source_id)
      return source ? [{ source, row, contract: contractOfSource(source.kind, source.name, row) }] : []
    })
  }

  async #target({ source, row, contract }: Accepted): Promise<EffectTarget> {
    const { clock, sessions, guard, servers, onOffered } = this.#parts
    const headers = await openHeaders(this.#parts, source)
    if (headers === null) return new UnreachableTarget('headers_lost')
    const common = { contract, declaration: row.declaration, clock }
    if (source.kind !== 'mcp') return new HttpTarget({ ...common, headers, guard })
    const place = placeOf(source, { headers, guard, servers })
    if (!place) return new UnreachableTarget('server_not_listed')
    return new McpTarget({
      ...common,
      sessions,
      place,
      sourceId: source.id,
      source: `mcp/${source.name}`,
      onChanged: (offered) => onOffered(source, offered),
    })
  }
}

type Accepted = { source: ToolSourceRow; row: SourceToolRow; contract: ToolContract }

/** A source that was made anew under the same name is another place: what was bound to the old one does not go there. */
function boundToSource({ source, contract }: Accepted): ToolContract {
  return { ...contract, version: sha256Hex(`${source.id} ${contract.version}`) }
}

/** A tool that is accepted and cannot be called at present: nothing is ever sent. */
class UnreachableTarget implements EffectTarget {
  readonly #code: string

  constructor(code: string) {
    this.#code = code
  }

  enforces(contract: ToolContract) {
    return constraintsOf(contract)
  }

  /** There is nobody to ask, and nothing to be sent: why not is told by the call itself. */
  async lookUp() {
    return null
  }

  async execute() {
    return failed(this.#code)
  }
}
