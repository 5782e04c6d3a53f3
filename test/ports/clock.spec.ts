import { afterEach, describe, expect, it, vi } from 'vitest'
import { SystemIds, systemClock, systemScheduler } from '#infra/system/clock'

afterEach(() => vi.useRealTimers())

const millisecondsOf = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

describe('Ids', () => {
  it('are UUIDs of version 7 that begin with the time', () => {
    const before = Date.now()
    const id = new SystemIds().next()
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(millisecondsOf(id)).toBeGreaterThanOrEqual(before)
    expect(millisecondsOf(id)).toBeLessThanOrEqual(Date.now())
  })

  it('rise, also when many are made in one millisecond, and never repeat', () => {
    vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05.678Z') })
    const ids = new SystemIds()
    const made = Array.from({ length: 20_000 }, () => ids.next())
    expect(made).toEqual(made.toSorted())
    expect(new Set(made).size).toBe(made.length)
  })

  it('rise over a clock that is set back', () => {
    vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05.678Z') })
    const ids = new SystemIds()
    const first = ids.next()
    vi.setSystemTime(new Date('2026-01-02T02:00:00.000Z'))
    const later = Array.from({ length: 5_000 }, () => ids.next())
    expect([first, ...later]).toEqual([first, ...later].toSorted())
    vi.setSystemTime(new Date('2026-01-02T04:00:00.000Z'))
    expect(millisecondsOf(ids.next())).toBe(Date.parse('2026-01-02T04:00:00.000Z'))
  })

  it('differ between processes that begin at the same time', () => {
    vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05.678Z') })
    const processes = Array.from({ length: 50 }, () => new SystemIds())
    const made = processes.flatMap((ids) => Array.from({ length: 100 }, () => ids.next()))
    expect(new Set(made).size).toBe(made.length)
  })

  it('give random bytes of a length and seeds in their range', () => {
    const ids = new SystemIds()
    expect(ids.bytes(32)).toHaveLength(32)
    expect(Buffer.compare(ids.bytes(32), ids.bytes(32))).not.toBe(0)
    for (let times = 0; times < 1_000; times++) {
      const seed = ids.seed()
      expect(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31).toBe(true)
    }
  })
})

describe('Clock and Scheduler', () => {
  it('the clock is the time of day', () => {
    vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05.678Z') })
    expect(systemClock.now().toISOString()).toBe('2026-01-02T03:04:05.678Z')
  })

  it('the scheduler calls back once, after the time and not before, unless it is taken back', () => {
    vi.useFakeTimers()
    const told: string[] = []
    systemScheduler.after(100, () => told.push('kept'))
    const takeBack = systemScheduler.after(100, () => told.push('taken back'))
    vi.advanceTimersByTime(99)
    expect(told).toEqual([])
    takeBack()
    vi.advanceTimersByTime(1_000)
    expect(told).toEqual(['kept'])
    takeBack()
  })
})
