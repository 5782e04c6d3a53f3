import { describe, expect, it } from 'vitest'
import { wordDiff } from './word-diff.ts'

const side = (pieces: ReturnType<typeof wordDiff>, left: 'removed' | 'added') =>
  pieces
    .filter((piece) => piece.kind === 'same' || piece.kind === left)
    .map((piece) => piece.text)
    .join('')

describe('wordDiff', () => {
  it('marks the words that changed', () => {
    expect(wordDiff('likes green tea', 'likes aged white tea').filter((piece) => piece.kind === 'removed')).toEqual([
      { kind: 'removed', text: 'green' },
    ])
  })

  it('cuts Chinese by the character', () => {
    expect(wordDiff('她喜欢绿茶', '她喜欢白茶')).toEqual([
      { kind: 'same', text: '她喜欢' },
      { kind: 'removed', text: '绿' },
      { kind: 'added', text: '白' },
      { kind: 'same', text: '茶' },
    ])
  })

  it('gives both texts back, also the empty and the very long one', () => {
    const long = 'word '.repeat(2000)
    for (const [before, after] of [
      ['', 'a b'],
      ['a b', ''],
      ['x y z', 'z y x'],
      [long, `${long}more`],
    ] as const) {
      const pieces = wordDiff(before, after)
      expect(side(pieces, 'removed')).toBe(before)
      expect(side(pieces, 'added')).toBe(after)
    }
  })
})
