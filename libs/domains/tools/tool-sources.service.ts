import { LingtaiError, SOURCES_PER_OWNER } from '#contracts'
import type { AcceptToolSource, CreateToolSource, EventPayload, ToolSourceView, ToolView } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { ToolContract } from '#kernel/ports/effect-target'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { OfferedTool, SecretBox, SourceReader, SourceToolRow, ToolSourceRow, ToolSourceStore } from './ports.ts'
import { contractOfSource, fullName, higherClass, isAccepted } from './source-contract.ts'
import { headersContext, openHeaders } from './source-headers.ts'

type SourceEvent = 'tool_source.added' | 'tool_source.accepted' | 'tool_source.changed' | 'tool_source.removed'

export type ToolSourcesParts = {
  unit: UnitOfWork
  store: ToolSourceStore
  reader: SourceReader
  secrets: SecretBox
  log: EventLog
  clock: Clock
  ids: Ids
  /** What every owner has. */
  builtin: readonly ToolContract[]
}

/**
 * Where an owner's further tools come from. Nothing that a source says makes a tool: the owner does, by accepting exactly the versions
 * that they saw (decision 35: with a credential that may approve).
 */
export class ToolSourcesService {
  readonly #parts: ToolSourcesParts

  constructor(parts: ToolSourcesParts) {
    this.#parts = parts
  }

  /** Every tool of an owner, accepted or not, by name. */
  async tools(ownerId: string): Promise<ToolView[]> {
    const { store, builtin } = this.#parts
    const sources = new Map((await store.list(ownerId)).map((source) => [source.id, source]))
    const rows = await store.tools(ownerId, null)
    const views = rows.flatMap((row) => {
      const source = sources.get(row.source_id)
      return source ? [toolView(source, row)] : []
    })
    return [...builtin.map(builtinView), ...views].sort((left, right) => (left.name < right.name ? -1 : 1))
  }

