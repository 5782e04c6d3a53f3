import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createHash } from 'node:crypto'
import { createLexicalEmbedder } from './lexical-embedder.ts'

const embedder = createLexicalEmbedder()
const cause = { purpose: 'recall', ownerId: null, characterId: null, runId: null } as const
const one = async (text: string): Promise<Float32Array> => (await embedder.embed([text], cause))[0] ?? new Float32Array()
const cosine = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)
const nearest = async (query: string, texts: string[]): Promise<string | undefined> => {
  const [q, ...rest] = await embedder.embed([query, ...texts], cause)
  const scores = rest.map((vector) => cosine(q ?? new Float32Array(), vector))
  return texts[scores.indexOf(Math.max(...scores))]
}

describe('the lexical embedder', () => {
  it('names its space honestly', () => {
    expect(embedder.space).toEqual({ id: 'lexical-1024-v1', model: 'lexical', version: 'v1', dimensions: 1024 })
  })

  it('gives unit vectors, or the zero vector, for any text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 200 }), async (text) => {
        const vector = await one(text)
        expect(vector).toHaveLength(1024)
        const length = Math.sqrt(cosine(vector, vector))
        if (embedder.isDegenerate(vector)) expect(length).toBe(0)
        else expect(length).toBeCloseTo(1, 5)
      }),
    )
  })

  it('finds what shares words, in English and Chinese, through inflection', async () => {
    const english = [
      'The user likes jasmine tea.',
      'The user moved to Berlin.',
      "The user's sister is called Mei.",
      'The user will paint the kitchen.',
    ]
    expect(await nearest('what tea does she like?', english)).toBe(english[0])
    expect(await nearest('moving to Berlin', english)).toBe(english[1])
    expect(await nearest('I finished painting today', english)).toBe(english[3])
    const chinese = ['用户喜欢茉莉花茶', '用户搬到了上海', '用户的妹妹叫小梅', '用户明天要去面试']
    expect(await nearest('我们喝茉莉花吧', chinese)).toBe(chinese[0])
    expect(await nearest('上海的天气', chinese)).toBe(chinese[1])
    expect(await nearest('面试好紧张', chinese)).toBe(chinese[3])
  })

  it('takes texts that differ in case, width and punctuation alone for the same', async () => {
    expect(cosine(await one('Jasmine tea, please!'), await one('ｊａｓｍｉｎｅ TEA -- please'))).toBeCloseTo(1, 5)
  })

  it('is degenerate where a text says nothing', async () => {
    for (const text of ['', '   ', '?!…', 'what is it that you do?', '是不是的呢', '😀'])
      expect(embedder.isDegenerate(await one(text))).toBe(true)
    for (const text of ['茶', 'tea', '42', 'Ω', 'ก', '한국']) expect(embedder.isDegenerate(await one(text))).toBe(false)
    expect(embedder.isDegenerate(new Float32Array([Number.NaN, 1]))).toBe(true)
    expect(embedder.isDegenerate(new Float32Array([Number.POSITIVE_INFINITY]))).toBe(true)
  })

  it('never changes: stored vectors depend on it', async () => {
    const vectors = await embedder.embed(['The quick brown fox naps.', '她喜欢在河边散步，café 2024'], cause)
    const digest = createHash('sha256')
    for (const vector of vectors) digest.update(Array.from(vector, (value) => Math.round(value * 1e5)).join(','))
    expect(digest.digest('hex').slice(0, 16)).toMatchInlineSnapshot(`"74dc6a8bc5ef2654"`)
  })
})
