import type { CapabilityClass, RefusedTool } from '#contracts'
import type { OfferedTool } from '#domains/tools/ports'
import type { JsonObject, JsonValue } from '#kernel/ports/model-gateway'
import { schemaProblem } from '#kernel/tools/schema-faults'
import { localName, offeredTool, parametersProblem, plainDescription } from '../declaration.ts'
import { safeSchema } from '../safe-schema.ts'

/** How a tool of a server is called. */
export type McpRemote = { tool: string }

/** A tool as a server lists it. Everything in it is a stranger's word. */
export type ListedTool = {
  name: string
  description?: string | undefined
  inputSchema: unknown
  annotations?: { readOnlyHint?: boolean | undefined; destructiveHint?: boolean | undefined } | undefined
}

/** Longest text inside a schema: descriptions of single arguments. */
const WORDS_MAX_UNITS = 500
const MAX_DEPTH = 64

/**
 * What a server offers, as declarations: texts cleaned and bounded, schemas such as arguments can be checked against. What a server says of
 * a tool's nature only ever raises its class: unless the owner says otherwise, each counts as irreversible_external.
 */
export function offerTools(listed: readonly ListedTool[], limit: number): { offered: OfferedTool[]; refused: RefusedTool[] } {
  const offered = new Map<string, OfferedTool>()
  const refused: RefusedTool[] = []
  for (const tool of listed) {
    const read = offered.size >= limit ? 'too_many_tools' : readTool(tool)
    const shown = plainDescription(tool.name).slice(0, 100)
    if (typeof read === 'string') refused.push({ name: shown, code: read })
    else if (offered.has(read.name)) refused.push({ name: shown, code: 'names_collide' })
    else offered.set(read.name, read)
    if (refused.length >= limit) break
  }
  return { offered: [...offered.values()], refused }
}

function readTool(tool: ListedTool): OfferedTool | string {
  if (tool.name === '' || tool.name.length > 200) return 'name_unusable'
  const given = cleaned(tool.inputSchema, 0)
  if (given === null || typeof given !== 'object' || Array.isArray(given)) return 'parameters_no_object'
  const schema = safeSchema(given)
  const problem = parametersProblem(schema)
  if (problem !== null) return problem
  if (schemaProblem(schema) !== null) return 'parameters_unusable'
  const remote: McpRemote = { tool: tool.name }
  const offered = offeredTool(localName(tool.name), {
    description: plainDescription(tool.description ?? '') || 'No description.',
    parameters: schema,
    floor: floorOf(tool),
    usual: 'irreversible_external',
    egress: 'declared',
    price_micros: null,
    remote,
  })
  return offered ?? 'parameters_unusable'
}

/** A server that calls its own tool writing or destructive is believed; one that calls it harmless is not. */
function floorOf({ annotations }: ListedTool): CapabilityClass {
  return annotations?.readOnlyHint === false || annotations?.destructiveHint === true ? 'irreversible_external' : 'read_only'
}

/** The schema with every text in it cleaned; null where it is too deep. */
function cleaned(value: unknown, depth: number): JsonValue {
  if (depth > MAX_DEPTH) return null
  if (typeof value === 'string') return plainDescription(value).slice(0, WORDS_MAX_UNITS).toWellFormed()
  if (Array.isArray(value)) return value.map((item) => cleaned(item, depth + 1))
  if (typeof value !== 'object' || value === null) return typeof value === 'number' || typeof value === 'boolean' ? value : null
  const object: JsonObject = {}
  for (const [name, member] of Object.entries(value)) {
    // Names that a reader cannot see are no names of arguments.
    if (name === '__proto__' || name === '$schema' || plainDescription(name) !== name) continue
    object[name] = cleaned(member, depth + 1)
  }
  return object
}
