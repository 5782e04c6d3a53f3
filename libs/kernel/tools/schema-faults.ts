import type { JsonObject, JsonValue } from '../ports/model-gateway.ts'
import { LinearPattern } from './linear-pattern.ts'
import { isObject, listOf, resolve, stepsOf, unknownKeyword } from './schema-parts.ts'

/** Why a schema cannot be used, and where in it: names of keywords and members, places in lists. */
export type SchemaProblem = { path: readonly (string | number)[]; message: string }

/** How much of a schema is looked at, and how deep its parts lie in one another. */
type Bounds = { parts: number; depth: number; characters: number }
const toolBounds: Bounds = { parts: 20_000, depth: 64, characters: Infinity }
const promiseBounds: Bounds = { parts: 1_000, depth: 24, characters: 32_000 }
/** Problems that are told. */
const MAX_PROBLEMS = 8

const types: readonly JsonValue[] = ['null', 'boolean', 'object', 'array', 'number', 'string', 'integer']

type Rule = (value: JsonValue) => string | null
const wanted = (holds: (value: JsonValue) => boolean, message: string): Rule => {
  return (value) => (holds(value) ? null : message)
}
const isList = (value: JsonValue): boolean => Array.isArray(value) && value.length > 0
const count = wanted((value) => Number.isSafeInteger(value) && Number(value) >= 0, 'must be a whole number from 0')
const number = wanted((value) => typeof value === 'number', 'must be a number')
const bound = wanted((value) => typeof value === 'number' || typeof value === 'boolean', 'must be a number')
const flag = wanted((value) => typeof value === 'boolean', 'must be true or false')
const schemas = wanted(isList, 'must be a list of schemas')
const members = wanted(isObject, 'must be an object of schemas')
const unheld = wanted(() => false, 'is not checked here, so that nothing would hold it')

/** What would make a schema fit nothing, whatever else it says. */
const fatal: Readonly<Record<string, Rule>> = {
  type: wanted(
    (value) => (Array.isArray(value) ? isList(value) && value.every((name) => types.includes(name)) : types.includes(value)),
    'must be a type that JSON has',
  ),
  enum: wanted(isList, 'must be a list of values'),
  anyOf: schemas,
  oneOf: schemas,
}

/** What has to be spelled so that nothing of a schema is passed over when it is all that counts. */
const spelled: Readonly<Record<string, Rule>> = {
  allOf: schemas,
  prefixItems: schemas,
  properties: members,
  $defs: members,
  definitions: members,
  required: wanted((value) => Array.isArray(value) && value.every((name) => typeof name === 'string'), 'must be a list of names'),
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minProperties: count,
  maxProperties: count,
  minimum: number,
  maximum: number,
  exclusiveMinimum: bound,
  exclusiveMaximum: bound,
  multipleOf: wanted((value) => typeof value === 'number' && value > 0, 'must be a number above 0'),
  uniqueItems: flag,
  nullable: flag,
  pattern: (value) => {
    const read = typeof value === 'string' ? LinearPattern.read(value) : 'is no text'
    return typeof read === 'string' ? `cannot be searched for safely: it ${read}` : null
  },
  format: unheld,
  contentEncoding: unheld,
  contentMediaType: unheld,
  discriminator: unheld,
}

/**
 * Why arguments could not be checked against a tool's schema at all, whatever they were: a type that there is not, a keyword that is not
 * known, a reference that leads nowhere or round in a circle, too many parts. Null for a schema that can be used.
 */
export function schemaProblem(schema: JsonObject): string | null {
  const [first] = new Walk(schema, [fatal], toolBounds).problems
  if (!first) return null
  return first.path.length === 0 ? first.message : `${first.path.join('.')} ${first.message}`
}

/**
 * Why a schema cannot be what a result is measured by: beside what makes it unusable, everything in it that a check would pass over, an
 * expression that is not safe to search for, and too much of it. Empty for a schema that holds all that it says (decision 7). Pure.
 */
export function promiseProblems(schema: JsonObject): readonly SchemaProblem[] {
  return new Walk(schema, [fatal, spelled], promiseBounds).problems
}

type Part = { at: JsonValue | undefined; path: readonly (string | number)[] }

