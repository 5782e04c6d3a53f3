import { describe, expect, it } from 'vitest'
import type { JsonObject, JsonValue } from '../ports/model-gateway.ts'
import { fitSchema } from './fit-schema.ts'
import { promiseProblems, schemaProblem } from './schema-faults.ts'

function nested(levels: number, wrap: (inner: JsonObject) => JsonObject): JsonObject {
  let schema: JsonObject = { type: 'string' }
  for (let level = 0; level < levels; level++) schema = wrap(schema)
  return schema
}

describe('schemaProblem', () => {
  it.each<[JsonObject, string | null]>([
    [{ type: 'object', properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { type: 'string', pattern: 'x' } } }, null],
    [{ type: 'object', properties: { next: { $ref: '#' } }, format: 'anything', pattern: '(?<=x)' }, null],
    [{ type: 'bogus' }, 'type must be a type that JSON has'],
    [{ properties: { a: { type: ['string', 'text'] } } }, 'properties.a.type must be a type that JSON has'],
    [{ anyOf: [] }, 'anyOf must be a list of schemas'],
    [{ enum: 'a' }, 'enum must be a list of values'],
    [{ $ref: '#' }, '$ref must not lead back to itself'],
    [
      { properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }, {}] } } },
      '$defs.a.anyOf.0.$ref must not lead back to itself',
    ],
    [{ properties: { a: { items: { if: {} } } } }, 'properties.a.items.if is no keyword that is known here'],
    [{ anyOf: [{ $ref: '#/$defs/none' }] }, 'anyOf.0.$ref must lead to a part of this schema'],
    [{ additionalProperties: { $ref: 'https://example.com/' } }, 'additionalProperties.$ref must lead to a part of this schema'],
    [{ $ref: '#/properties', properties: { type: 'x' } }, 'properties.type must be a schema'],
    [{ items: 'text' }, 'items must be a schema'],
    [{ items: [{ unevaluatedItems: false }] }, 'items.0.unevaluatedItems is no keyword that is known here'],
    [{ not: { dependentSchemas: {} } }, 'not.dependentSchemas is no keyword that is known here'],
    [nested(200, (inner) => ({ not: inner })), `${Array(8).fill('not').join('.')} must not be nested deeper than 64 levels`],
  ])('case %#', (schema, problem) => {
    expect(schemaProblem(schema)).toBe(problem)
  })
})

describe('promiseProblems', () => {
  const problems = (schema: JsonObject): string[] => promiseProblems(schema).map(({ path, message }) => `${path.join('.')}: ${message}`)

  it.each<[JsonObject, JsonValue]>([
    [{}, 1],
    [{ type: 'object', required: ['a'], properties: { a: { type: 'integer', minimum: 0 } }, additionalProperties: false }, { a: 1 }],
    [{ type: 'string', minLength: 1, pattern: '^[a-z]+(-[a-z]+)*$', title: 'A slug' }, 'a-b'],
    [{ $ref: '#/$defs/tree', $defs: { tree: { type: 'object', additionalProperties: { $ref: '#/$defs/tree' } } } }, { a: {} }],
  ])('takes %j', (schema, value) => {
    expect(problems(schema)).toEqual([])
    expect(fitSchema(schema, value, { patterns: true })).toEqual([])
  })

  it.each<[JsonObject, string]>([
    [{ type: 'bogus' }, 'type: must be a type that JSON has'],
    [{ type: [] }, 'type: must be a type that JSON has'],
    [{ properties: { a: { pattern: '(a+)+$' } } }, 'properties.a.pattern: cannot be searched for safely: it repeats a repetition'],
    [{ pattern: '[' }, 'pattern: cannot be searched for safely: it ends too early'],
    [{ pattern: 1 }, 'pattern: cannot be searched for safely: it is no text'],
    [{ format: 'email' }, 'format: is not checked here, so that nothing would hold it'],
    [{ required: 'a' }, 'required: must be a list of names'],
    [{ properties: ['a'] }, 'properties: must be an object of schemas'],
    [{ minLength: -1 }, 'minLength: must be a whole number from 0'],
    [{ multipleOf: 0 }, 'multipleOf: must be a number above 0'],
    [{ maximum: '9' }, 'maximum: must be a number'],
    [{ allOf: {} }, 'allOf: must be a list of schemas'],
    [{ $ref: 'https://example.com/schema.json' }, '$ref: must lead to a part of this schema'],
    [{ patternProperties: {} }, 'patternProperties: is no keyword that is known here'],
    [
      nested(30, (inner) => ({ properties: { a: inner } })),
      `${Array(4).fill('properties.a').join('.')}: must not be nested deeper than 24 levels`,
    ],
    [{ anyOf: Array.from({ length: 1_001 }, () => ({})) }, 'anyOf.1: must have at most 1000 parts'],
    [{ const: 'x'.repeat(32_000) }, ': must be at most 32000 characters of JSON'],
  ])('refuses case %#', (schema, problem) => {
    expect(problems(schema)).toEqual([problem])
  })

  it('tells several, and not all', () => {
    expect(problems({ type: 'a', items: { type: 'b' }, minimum: 'c' })).toHaveLength(3)
    expect(problems({ anyOf: Array.from({ length: 50 }, () => ({ type: 'a' })) })).toHaveLength(8)
  })
})
