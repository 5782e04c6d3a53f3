import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nextBatch } from './extraction-batch.ts'
import type { ReadableMessage } from './extraction-batch.ts'
import type { ExtractionMark } from './ports.ts'

const message = (node_id: string, text: string | null, over: Partial<ReadableMessage> = {}): ReadableMessage => ({
  node_id,
  tree_id: 'tree',
  role: 'user',
  speaker_name: null,
  trust: 'trusted',
  zone: null,
  at: new Date('2026-06-01T12:00:00.000Z'),
  content_id: `content-${node_id}`,
  run_id: null,
  text,
  ...over,
})
const next = (messages: ReadableMessage[], mark: ExtractionMark | null = null, limits = { units: 20, messages: 3 }) =>
  nextBatch({ messages, mark, zone: 'Asia/Shanghai', names: { user: 'Ada', character: 'Mira' }, limits })

describe('nextBatch', () => {
  it('names speakers and writes local time', () => {
    const batch = next([
      message('a', 'Hello.'),
      message('b', 'Hi.', { role: 'character' }),
      message('c', 'Ho.', { speaker_name: 'Ben', zone: 'UTC' }),
    ])
    expect(batch?.messages).toEqual([
      { id: 'a', role: 'user', speaker: 'Ada', at: '2026-06-01T20:00:00+08:00', text: 'Hello.' },
      { id: 'b', role: 'character', speaker: 'Mira', at: '2026-06-01T20:00:00+08:00', text: 'Hi.' },
      { id: 'c', role: 'user', speaker: 'Ben', at: '2026-06-01T12:00:00+00:00', text: 'Ho.' },
    ])
    expect(batch).toMatchObject({ last: true, end: { node_id: 'c', offset: 3 } })
  })

  it('takes whole messages, as many as fit, and goes on behind them', () => {
    const messages = [message('a', 'x'.repeat(12)), message('b', 'y'.repeat(12)), message('c', 'z')]
    const first = next(messages)
    expect(first).toMatchObject({ messages: [{ id: 'a' }], last: false, end: { node_id: 'a', offset: 12 } })
    expect(next(messages, first?.end)).toMatchObject({ messages: [{ id: 'b' }, { id: 'c' }], last: true })
  })

  it('passes over what is deleted, and says when nothing is left', () => {
    expect(next([message('a', null)])).toBeNull()
    expect(next([message('a', 'x'), message('b', null)], { node_id: 'a', offset: 1 })).toBeNull()
    expect(next([message('a', null), message('b', 'y')], { node_id: 'a', offset: 7 })).toMatchObject({ messages: [{ id: 'b' }] })
  })

  it('shows every message once, in order, whatever the sizes', () => {
    const texts = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 70 }), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(texts, fc.integer({ min: 4, max: 40 }), fc.integer({ min: 1, max: 4 }), (list, units, most) => {
        const messages = list.map((text, index) => message(String(index), text))
        const seen = new Map<string, string>()
        let mark: ExtractionMark | null = null
        for (let steps = 0; ; steps++) {
          expect(steps).toBeLessThan(1_000)
          const batch = next(messages, mark, { units, messages: most })
          if (!batch) break
          expect(batch.messages.length).toBeLessThanOrEqual(most)
          for (const { id, text } of batch.messages) {
            expect(text.isWellFormed()).toBe(true)
            seen.set(id, (seen.get(id) ?? '') + text)
          }
          mark = batch.end
          if (batch.last) break
        }
        for (const { node_id, text } of messages) if (text?.trim()) expect((seen.get(node_id) ?? '').trimEnd()).toBe(text.trimEnd())
      }),
    )
  })
})
