import { describe, expect, it } from 'vitest'
import { splitBlocks } from './split-blocks.ts'

describe('splitBlocks', () => {
  it('cuts at blank lines', () => {
    expect(splitBlocks('one\ntwo\n\n\nthree\n')).toEqual(['one\ntwo', 'three\n'.trimEnd()])
  })

  it('keeps fenced code together, closed or still open', () => {
    expect(splitBlocks('a\n\n```js\nx\n\ny\n```\n\nb')).toEqual(['a', '```js\nx\n\ny\n```', 'b'])
    expect(splitBlocks('~~~\nx\n\ny')).toEqual(['~~~\nx\n\ny'])
  })

  it('never changes a finished block as more text comes', () => {
    const text = 'first *one*\n\n- a\n- b\n\n```\ncode\n\nmore\n```\n\nlast'
    let before: string[] = []
    for (let end = 1; end <= text.length; end += 1) {
      const blocks = splitBlocks(text.slice(0, end))
      expect(blocks.slice(0, before.length - 1)).toEqual(before.slice(0, -1))
      before = blocks
    }
  })
})
