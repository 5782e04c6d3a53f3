import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DISTINCT_TOKENS_MAX, TOKEN_BYTES_MAX, TOKEN_MAX_CODE_POINTS, tokenize, tokensOf } from './tokenize.ts'

const tokens = (text: string) => [...tokensOf(text)]

describe('tokenize', () => {
  it('lower-cases, folds accents and stems Latin words', () => {
    expect(tokens('Hiking HIKED hikes')).toEqual(['hike', 'hike', 'hike'])
    expect(tokens('Café crème')).toEqual(tokens('cafe creme'))
    expect(tokens("Anna's cat doesn't like Zoë’s dog")).toEqual(['anna', 'cat', 'doesnt', 'like', 'zoe', 'dog'])
  })

  it('gives single signs and pairs of scripts written without spaces', () => {
    expect(tokens('精排模型')).toEqual(['精', '排', '精排', '模', '排模', '型', '模型'])
    expect(tokens('ラーメン')).toEqual(['ラ', 'ー', 'ラー', 'メ', 'ーメ', 'ン', 'メン'])
    expect(tokens('고양이')).toEqual(['고', '양', '고양', '이', '양이'])
    expect(tokens('แมว')).toContain('แ')
  })

  it('splits mixed runs at the border of scripts', () => {
    expect(tokens('我用Python写代码')).toEqual(['我', '用', '我用', 'python', '写', '代', '写代', '码', '代码'])
    expect(tokens('rerank 精排')).toEqual(['rerank', '精', '排', '精排'])
  })

  it('keeps words of other scripts whole', () => {
    expect(tokens('Москва прекрасна')).toEqual(['москва', 'прекрасна'])
    expect(tokens('مرحبا بالعالم')).toHaveLength(2)
  })

  it('finds numbers, their parts inside words, and widths that look alike', () => {
    expect(tokens('room 007 iPhone15')).toEqual(['room', '7', 'iphon', '15', 'iphone15'])
    expect(tokens('ＡＢＣ１２')).toEqual(tokens('abc12'))
  })

  it('finds pictographs and nothing in punctuation', () => {
    expect(tokens('🍵!')).toEqual(['🍵'])
    expect(tokens(' …!?。、')).toEqual([])
  })

  it('puts a digest in the place of a token over 64 code points', () => {
    const long = 'ж'.repeat(9_000)
    const [token] = tokens(long)
    expect(token).toMatch(/^#[0-9a-f]{32}$/)
    expect(tokens(`${long}!`)).toEqual([token])
    expect(tokens('ж'.repeat(TOKEN_MAX_CODE_POINTS))).toEqual(['ж'.repeat(TOKEN_MAX_CODE_POINTS)])
  })

  it('stops at the most distinct tokens and bytes', () => {
    const many = Array.from({ length: DISTINCT_TOKENS_MAX + 5_000 }, (_, index) => `слово${index}`).join(' ')
    expect(tokenize(many).counts.size).toBe(DISTINCT_TOKENS_MAX)
    // This sign grows elevenfold under NFKC.
    const growing = tokenize(Array.from({ length: 15_000 }, (_, index) => `ﷺ${index}`).join('x'))
    const bytes = [...growing.counts.keys()].reduce((sum, token) => sum + Buffer.byteLength(token), 0)
    expect(bytes).toBeLessThanOrEqual(TOKEN_BYTES_MAX)
  })

  it('holds its bounds for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (text) => {
        const { counts, length } = tokenize(text)
        let sum = 0
        for (const [token, count] of counts) {
          sum += count
          expect(token.length).toBeGreaterThan(0)
          expect([...token].length).toBeLessThanOrEqual(TOKEN_MAX_CODE_POINTS)
          expect(token.isWellFormed()).toBe(true)
        }
        expect(sum).toBe(length)
      }),
    )
  })

  it('finds every sign of an unspaced text again by a query of that sign', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...'周游世界在周末吃夜宵精排模型'), { minLength: 1, maxLength: 20 }), (signs) => {
        const { counts } = tokenize(signs.join(''))
        for (const sign of signs) expect(counts.has(sign)).toBe(true)
      }),
    )
  })
})
