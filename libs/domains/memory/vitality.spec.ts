import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { softFactor, vitality } from './vitality.ts'

const now = new Date('2026-11-29T00:00:00.000Z')
const daysAgo = (days: number) => new Date(now.getTime() - days * 86_400_000)

describe('vitality', () => {
  it('halves with each half-life since the event', () => {
    expect(vitality({ eventAt: daysAgo(0), lastHitAt: null, now, halfLifeDays: 30 })).toBe(1)
    expect(vitality({ eventAt: daysAgo(30), lastHitAt: null, now, halfLifeDays: 30 })).toBeCloseTo(0.5, 12)
    expect(vitality({ eventAt: daysAgo(90), lastHitAt: null, now, halfLifeDays: 30 })).toBeCloseTo(0.125, 12)
  })

  it('counts from the last recall where that is later (R21)', () => {
    expect(vitality({ eventAt: daysAgo(365), lastHitAt: daysAgo(30), now, halfLifeDays: 30 })).toBeCloseTo(0.5, 12)
    expect(vitality({ eventAt: daysAgo(-5), lastHitAt: daysAgo(30), now, halfLifeDays: 30 })).toBe(1)
  })

  it('stays within (0, 1] and never grows with age', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1000, max: 100_000 }), fc.integer({ min: 1, max: 2_000 }), (age, halfLifeDays) => {
        const value = vitality({ eventAt: daysAgo(age), lastHitAt: null, now, halfLifeDays })
        expect(value).toBeGreaterThan(0)
        expect(value).toBeLessThanOrEqual(1)
        expect(vitality({ eventAt: daysAgo(age + 1), lastHitAt: null, now, halfLifeDays })).toBeLessThanOrEqual(value)
      }),
    )
  })
})

describe('softFactor', () => {
  it('never lets a match that leads in its legs fall below the eighth place', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(share, share, share, share, fc.integer({ min: 9, max: 500 }), (alive, priority, otherAlive, otherPriority, rank) => {
        const leader = softFactor({ vitality: alive, priority }) / (60 + 1)
        const other = softFactor({ vitality: otherAlive, priority: otherPriority }) / (60 + rank)
        expect(leader).toBeGreaterThan(other)
      }),
    )
  })
})
