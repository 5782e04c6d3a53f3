import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { JsonObject, JsonValue } from '../ports/model-gateway.ts'
import { fitSchema } from './fit-schema.ts'

const fits = (schema: JsonObject, value: JsonValue): boolean => fitSchema(schema, value).length === 0

describe('fitSchema', () => {
  it.each<[string, JsonObject, JsonValue[], JsonValue[]]>([
    ['types', { type: 'string' }, ['', 'x'], [1, null, [], {}, true]],
    ['integers', { type: 'integer' }, [0, -3, 2.0], [0.5, '1']],
    ['several types', { type: ['string', 'null'] }, ['x', null], [0]],
    ['unknown types', { type: 'text' }, [], ['x', null]],
    ['enums', { enum: ['a', 1, { b: [1] }] }, ['a', 1, { b: [1] }], ['b', 2, { b: [2] }, { b: [1], c: 1 }]],
    ['constants', { const: { a: null } }, [{ a: null }], [{}, { a: 0 }]],
    ['lengths in characters', { minLength: 2, maxLength: 3 }, ['ab', '😀😀😀'], ['a', 'abcd']],
    ['bounds', { minimum: 0, exclusiveMaximum: 10 }, [0, 9.9], [-1, 10]],
    ['bounds as draft 4 has them', { minimum: 0, exclusiveMinimum: true }, [1], [0]],
    ['multiples', { multipleOf: 0.1 }, [0.3, 1], [0.25]],
    ['required members', { required: ['a'] }, [{ a: null }, 'no object'], [{}]],
    ['closed objects', { properties: { a: { type: 'number' } }, additionalProperties: false }, [{}, { a: 1 }], [{ b: 1 }, { a: 'x' }]],
    ['open objects', { additionalProperties: { type: 'number' } }, [{ x: 1 }], [{ x: 'y' }]],
    ['inherited names', { properties: {}, additionalProperties: false }, [{}], [{ constructor: 1 }]],
    ['required inherited names', { required: ['toString'] }, [{ toString: 1 }], [{}]],
    ['names', { propertyNames: { maxLength: 2 } }, [{ ab: 1 }], [{ abc: 1 }]],
    ['items', { items: { type: 'number' }, minItems: 1, maxItems: 2 }, [[1], [1, 2]], [[], ['x'], [1, 2, 3]]],
    ['tuples', { prefixItems: [{ type: 'string' }], items: false }, [['x'], []], [['x', 1], [1]]],
    ['unique items', { uniqueItems: true }, [[1, 2]], [[1, 1]]],
    ['anyOf', { anyOf: [{ type: 'string' }, { minimum: 5 }] }, ['x', 5, null], [4]],
    ['oneOf', { oneOf: [{ minimum: 0 }, { maximum: 10 }] }, [-1, 11], [5]],
    ['allOf', { allOf: [{ minimum: 0 }, { maximum: 10 }] }, [5], [-1, 11]],
    ['not', { not: { type: 'string' } }, [1], ['x']],
    ['nullable', { type: 'string', nullable: true }, [null, 'x'], [1]],
    ['references', { $ref: '#/$defs/a', $defs: { a: { type: 'string' } } }, ['x'], [1]],
    ['references outside', { $ref: 'https://example.com/schema' }, [], ['x']],
    ['references nowhere', { $ref: '#/$defs/b' }, [], ['x']],
    ['keywords nobody knows', { if: { type: 'string' } }, [], ['x', 1]],
    ['notes', { description: 'x', 'x-internal': 1, format: 'date', default: 1 }, ['not a date'], []],
    ['nothing at all', { properties: { a: false } }, [{}], [{ a: 1 }]],
  ])('%s', (_, schema, good, bad) => {
    for (const value of good) expect(fitSchema(schema, value), JSON.stringify(value)).toEqual([])
    for (const value of bad) expect(fits(schema, value), JSON.stringify(value)).toBe(false)
  })

  it('says where', () => {
    const schema: JsonObject = {
      type: 'object',
      properties: { list: { items: { properties: { n: { type: 'integer' } }, required: ['n'] } } },
    }
    expect(fitSchema(schema, { list: [{ n: 1 }, { n: 'x' }, {}] })).toEqual([
      { path: 'list[1].n', expected: '"integer"' },
      { path: 'list[2].n', expected: 'a value' },
    ])
  })

  it('runs no expression of a stranger', () => {
    expect(fits({ type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(50_000)}!`)).toBe(true)
  })

  it('searches for a pattern where it is asked to, and only for one that is safe', () => {
    const number = (value: JsonValue, pattern: string) => fitSchema({ type: 'string', pattern }, value, { patterns: true }).length === 0
    expect(number('n-12', '^[a-z]-\\d{2}$')).toBe(true)
    expect(number('n-1', '^[a-z]-\\d{2}$')).toBe(false)
    expect(number('aaa', '^(a+)+$')).toBe(false)
    expect(fitSchema({ not: { pattern: '(' } }, 'a', { patterns: true })).toEqual([])
  })

  it('takes a text that is too long to be searched for neither a yes nor a no', () => {
    const pattern = `(?:${'a?'.repeat(100)}b)`
    const long = 'a'.repeat(400_000)
    const schemas: JsonObject[] = [{ pattern }, { not: { pattern } }, { anyOf: [{ pattern }, {}] }]
    for (const schema of schemas) expect(fitSchema(schema, long, { patterns: true }).length).toBeGreaterThan(0)
  })

  it('ends with schemas that turn in circles or multiply', () => {
    expect(fits({ $ref: '#' }, 1)).toBe(false)
    const doubling: JsonObject = { anyOf: [{ $ref: '#' }, { $ref: '#' }] }
    expect(fits(doubling, 1)).toBe(false)
    expect(fits({ not: doubling }, 1)).toBe(false)
    const tree: JsonObject = { type: 'object', properties: { next: { $ref: '#' } }, additionalProperties: false }
    expect(fits(tree, { next: { next: { next: {} } } })).toBe(true)
  })

  it('agrees with zod on what zod describes', () => {
    const shape = z.strictObject({
      text: z.string().min(1).max(5),
      count: z.int().min(0).max(9).optional(),
      tags: z.array(z.enum(['a', 'b'])).max(2),
      mood: z.union([z.literal('up'), z.number(), z.null()]),
    })
    const schema = z.toJSONSchema(shape, { io: 'input' }) as JsonObject
    const value = fc.record(
      {
        text: fc.oneof(fc.string({ maxLength: 7 }), fc.integer()),
        count: fc.oneof(fc.integer({ min: -2, max: 12 }), fc.constant(0.5)),
        tags: fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 }),
        mood: fc.constantFrom('up', 'down', 1, null, true),
        stray: fc.constant(1),
      },
      { requiredKeys: ['text', 'tags'] },
    )
    fc.assert(
      fc.property(value, (sample) => {
        expect(fits(schema, sample as JsonValue)).toBe(shape.safeParse(sample).success)
      }),
      { numRuns: 500 },
    )
  })
})
