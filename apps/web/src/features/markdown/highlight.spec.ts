import { describe, expect, it } from 'vitest'
import { highlight } from './highlight.ts'

describe('highlight', () => {
  it('names comments, strings, numbers and keywords', () => {
    const kinds = highlight('const a = "x" // 12\nreturn 3.5').filter((token) => token.kind !== null)
    expect(kinds).toEqual([
      { kind: 'keyword', text: 'const' },
      { kind: 'string', text: '"x"' },
      { kind: 'comment', text: '// 12' },
      { kind: 'keyword', text: 'return' },
      { kind: 'number', text: '3.5' },
    ])
  })

  it('loses no letter of any text', () => {
    for (const code of ['', 'a\n#b', '"open', '/* open', '中文 `x', "it's", '-- sql', '<!-- x', '\u{1F600} 12px']) {
      expect(
        highlight(code)
          .map((token) => token.text)
          .join(''),
      ).toBe(code)
    }
  })
})
