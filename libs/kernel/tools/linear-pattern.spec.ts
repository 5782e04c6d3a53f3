import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LinearPattern } from './linear-pattern.ts'

const plenty = () => ({ left: 10_000_000 })
const isIn = (source: string, text: string): boolean | null => {
  const pattern = LinearPattern.read(source)
  if (typeof pattern === 'string') throw new Error(`${source} ${pattern}`)
  return pattern.isIn(text, plenty())
}

describe('LinearPattern', () => {
  it.each<[string, string[], string[]]>([
    ['^[a-z0-9]+(-[a-z0-9]+)*$', ['a', 'a-b-c1'], ['', 'a-', '-a', 'A']],
    ['^\\d{4}-\\d{2}-\\d{2}$', ['2026-11-30'], ['2026-11-3', '2026-11-300', 'x2026-11-30']],
    ['b', ['abc'], ['ac']],
    ['', ['', 'x'], []],
    ['^$', [''], ['x']],
    ['^(?:ja|nein)$', ['ja', 'nein'], ['jain', 'j']],
    ['^[^,]{2,3}$', ['好的', '好的呀'], ['好', '好的呀吗', 'a,b']],
    ['^.$', ['好', '😀'], ['', 'ab', '\n']],
    ['^[\\u4e00-\\u9fff]+$', ['你好'], ['你好!', 'hi']],
    ['^\\u{1F600}\\x41$', ['😀A'], ['😀B']],
    ['a.*?z|^q', ['xazx', 'q'], ['xq', 'za']],
    ['[]', [], ['', 'a']],
    ['^[a-]\\.\\/$', ['a./', '-./'], ['b./', 'axx']],
    ['(ab|cd){2}', ['abcd', 'xcdab'], ['ab', 'abxcd']],
    ['^(a|)b$', ['ab', 'b'], ['aab']],
  ])('%s', (source, found, missing) => {
    for (const text of found) expect(isIn(source, text), text).toBe(true)
    for (const text of missing) expect(isIn(source, text), text).toBe(false)
  })

  it.each([
    ['(a+)+$', 'repeats a repetition'],
    ['^(a*)*b', 'repeats a repetition'],
    ['((a{1,9}))+', 'repeats a repetition'],
    ['([a-z]+\\s?)+$', 'repeats a repetition'],
    ['(x|a+){9}', 'repeats a repetition'],
    ['(a|a)*$', 'repeats alternatives of which one begins another'],
    ['(a|aa)+$', 'repeats alternatives of which one begins another'],
    ['((\\w|\\d)x?)+', 'repeats alternatives of which one begins another'],
    ['(', 'does not close a group'],
    [')', 'closes a group that it did not open'],
    ['[a', 'ends too early'],
    ['[z-a]', 'has a range that cannot be read'],
    ['*a', 'has a * out of place'],
    ['a**', 'repeats a repetition'],
    ['a{3,2}', 'has a count that cannot be read'],
    ['a{', 'has a count that is no number up to 1000'],
    ['a{1001}', 'has a count that is no number up to 1000'],
    ['(?=a)', 'has a group of a kind that is not understood here'],
    ['(?<n>a)', 'has a group of a kind that is not understood here'],
    ['(a)\\1', 'has \\1, which is not understood here'],
    ['\\bword', 'has \\b, which is not understood here'],
    ['\\p{L}', 'has \\p, which is not understood here'],
    ['\\u{110000}', 'names a character that there is not'],
    ['((a{99}b){99}c){99}', 'is too large once its counts are written out'],
    ['(((){1000}){1000}){1000}', 'is too large once its counts are written out'],
    ['a'.repeat(501), 'is longer than 500 characters'],
    ['(((('.repeat(125), 'does not close a group'],
  ])('refuses %s', (source, problem) => {
    expect(LinearPattern.read(source)).toBe(problem)
  })

  it('says nothing where there is too little work left', () => {
    const pattern = LinearPattern.read('b$')
    expect(typeof pattern === 'string' ? pattern : pattern.isIn('a'.repeat(100), { left: 50 })).toBe(null)
  })

  it('takes no more steps for a text than the text is long, times its own size', () => {
    const pattern = LinearPattern.read('(.*a){12}$')
    const work = plenty()
    expect(typeof pattern === 'string' ? pattern : pattern.isIn(`${'a'.repeat(5_000)}b`, work)).toBe(false)
    expect(plenty().left - work.left).toBeLessThan(5_001 * 60)
  })

  it('finds what an engine that tries again finds', () => {
    const { source } = fc.letrec<{ source: string }>((tie) => ({
      source: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\w', '^', '$', 'ä', '😀', '(?:)'),
        fc.tuple(tie('source'), tie('source')).map(([left, right]) => `${left}${right}`),
        fc.tuple(tie('source'), tie('source')).map(([left, right]) => `(${left}|${right})`),
        fc.tuple(tie('source'), fc.constantFrom('*', '+', '?', '{2}', '{1,3}', '{2,}', '*?')).map(([part, times]) => `(${part})${times}`),
      ),
    }))
    const text = fc.array(fc.constantFrom('a', 'b', '\n', 'ä', '😀', '1'), { maxLength: 7 }).map((signs) => signs.join(''))
    let compared = 0
    fc.assert(
      fc.property(source, text, (one, sample) => {
        const pattern = LinearPattern.read(one)
        if (typeof pattern === 'string') return
        compared++
        expect(pattern.isIn(sample, plenty())).toBe(new RegExp(one, 'u').test(sample))
      }),
      { numRuns: 3_000 },
    )
    expect(compared).toBeGreaterThan(500)
  })
})
