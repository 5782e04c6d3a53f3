import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { NewEvent } from '#contracts'
import { canonicalJson, NotCanonicalError } from './canonical-json.ts'
import { chainEvents, chainHash, EMPTY_HEAD, WrongStreamError } from './chain.ts'

const runId = '01935f00-0000-7000-8000-00000000000a'
const turn = (n: number): NewEvent => ({
  type: 'turn.started',
  payload: { turn: n },
  actor: 'kernel',
  at: '2026-01-01T00:00:00.000Z',
  cause: { tag: 'test' },
  run_id: runId,
})

describe('canonical JSON', () => {
  it('sorts members by UTF-16 code units and drops white space, as RFC 8785 shows', () => {
    expect(canonicalJson({ '\u20ac': 1, '\r': 2, '1': 3, '\u{1f600}': 4, '\ufb33': 5 })).toBe('{"\\r":2,"1":3,"€":1,"😀":4,"\ufb33":5}')
    expect(canonicalJson([333333333.3333333, 4.5, 2e-3, 1e-27, -0])).toBe('[333333333.3333333,4.5,0.002,1e-27,0]')
  })

  it('refuses what would not survive a reader', () => {
    for (const value of [Number.NaN, Infinity, 2 ** 53, 1e30, '\ud800', 1n]) expect(() => canonicalJson(value)).toThrow(NotCanonicalError)
  })

  it('gives the same text for the same value whatever the order of its members', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: 'grapheme' }), fc.oneof(fc.integer(), fc.boolean(), fc.string({ unit: 'grapheme' }))),
        (value) => {
          const turned = Object.fromEntries(Object.entries(value).toReversed())
          expect(canonicalJson(turned)).toBe(canonicalJson(value))
          expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
        },
      ),
    )
  })
})

describe('chain', () => {
  it('gives each event the next number and the hash over the one before', () => {
    const { chained, head } = chainEvents({ stream: `run:${runId}`, ownerId: null, head: EMPTY_HEAD, events: [turn(1), turn(2), turn(3)] })
    expect(chained.map((event) => event.seq)).toEqual([1, 2, 3])
    let previous = EMPTY_HEAD.hash
    for (const event of chained) {
      expect(event.prev_hash).toEqual(previous)
      expect(event.hash).toEqual(chainHash(previous, event.canonical))
      previous = event.hash
    }
    expect(head).toEqual({ seq: 3, hash: previous })
  })

  it('changes every later hash when one byte of an event changes', () => {
    const first = chainEvents({ stream: `run:${runId}`, ownerId: null, head: EMPTY_HEAD, events: [turn(1), turn(2)] })
    const second = chainEvents({ stream: `run:${runId}`, ownerId: null, head: EMPTY_HEAD, events: [turn(3), turn(2)] })
    expect(second.chained[1]?.hash).not.toEqual(first.chained[1]?.hash)
  })

  it('refuses a payload that the dictionary does not know, and an event on another kind of stream', () => {
    const odd = { ...turn(1), payload: { turn: 1, note: 'free text' } } as unknown as NewEvent
    expect(() => chainEvents({ stream: `run:${runId}`, ownerId: null, head: EMPTY_HEAD, events: [odd] })).toThrow(/note/)
    expect(() => chainEvents({ stream: `tree:${runId}`, ownerId: null, head: EMPTY_HEAD, events: [turn(1)] })).toThrow(WrongStreamError)
  })
})
