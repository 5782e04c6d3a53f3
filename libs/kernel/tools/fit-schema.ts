import type { JsonObject, JsonValue } from '../ports/model-gateway.ts'
import { LinearPattern } from './linear-pattern.ts'
import type { Work } from './linear-pattern.ts'
import { isObject, listOf, resolve, unknownKeyword } from './schema-parts.ts'

/** Where a value does not fit, as a JSON path, and what was asked for. */
export type SchemaFault = { path: string; expected: string }

/** Steps of one check; a schema that asks for more fits nothing. */
const MAX_STEPS = 20_000
const MAX_DEPTH = 64
/** Faults that are told. */
const MAX_FAULTS = 8

/** States that searching for the patterns of one check may look at in all; texts that would take more fit nothing. */
const PATTERN_WORK = 1_000_000

/**
 * Checks a value against a JSON schema (the common part of draft 7 to 2020-12) in bounded steps. `format` is not checked, and `pattern`
 * only where `patterns` asks for it: a tool's schema comes from a stranger, whose expressions the far side holds its arguments to itself.
 * A pattern is searched for in linear time or fits nothing. An unknown keyword that could refuse makes the schema fit nothing, as does a
 * reference to anywhere but inside it. Pure; answers the faults, none for a value that fits.
 */
export function fitSchema(schema: JsonObject, value: JsonValue, { patterns = false }: { patterns?: boolean } = {}): SchemaFault[] {
  const check = new Check(schema, patterns)
  check.at(schema, value, { path: '', depth: 0 })
  return check.faults
}

type At = { path: string; depth: number }

class Check {
  readonly faults: SchemaFault[] = []
  readonly #root: JsonObject
  readonly #patterns: Map<string, LinearPattern | string> | null
  readonly #work: Work = { left: PATTERN_WORK }
  #steps = 0

  constructor(root: JsonObject, patterns: boolean) {
    this.#root = root
    this.#patterns = patterns ? new Map() : null
  }

  at(schema: JsonValue | undefined, value: JsonValue, where: At): boolean {
    if (schema === undefined || schema === true) return true
    if (schema === false) return this.#no(where, 'nothing')
    if (!isObject(schema)) return this.#no(where, 'a schema that can be read')
    if (++this.#steps > MAX_STEPS || where.depth > MAX_DEPTH) return this.#no(where, 'a schema of bounded size')
    const unknown = unknownKeyword(schema)
    if (unknown !== undefined) return this.#no(where, `a schema without ${unknown}`)
    if (value === null && schema['nullable'] === true) return true
    return [
      this.#reference(schema, value, where),
      this.#kind(schema, value, where),
      this.#combined(schema, value, where),
      typeof value === 'string' ? this.#text(schema, value, where) : true,
      typeof value === 'number' ? this.#number(schema, value, where) : true,
      Array.isArray(value) ? this.#array(schema, value, where) : true,
      isObject(value) ? this.#object(schema, value, where) : true,
    ].every(Boolean)
  }

  #no({ path }: At, expected: string): false {
    if (this.faults.length < MAX_FAULTS) this.faults.push({ path: path === '' ? '$' : path, expected })
    return false
  }

  #reference(schema: JsonObject, value: JsonValue, where: At): boolean {
    const reference = schema['$ref']
    if (reference === undefined) return true
    const target = typeof reference === 'string' ? resolve(this.#root, reference) : undefined
    if (target === undefined) return this.#no(where, 'a schema whose references lie inside it')
    return this.at(target, value, { path: where.path, depth: where.depth + 1 })
  }