class Walk {
  readonly problems: SchemaProblem[] = []
  readonly #root: JsonObject
  readonly #rules: readonly Readonly<Record<string, Rule>>[]
  readonly #seen = new Set<JsonObject>()

  constructor(root: JsonObject, rules: readonly Readonly<Record<string, Rule>>[], bounds: Bounds) {
    this.#root = root
    this.#rules = rules
    if (bounds.characters < Infinity && JSON.stringify(root).length > bounds.characters) {
      this.#no([], `must be at most ${bounds.characters} characters of JSON`)
      return
    }
    this.#walk(bounds)
  }

  #walk({ parts, depth }: Bounds): void {
    const left: Part[] = [{ at: this.#root, path: [] }]
    for (let part = left.pop(); part && this.problems.length < MAX_PROBLEMS; part = left.pop()) {
      if (this.#seen.size >= parts) return this.#no(part.path, `must have at most ${parts} parts`)
      // Most keywords hold their parts by name or place: two steps for one level.
      if (part.path.length > depth * 2) return this.#no(part.path.slice(0, 8), `must not be nested deeper than ${depth} levels`)
      left.push(...this.#look(part))
    }
  }

  #no(path: readonly (string | number)[], message: string): void {
    this.problems.push({ path, message })
  }

  /** One part; answers those inside it. */
  #look({ at, path }: Part): Part[] {
    if (typeof at === 'boolean') return []
    if (!isObject(at)) {
      this.#no(path, 'must be a schema')
      return []
    }
    if (this.#seen.has(at)) return []
    this.#seen.add(at)
    const unknown = unknownKeyword(at)
    if (unknown !== undefined) this.#no([...path, unknown], 'is no keyword that is known here')
    for (const rules of this.#rules) {
      for (const [keyword, rule] of Object.entries(rules)) {
        const value = at[keyword]
        const problem = value === undefined ? null : rule(value)
        if (problem !== null) this.#no([...path, keyword], problem)
      }
    }
    return [...this.#referred(at, path), ...inside(at, path)]
  }

  #referred(at: JsonObject, path: Part['path']): Part[] {
    const reference = at['$ref']
    if (reference === undefined) return []
    const target = typeof reference === 'string' ? resolve(this.#root, reference) : undefined
    if (typeof reference !== 'string' || target === undefined) this.#no([...path, '$ref'], 'must lead to a part of this schema')
    else if (turns(this.#root, at)) this.#no([...path, '$ref'], 'must not lead back to itself')
    else return [{ at: target, path: stepsOf(reference) }]
    return []
  }
}

function inside(at: JsonObject, path: Part['path']): Part[] {
  const parts: Part[] = []
  for (const keyword of ['anyOf', 'oneOf', 'allOf', 'prefixItems'])
    for (const [index, part] of listOf(at[keyword]).entries()) parts.push({ at: part, path: [...path, keyword, index] })
  for (const keyword of ['properties', '$defs', 'definitions']) {
    const named = at[keyword]
    if (isObject(named)) for (const [name, part] of Object.entries(named)) parts.push({ at: part, path: [...path, keyword, name] })
  }
  for (const keyword of ['additionalProperties', 'propertyNames', 'not'])
    if (at[keyword] !== undefined) parts.push({ at: at[keyword], path: [...path, keyword] })
  const { items } = at
  if (Array.isArray(items)) for (const [index, part] of items.entries()) parts.push({ at: part, path: [...path, 'items', index] })
  else if (items !== undefined) parts.push({ at: items, path: [...path, 'items'] })
  return parts
}

/** Whether a schema has to be checked before it can be checked: references and combinations that lead back without taking anything in. */
function turns(root: JsonObject, schema: JsonObject): boolean {
  const seen = new Set<JsonObject>()
  const next = (at: JsonObject): JsonObject[] => {
    const { $ref: reference, not } = at
    const combined = ['anyOf', 'oneOf', 'allOf'].flatMap((keyword) => listOf(at[keyword]))
    const target = typeof reference === 'string' ? resolve(root, reference) : undefined
    return [target, not, ...combined].filter(isObject)
  }
  const left = next(schema)
  for (let at = left.pop(); at; at = left.pop()) {
    if (at === schema) return true
    if (seen.has(at)) continue
    seen.add(at)
    left.push(...next(at))
  }
  return false
}
