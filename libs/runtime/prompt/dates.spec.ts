import { describe, expect, it } from 'vitest'
import { describeDuration, formatDate } from './dates.ts'

const at = '2026-11-29T23:05:09.007Z'

describe('formatDate', () => {
  it.each([
    ['LT', 0, '11:05 PM'],
    ['LT', 480, '7:05 AM'],
    ['LL', 480, 'November 30, 2026'],
    ['LLLL', 480, 'Monday, November 30, 2026 7:05 AM'],
    ['L LTS', 0, '11/29/2026 11:05:09 PM'],
    ['YYYY-MM-DD HH:mm:ss.SSS Z', -210, '2026-11-29 19:35:09.007 -03:30'],
    ['dddd, Do [of] MMMM', 0, 'Sunday, 29th of November'],
    ['ddd D MMM YY, h a', 0, 'Sun 29 Nov 26, 11 pm'],
    ['DDD Q E d kk ZZ X', 330, '334 4 1 1 04 +0530 1795993509'],
  ])('%s at %i minutes', (pattern, offset, text) => {
    expect(formatDate(at, offset, pattern)).toBe(text)
  })

  it('knows midnight, noon and ordinals', () => {
    expect(formatDate('2026-02-01T00:00:00.000Z', 0, 'h A k H Do')).toBe('12 AM 24 0 1st')
    expect(formatDate('2026-02-22T12:00:00.000Z', 0, 'h A Do')).toBe('12 PM 22nd')
    expect(formatDate('2026-02-11T12:00:00.000Z', 0, 'Do DDDo')).toBe('11th 42nd')
    expect(formatDate('2026-02-13T12:00:00.000Z', 0, 'Do')).toBe('13th')
    expect(formatDate('2026-12-03T12:00:00.000Z', 0, 'Do DDDD')).toBe('3rd 337')
  })

  it('crosses the year with the offset', () => {
    expect(formatDate('2026-12-31T20:00:00.000Z', 480, 'YYYY-MM-DD DDD')).toBe('2027-01-01 1')
  })
})

describe('describeDuration', () => {
  const minute = 60_000
  const hour = 60 * minute
  const day = 24 * hour
  it.each([
    [0, 'a few seconds'],
    [44_000, 'a few seconds'],
    [45_000, 'a minute'],
    [89_000, 'a minute'],
    [90_000, '2 minutes'],
    [44 * minute, '44 minutes'],
    [45 * minute, 'an hour'],
    [90 * minute, '2 hours'],
    [21 * hour, '21 hours'],
    [22 * hour, 'a day'],
    [36 * hour, '2 days'],
    [25 * day, '25 days'],
    [26 * day, 'a month'],
    [60 * day, '2 months'],
    [320 * day, 'a year'],
    [800 * day, '2 years'],
  ])('%i ms', (length, text) => {
    expect(describeDuration(length)).toBe(text)
  })
})
