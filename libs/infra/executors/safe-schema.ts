import type { JsonObject, JsonValue } from '#kernel/ports/model-gateway'
import { canonicalJson, NotCanonicalError } from '#kernel/record/canonical-json'

const upperBounds: ReadonlySet<string> = new Set(['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'])
const lowerBounds: ReadonlySet<string> = new Set(['minimum', 'exclusiveMinimum'])
/** Keywords that only tell a reader something; those that begin with `x-` are such too. */
const remarks: ReadonlySet<string> = new Set(['default', 'example', 'examples'])
/** Keywords under which members have names of their own, each with a schema. */
const named: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])
/** Keywords whose value is no schema: nothing in it is a bound. */
const values: ReadonlySet<string> = new Set(['const', 'enum'])

/**
 * A schema without what no arguments could tell from its absence and JSON does not carry safely: bounds beyond ±(2⁵³ − 1), which no argument
 * passes since none may be beyond (decision 8), and remarks with such numbers. The largest 64-bit integer is an ordinary bound in the documents
 * of APIs, and a number of a message an ordinary example.
 */
export function safeSchema(schema: JsonObject): JsonObject {
  const kept: JsonObject = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (isIdle(keyword, value)) continue
    if (values.has(keyword)) kept[keyword] = value
    else if (named.has(keyword)) kept[keyword] = membersOf(value)
    else kept[keyword] = safePart(value)
  }
  return kept
}

function membersOf(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, safePart(member)]))
}

function safePart(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(safePart)
  return typeof value === 'object' && value !== null ? safeSchema(value) : value
}

function isIdle(keyword: string, value: JsonValue): boolean {
  if (typeof value === 'number') {
    if (upperBounds.has(keyword)) return value > Number.MAX_SAFE_INTEGER
    if (lowerBounds.has(keyword)) return value < Number.MIN_SAFE_INTEGER
  }
  return (remarks.has(keyword) || keyword.startsWith('x-')) && !isCanonical(value)
}

export function isCanonical(value: unknown): boolean {
  try {
    canonicalJson(value)
    return true
  } catch (error) {
    if (error instanceof NotCanonicalError) return false
    throw error
  }
}
