import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DedupeDecision } from '#contracts'
import { foldEqual, memoryDigest, normalisedText, placeProposals } from './dedupe.ts'
import type { PoolEntry } from './dedupe.ts'

const key = new Uint8Array(32).fill(7)
const entry = (memoryId: string, over: Partial<PoolEntry> = {}): PoolEntry => ({
  memoryId,
  versionId: `${memoryId}-1`,
  contentId: `${memoryId}-text`,
  text: memoryId,
  type: 'preference',
  level: 'explicit',
  state: 'live',
  mentions: 1,
  ...over,
})
const decide = (index: number, action: DedupeDecision['action'], target_ids: string[] = [], content?: string): DedupeDecision => ({
  index,
  action,
  target_ids,
  content,
})
const proposals = [
  { text: 'likes tea', type: 'preference' as const },
  { text: 'now Messi', type: 'preference' as const },
]

describe('normalisedText', () => {
  it.each([
    ['Likes tea.', 'likes  tea'],
    ['“Likes tea!”', 'likes tea'],
    ['ＬＩＫＥＳ tea', 'likes tea'],
    ['喜欢茶。', '喜欢茶'],
  ])('takes %s for %s', (left, right) => {
    expect(normalisedText(left)).toBe(normalisedText(right))
  })

  it.each([
    ['likes C++', 'likes C'],
    ['周游世界', '在周末吃夜宵'],
    ['likes tea', 'likes no tea'],
    ['🍵', '☕'],
  ])('tells %s from %s', (left, right) => {
    expect(normalisedText(left)).not.toBe(normalisedText(right))
  })

  it('is its own normal form', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(normalisedText(normalisedText(text))).toBe(normalisedText(text))
      }),
    )
  })
})

describe('memoryDigest', () => {
  it('depends on the key', () => {
    expect(memoryDigest(key, 'Likes tea.')).toEqual(memoryDigest(key, 'likes tea'))
    expect(memoryDigest(new Uint8Array(32), 'likes tea')).not.toEqual(memoryDigest(key, 'likes tea'))
    expect(memoryDigest(key, 'likes tea')).toHaveLength(32)
  })
})

describe('placeProposals', () => {
  it('places each action', () => {
    const pool = [entry('a'), entry('b'), entry('c')]
    expect(placeProposals({ proposals, pool, decisions: [decide(1, 'update', ['a']), decide(0, 'store')] })).toEqual({
      ok: true,
      placements: [
        { action: 'store', index: 0 },
        { action: 'update', index: 1, target: pool[0], text: 'now Messi' },
      ],
    })
    expect(placeProposals({ proposals, pool, decisions: [decide(0, 'skip', ['b']), decide(1, 'merge', ['a', 'c', 'a'], 'both')] })).toEqual(
      {
        ok: true,
        placements: [
          { action: 'reinforce', index: 0, target: pool[1] },
          { action: 'merge', index: 1, targets: [pool[0], pool[2]], text: 'both' },
        ],
      },
    )
  })

  it.each([
    ['an id outside the pool', [decide(0, 'skip', ['foreign']), decide(1, 'store')]],
    ['no target', [decide(0, 'skip'), decide(1, 'store')]],
    ['two targets of an update', [decide(0, 'update', ['a', 'b']), decide(1, 'store')]],
    ['one target changed twice', [decide(0, 'update', ['a']), decide(1, 'merge', ['a', 'b'])]],
    ['a proposal without a decision', [decide(0, 'store')]],
    ['a proposal decided twice', [decide(0, 'store'), decide(0, 'skip', ['a']), decide(1, 'store')]],
    ['an unknown proposal', [decide(0, 'store'), decide(1, 'store'), decide(2, 'store')]],
  ])('refuses %s', (_name, decisions) => {
    const result = placeProposals({ proposals, pool: [entry('a'), entry('b')], decisions })
    expect(result.ok).toBe(false)
  })

  it('either places every proposal once, within the pool, each target changed at most once, or nothing', () => {
    const pool = ['a', 'b', 'c'].map((id) => entry(id))
    const decision = fc.record({
      index: fc.nat(3),
      action: fc.constantFrom('store', 'skip', 'update', 'merge'),
      target_ids: fc.array(fc.constantFrom('a', 'b', 'c', 'foreign'), { maxLength: 3 }),
    })
    fc.assert(
      fc.property(fc.array(decision, { maxLength: 4 }), (decisions) => {
        const result = placeProposals({ proposals, pool, decisions })
        if (!result.ok) {
          expect(result.problems.length).toBeGreaterThan(0)
          return
        }
        expect(result.placements.map((placement) => placement.index)).toEqual([0, 1])
        const changed = result.placements.flatMap((placement) =>
          placement.action === 'update'
            ? [placement.target.memoryId]
            : placement.action === 'merge'
              ? placement.targets.map((target) => target.memoryId)
              : [],
        )
        expect(new Set(changed).size).toBe(changed.length)
        expect(changed.every((id) => pool.some((known) => known.memoryId === id))).toBe(true)
      }),
    )
  })
})

describe('foldEqual', () => {
  it('joins equal texts and keeps the rest in order', () => {
    const items = [
      { text: 'Likes tea', sources: [1] },
      { text: 'walks', sources: [2] },
      { text: 'likes tea.', sources: [3] },
    ]
    expect(
      foldEqual(
        items,
        (item) => item.text,
        (first, again) => ({ ...first, sources: [...first.sources, ...again.sources] }),
      ),
    ).toEqual([
      { text: 'Likes tea', sources: [1, 3] },
      { text: 'walks', sources: [2] },
    ])
  })
})
