import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { combineVectors, DIALOGUE_MAX_UNITS, queryTexts, queryTokens } from './query.ts'

const one = (text: string) => queryTokens([{ text, weight: 1 }]).tokens

describe('queryTexts', () => {
  it('asks with the message and the dialogue that ends in it', () => {
    expect(queryTexts({ message: 'And the tea?', dialogue: 'I like tea.\nAnd the tea?' })).toEqual([
      { text: 'And the tea?', weight: 1 },
      { text: 'I like tea.\nAnd the tea?', weight: 1 },
    ])
    expect(queryTexts({ message: 'hi', dialogue: ' hi ' })).toHaveLength(1)
    expect(queryTexts({ message: ' ', dialogue: '' })).toEqual([])
  })

  it('takes the end of a long dialogue and breaks no sign', () => {
    const [, recent] = queryTexts({ message: 'x', dialogue: '🍵'.repeat(3_000) + 'y' })
    expect(recent?.text.length).toBeLessThanOrEqual(DIALOGUE_MAX_UNITS)
    expect(recent?.text.isWellFormed()).toBe(true)
    expect(recent?.text.endsWith('🍵y')).toBe(true)
  })
})

describe('queryTokens', () => {
  it('leaves common words out, unless there is nothing else', () => {
    expect(one('What is the name of my cat?')).toEqual(['name', 'cat'])
    expect(one('我的猫')).toEqual(['我的', '猫', '的猫'])
    expect(one('What is it?')).toEqual(['what', 'is', 'it'])
    expect(one('的')).toEqual(['的'])
  })

  it('weighs a text by its size, so that dialogue does not drown the question', () => {
    const { tokens, weights } = queryTokens([
      { text: 'jasmine', weight: 1 },
      { text: 'jasmine opens rivers mountains', weight: 1 },
    ])
    expect(Object.fromEntries(tokens.map((token, index) => [token, weights[index]]))).toEqual({
      jasmin: 1.5,
      open: 0.5,
      river: 0.5,
      mountain: 0.5,
    })
  })
})

describe('combineVectors', () => {
  it('is the normalised sum, or nothing where the sum has no direction', () => {
    const east = Float32Array.of(1, 0)
    const north = Float32Array.of(0, 1)
    expect([...(combineVectors([east, north], [1, 1]) ?? [])]).toEqual([Math.fround(Math.SQRT1_2), Math.fround(Math.SQRT1_2)])
    expect(combineVectors([east, Float32Array.of(-1, 0)], [1, 1])).toBeNull()
    expect(combineVectors([], [])).toBeNull()
    expect(combineVectors([Float32Array.of(Number.NaN, 1)], [1])).toBeNull()
    expect(() => combineVectors([east, Float32Array.of(1)], [1, 1])).toThrow(RangeError)
  })

  it('has length one', () => {
    const vector = fc
      .array(fc.float({ min: -1, max: 1, noNaN: true }), { minLength: 4, maxLength: 4 })
      .map((values) => Float32Array.from(values))
    fc.assert(
      fc.property(fc.array(vector, { minLength: 1, maxLength: 3 }), (vectors) => {
        const combined = combineVectors(vectors, [1, 0.5, 0.25])
        if (combined) expect(Math.hypot(...combined)).toBeCloseTo(1, 5)
      }),
    )
  })
})