  async list(ownerId: string): Promise<ToolSourceView[]> {
    const rows = await this.#parts.store.tools(ownerId, null)
    const sources = await this.#parts.store.list(ownerId)
    return Promise.all(
      sources.map((source) =>
        this.#view(
          source,
          rows.filter((row) => row.source_id === source.id),
        ),
      ),
    )
  }

  /** Throws not_found. */
  async read(ownerId: string, sourceId: string): Promise<ToolSourceView> {
    const source = await this.#find(ownerId, sourceId)
    return this.#view(source, await this.#parts.store.tools(ownerId, sourceId))
  }

  /** Keeps a declaration; asks nobody, and nothing is accepted yet. Throws validation_failed, conflict, wrong_state. */
  async create(ownerId: string, input: CreateToolSource, options: { isAdmin: boolean }): Promise<ToolSourceView> {
    const { unit, store, reader, secrets, clock, ids } = this.#parts
    const { kind, settings, headers, offered, refused } = reader.declare(input, options)
    const headerNames = Object.keys(headers).sort()
    const source: ToolSourceRow = {
      id: ids.next(),
      owner_id: ownerId,
      name: input.name,
      kind,
      settings: { ...settings, header_names: headerNames, refused: [...refused] },
      created_at: clock.now(),
    }
    const sealed = headerNames.length === 0 ? null : await secrets.seal(JSON.stringify(headers), headersContext(source))
    return unit.run(async () => {
      await store.lockOwner(ownerId)
      const others = await store.list(ownerId)
      if (others.length >= SOURCES_PER_OWNER)
        throw new LingtaiError('wrong_state', `There are ${SOURCES_PER_OWNER} tool sources already; delete one first.`)
      if (others.some((other) => other.name === source.name)) {
        throw new LingtaiError('conflict', undefined, { errors: [{ path: 'name', message: 'is the name of another source of yours' }] })
      }
      await store.insert(source, sealed)
      await store.putTools(source, offered, source.created_at)
      await this.#record('tool_source.added', ownerId, { source_id: source.id, kind, offered: offered.length })
      return this.#view(source, await store.tools(ownerId, source.id))
    })
  }

  /** Its tools are gone at once, its headers for good. Throws not_found. */
  async remove(ownerId: string, sourceId: string): Promise<void> {
    const { unit, store, clock } = this.#parts
    await unit.run(async () => {
      await store.lockOwner(ownerId)
      await this.#find(ownerId, sourceId)
      await store.remove(ownerId, sourceId, clock.now())
      await this.#record('tool_source.removed', ownerId, { source_id: sourceId })
    })
  }

  /**
   * Accepts exactly these versions and no others. Throws not_found, revision_conflict where one of them is not what is offered now,
   * validation_failed for a class below the tool's own.
   */
  async accept(ownerId: string, sourceId: string, { tools }: AcceptToolSource): Promise<ToolSourceView> {
    const { unit, store } = this.#parts
    return unit.run(async () => {
      await store.lockOwner(ownerId)
      const source = await this.#find(ownerId, sourceId)
      const rows = new Map((await store.tools(ownerId, sourceId)).map((row) => [fullName(source.kind, source.name, row.name), row]))
      const accepted = [...new Map(tools.map((tool) => [tool.name, tool])).values()].map((tool) => {
        const row = rows.get(tool.name)
        if (!row || row.missing || row.version !== tool.version) {
          const path = `tools[${tools.indexOf(tool)}].version`
          throw new LingtaiError('revision_conflict', undefined, { errors: [{ path, message: 'is not what is offered now' }] })
        }
        const capability = tool.capability ?? null
        if (capability !== null && higherClass(capability, row.declaration.floor) !== capability) {
          const path = `tools[${tools.indexOf(tool)}].capability`
          throw new LingtaiError('validation_failed', undefined, {
            errors: [{ path, message: `must be at least ${row.declaration.floor}` }],
          })
        }
        return { name: row.name, version: row.version, capability }
      })
      await store.accept(sourceId, accepted)
      const now = await store.tools(ownerId, sourceId)
      const contracts = now.filter(isAccepted).map((row) => contractOfSource(source.kind, source.name, row))
      await this.#record('tool_source.accepted', ownerId, {
        source_id: sourceId,
        tools: contracts.map(({ name, version, capability }) => ({ name, version, capability })),
      })
      return this.#view(source, now)
    })
  }

  /** Asks the far side what it offers now. Not inside a unit of work. Throws not_found, wrong_state, validation_failed, remote_failed. */
  async refresh(ownerId: string, sourceId: string, signal: AbortSignal): Promise<ToolSourceView> {
    const { store, reader, secrets } = this.#parts
    const source = await this.#find(ownerId, sourceId)
    if (source.kind !== 'mcp')
      throw new LingtaiError('wrong_state', 'Only an MCP server can be asked what it offers; declare the tools anew instead.')
    const headers = await openHeaders({ store, secrets }, source)
    if (headers === null) throw new LingtaiError('wrong_state', 'The headers cannot be read any more; make the source anew.')
    const { offered, refused } = await reader.discover(source, { headers, signal })
    await this.noteOffered(source, offered)
    return { ...(await this.read(ownerId, sourceId)), refused: [...refused] }
  }

  /** Keeps what a source was seen to offer. What changed since it was accepted is a tool no longer. */
  async noteOffered(source: Pick<ToolSourceRow, 'id' | 'owner_id'>, offered: readonly OfferedTool[]): Promise<void> {
    const { unit, store, clock } = this.#parts
    await unit.run(async () => {
      await store.lockOwner(source.owner_id)
      if (!(await store.find(source.owner_id, source.id))) return
      const before = new Map((await store.tools(source.owner_id, source.id)).map((row) => [row.name, row]))
      await store.putTools(source, offered, clock.now())
      const after = await store.tools(source.owner_id, source.id)
      const differs = after.filter((row) => row.version !== before.get(row.name)?.version || row.missing !== before.get(row.name)?.missing)
      if (differs.length === 0) return
      const lost = differs.filter((row) => row.accepted_version !== null && !isAccepted(row)).length
      await this.#record('tool_source.changed', source.owner_id, { source_id: source.id, changed: differs.length, lost })
    })
  }

  async #find(ownerId: string, sourceId: string): Promise<ToolSourceRow> {
    const source = await this.#parts.store.find(ownerId, sourceId)
    if (!source) throw new LingtaiError('not_found')
    return source
  }

  async #view(source: ToolSourceRow, rows: readonly SourceToolRow[]): Promise<ToolSourceView> {
    const { settings } = source
    const isReadable = settings.header_names.length === 0 || (await openHeaders(this.#parts, source)) !== null
    return {
      id: source.id,
      name: source.name,
      kind: source.kind,
      place: settings.place,
      header_names: settings.header_names,
      headers_readable: isReadable,
      tools: rows.map((row) => toolView(source, row)),
      refused: settings.refused,
      created_at: source.created_at.toISOString(),
    }
  }

  async #record<Type extends SourceEvent>(type: Type, ownerId: string, payload: EventPayload<Type>): Promise<void> {
    const at = this.#parts.clock.now().toISOString()
    // The pair of type and payload is checked by the signature; a union of pairs cannot be spelled from a variable.
    const event = { type, payload, actor: 'owner', at, cause: { tag: type } } as Parameters<EventLog['append']>[0]['events'][number]
    await this.#parts.log.append({ stream: `admin:${ownerId}`, ownerId, events: [event] })
  }
}

function toolView(source: ToolSourceRow, row: SourceToolRow): ToolView {
  const accepted = isAccepted(row)
  return {
    ...viewOf(contractOfSource(source.kind, source.name, row)),
    source: { kind: source.kind, id: source.id, name: source.name },
    accepted,
    missing: row.missing,
    // What the owner declared themselves, or has read and accepted.
    trust: accepted || source.kind === 'http' ? 'workspace' : 'untrusted',
  }
}

function builtinView(contract: ToolContract): ToolView {
  return { ...viewOf(contract), source: { kind: 'builtin', id: null, name: null }, accepted: true, missing: false, trust: 'trusted' }
}

function viewOf({ priceMicros, ...contract }: ToolContract) {
  return { ...contract, price_micros: priceMicros }
}
