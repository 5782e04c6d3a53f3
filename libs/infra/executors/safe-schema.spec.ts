import { describe, expect, it } from 'vitest'
import type { JsonObject } from '#kernel/ports/model-gateway'
import { fitSchema } from '#kernel/tools/fit-schema'
import { isCanonical, safeSchema } from './safe-schema.ts'

/** The largest and the least signed 64-bit integer, as a parser reads them. */
const most = JSON.parse('9223372036854775807') as number
const least = JSON.parse('-9223372036854775808') as number

describe('a schema as it is kept', () => {
  it('loses bounds that no argument could pass, and remarks that JSON does not carry', () => {
    const given = {
      type: 'object',
      'x-internal-id': most,
      properties: {
        after: { type: 'integer', format: 'int64', minimum: least, maximum: most, example: most, default: 3 },
        list: { type: 'array', maxItems: most, minItems: 1, items: { exclusiveMaximum: most, exclusiveMinimum: least, examples: [most] } },
      },
    }
    expect(safeSchema(given)).toEqual({
      type: 'object',
      properties: {
        after: { type: 'integer', format: 'int64', default: 3 },
        list: { type: 'array', minItems: 1, items: {} },
      },
    })
    const kept = safeSchema(given)
    for (const after of [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0]) {
      expect(fitSchema(kept, { after }).length).toBe(fitSchema(given, { after }).length)
    }
  })

  it('keeps what says something, and members that are only named like a keyword', () => {
    const given = {
      type: 'object',
      properties: {
        maximum: { type: 'integer', maximum: 5, minimum: Number.MIN_SAFE_INTEGER },
        example: { type: 'object', properties: { 'x-id': { const: 1 } } },
        default: { enum: [{ maximum: most }] },
      },
      required: ['example'],
    }
    expect(safeSchema(given)).toEqual(given)
  })

  it('leaves to be refused what would fit nothing, or something else than it says', () => {
    const parts: JsonObject[] = [{ minimum: most }, { maximum: least }, { enum: [most] }, { const: most }, { multipleOf: most }]
    for (const part of parts) {
      expect(safeSchema(part)).toEqual(part)
      expect(isCanonical(safeSchema(part))).toBe(false)
    }
  })
})