  #kind(schema: JsonObject, value: JsonValue, where: At): boolean {
    const { type, enum: options, const: only } = schema
    const types = type === undefined ? null : Array.isArray(type) ? type : [type]
    if (types && !types.some((name) => isOfType(value, name)))
      return this.#no(where, types.map((name) => JSON.stringify(name)).join(' or '))
    if (options !== undefined && !(Array.isArray(options) && options.some((option) => equal(option, value))))
      return this.#no(where, 'one of the named values')
    if (only !== undefined && !equal(only, value)) return this.#no(where, 'the one named value')
    return true
  }

  #combined(schema: JsonObject, value: JsonValue, where: At): boolean {
    const inside = { path: where.path, depth: where.depth + 1 }
    for (const part of listOf(schema['allOf'])) if (!this.at(part, value, inside)) return false
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      if (schema[keyword] === undefined) continue
      const fitting = listOf(schema[keyword]).filter((part) => this.#quietly(part, value, inside)).length
      if (fitting === 0 || (keyword === 'oneOf' && fitting > 1))
        return this.#no(where, keyword === 'oneOf' ? 'exactly one of the forms' : 'one of the forms')
    }
    if (schema['not'] !== undefined && this.#quietly(schema['not'], value, inside)) return this.#no(where, 'another form')
    return true
  }

  /** Tries a part whose faults are not the value's. */
  #quietly(part: JsonValue, value: JsonValue, where: At): boolean {
    const before = this.faults.length
    const fits = this.at(part, value, where)
    if (this.#steps > MAX_STEPS) return false
    this.faults.length = before
    return fits
  }

  #text({ minLength, maxLength, pattern }: JsonObject, value: string, where: At): boolean {
    if (minLength !== undefined || maxLength !== undefined) {
      const length = [...value].length
      if (!within(length, minLength, maxLength)) return this.#no(where, `${bounds(minLength, maxLength)} characters`)
    }
    return pattern === undefined || this.#patterns === null || this.#pattern(this.#patterns, pattern, { value, where })
  }

  #pattern(known: Map<string, LinearPattern | string>, given: JsonValue, { value, where }: { value: string; where: At }): boolean {
    const source = typeof given === 'string' ? given : '('
    const pattern = known.get(source) ?? LinearPattern.read(source)
    known.set(source, pattern)
    if (typeof pattern === 'string') return this.#no(where, 'a pattern that can be searched for')
    const isThere = pattern.isIn(value, this.#work)
    if (isThere !== null) return isThere || this.#no(where, 'a text with the pattern in it')
    // Nobody knows: not even what asks for the opposite may take it for a yes.
    this.#steps = MAX_STEPS + 1
    return this.#no(where, 'a shorter text')
  }

  #number(schema: JsonObject, value: number, where: At): boolean {
    const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf } = schema
    if (!within(value, minimum, maximum)) return this.#no(where, bounds(minimum, maximum))
    // Draft 4, which OpenAPI 3.0 follows, has booleans here that sharpen the plain bounds.
    if (typeof above === 'number' ? value <= above : above === true && value === minimum) return this.#no(where, 'more')
    if (typeof below === 'number' ? value >= below : below === true && value === maximum) return this.#no(where, 'less')
    if (typeof multipleOf === 'number' && multipleOf > 0 && Math.abs(value / multipleOf - Math.round(value / multipleOf)) > 1e-9) {
      return this.#no(where, `a multiple of ${multipleOf}`)
    }
    return true
  }

  #array(schema: JsonObject, value: readonly JsonValue[], where: At): boolean {
    const { minItems, maxItems, uniqueItems, items } = schema
    if (!within(value.length, minItems, maxItems)) return this.#no(where, `${bounds(minItems, maxItems)} items`)
    const first = Array.isArray(items) ? items : listOf(schema['prefixItems'])
    const rest = Array.isArray(items) ? undefined : items
    let fits = true
    for (const [index, item] of value.entries()) {
      fits = this.at(first[index] ?? rest, item, { path: `${where.path}[${index}]`, depth: where.depth + 1 }) && fits
    }
    if (uniqueItems === true && new Set(value.map((item) => JSON.stringify(item))).size < value.length)
      return this.#no(where, 'items that differ')
    return fits
  }

  #object(schema: JsonObject, value: JsonObject, where: At): boolean {
    const properties = isObject(schema['properties']) ? schema['properties'] : {}
    const names = Object.keys(value)
    if (!within(names.length, schema['minProperties'], schema['maxProperties'])) return this.#no(where, 'another number of members')
    let fits = true
    if (schema['propertyNames'] !== undefined)
      for (const name of names) fits = this.at(schema['propertyNames'], name, member(where, name)) && fits
    for (const name of listOf(schema['required'])) {
      if (typeof name === 'string' && !Object.hasOwn(value, name)) fits = this.#no(member(where, name), 'a value')
    }
    for (const name of names) {
      const part = Object.hasOwn(properties, name) ? properties[name] : schema['additionalProperties']
      fits = this.at(part, value[name] ?? null, member(where, name)) && fits
    }
    return fits
  }
}

function member({ path, depth }: At, name: string): At {
  return { path: path === '' ? name : `${path}.${name}`, depth: depth + 1 }
}

function isOfType(value: JsonValue, type: JsonValue): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
    case 'string':
    case 'boolean':
      return typeof value === type
    default:
      return false
  }
}

function within(size: number, least: JsonValue | undefined, most: JsonValue | undefined): boolean {
  return (typeof least !== 'number' || size >= least) && (typeof most !== 'number' || size <= most)
}

function bounds(least: JsonValue | undefined, most: JsonValue | undefined): string {
  return `${typeof least === 'number' ? `at least ${least}` : ''}${typeof least === 'number' && typeof most === 'number' ? ' and ' : ''}${typeof most === 'number' ? `at most ${most}` : ''}`
}

function equal(left: JsonValue, right: JsonValue): boolean {
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((item, index) => equal(item, right[index] ?? null))
  if (isObject(left) && isObject(right)) {
    const names = Object.keys(left)
    return (
      names.length === Object.keys(right).length &&
      names.every((name) => Object.hasOwn(right, name) && equal(left[name] ?? null, right[name] ?? null))
    )
  }
  return left === right
}
