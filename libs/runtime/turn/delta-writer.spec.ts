import { describe, expect, it } from 'vitest'
import { saltedDigest } from '#kernel/record/chain'
import { DeltaWriter } from './delta-writer.ts'
import type { Segment } from './delta-writer.ts'

function writer() {
  const flushed: Segment[][] = []
  const windows: (() => void)[] = []
  let salt = 0
  const deltas = new DeltaWriter({
    ids: { next: () => 'id', bytes: (length) => new Uint8Array(length).fill(++salt), seed: () => 1 },
    scheduler: {
      after: (_, callback) => {
        windows.push(callback)
        return () => undefined
      },
    },
    flush: (segments) => flushed.push(segments),
  })
  return {
    deltas,
    flushed,
    endWindow: () => windows.shift()?.(),
    texts: () => flushed.map((segments) => segments.map((segment) => segment.body)),
  }
}

describe('DeltaWriter', () => {
  it('lets the first piece go at once, the next when the window is over and the last one durable', () => {
    const { deltas, endWindow, texts } = writer()
    deltas.push('text', 'a')
    deltas.push('text', 'b')
    deltas.push('text', 'c')
    expect(texts()).toEqual([['a']])
    endWindow()
    expect(texts()).toEqual([['a']])
    deltas.acknowledge()
    expect(texts()).toEqual([['a'], ['bc']])
  })

  it('keeps kinds apart and hands over the rest when told to', () => {
    const { deltas, flushed, texts } = writer()
    deltas.push('reasoning', 'hm')
    deltas.push('reasoning', ' well')
    deltas.push('text', 'Yes')
    deltas.push('text', '')
    deltas.flushNow()
    expect(texts()).toEqual([['hm'], [' well', 'Yes']])
    for (const segment of flushed.flat()) expect(segment.digest).toEqual(saltedDigest(segment.salt, segment.body))
    deltas.flushNow()
    expect(flushed).toHaveLength(2)
  })

  it('cuts what is large into bounded segments and deltas, never inside a character', () => {
    const { deltas, flushed, texts } = writer()
    const text = `x${'🌊'.repeat(200_000)}`
    deltas.push('text', text)
    expect(flushed).toHaveLength(1)
    deltas.flushNow()
    expect(texts().flat().join('')).toBe(text)
    expect(flushed.length).toBeGreaterThan(1)
    for (const segments of flushed) {
      expect(segments.reduce((sum, { body }) => sum + body.length, 0)).toBeLessThanOrEqual(8 * 32 * 1024)
      for (const { body } of segments) {
        expect(body.length).toBeLessThanOrEqual(32 * 1024)
        expect(body.isWellFormed()).toBe(true)
      }
    }
  })

  it('has one delta under way at a time, and makes whoever brings too much wait until there is room (K9)', async () => {
    const { deltas, flushed, endWindow, texts } = writer()
    const words = Array.from({ length: 3_000 }, (_, index) => `${index} `)
    words.forEach((word, index) => deltas.push(index % 2 === 0 ? 'text' : 'reasoning', word))
    expect(flushed).toHaveLength(1)
    let hasRoom = false
    const room = deltas.room().then(() => (hasRoom = true))
    for (let round = 2; round <= 8; round++) {
      deltas.acknowledge()
      endWindow()
      expect(flushed).toHaveLength(round)
      await Promise.resolve()
    }
    expect(hasRoom).toBe(false)
    deltas.acknowledge()
    endWindow()
    deltas.acknowledge()
    await room
    for (let round = 0; round < 10; round++) {
      endWindow()
      deltas.acknowledge()
    }
    expect(texts().flat().join('')).toBe(words.join(''))
  })
})
