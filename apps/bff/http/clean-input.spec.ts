import { describe, expect, it } from 'vitest'
import { LingtaiError } from '#contracts'
import { cleanJson, fieldPath } from './clean-input.ts'

function faultOf(value: unknown): { path: string; message: string } | undefined {
  try {
    cleanJson(value)
  } catch (error) {
    if (error instanceof LingtaiError && error.code === 'validation_failed') return error.errors[0]
    throw error
  }
  return undefined
}

const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels))

describe('cleaning what comes in', () => {
  it('makes lone surrogates well-formed, in values and in keys, and leaves pairs alone', () => {
    expect(cleanJson({ a: 'x\ud800y', list: ['\udc00', '😀'], 'k\ud800': 1 })).toEqual({
      a: 'x\ufffdy',
      list: ['\ufffd', '😀'],
      'k\ufffd': 1,
    })
  })

  it('refuses a NUL wherever it stands, and says where', () => {
    expect(faultOf({ citations: [{ text: 'a' }, { text: 'a\0b' }] })?.path).toBe('citations[1].text')
    expect(faultOf({ 'na\0me': 1 })?.path).toBe('na\ufffdme')
    expect(faultOf('\0')?.path).toBe('body')
  })

  it('takes 64 levels and refuses 65', () => {
    expect(faultOf(nested(64))).toBeUndefined()
    expect(faultOf(nested(65))?.message).toMatch(/64 levels/)
  })

  it('survives what would overflow a recursive walk', () => {
    expect(faultOf(nested(200_000))?.message).toMatch(/64 levels/)
  })

  it('refuses __proto__ as a key and pollutes nothing', () => {
    expect(faultOf(JSON.parse('{"a":{"__proto__":{"polluted":true}}}'))?.path).toBe('a.__proto__')
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  it('keeps other values as they are', () => {
    const value = { a: 1.5, b: null, c: true, d: [1, [2, { constructor: 'x' }]] }
    expect(cleanJson(structuredClone(value))).toEqual(value)
  })

  it('writes places as clients read them', () => {
    expect(fieldPath(['citations', 0, 'from'])).toBe('citations[0].from')
    expect(fieldPath(['id'], 'params')).toBe('params.id')
    expect(fieldPath([])).toBe('body')
  })
})
