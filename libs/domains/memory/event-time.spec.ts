import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { eventTime, readStatedDate, resolveAbsoluteDate, resolveRelativeDate } from './event-time.ts'
import { instantOf, localIso, shift, wallTime, weekday } from './zone-time.ts'

const shanghai = 'Asia/Shanghai'
// A Wednesday, 23:30 in Shanghai, 15:30 in London.
const at = new Date('2025-06-04T15:30:00.000Z')

describe('zone time', () => {
  it('writes local time with its offset', () => {
    expect(localIso(at, shanghai)).toBe('2025-06-04T23:30:00+08:00')
    expect(localIso(at, 'America/St_Johns')).toBe('2025-06-04T13:00:00-02:30')
    expect(localIso(at, 'UTC')).toBe('2025-06-04T15:30:00+00:00')
  })

  it('knows the weekday of the zone, not of UTC', () => {
    expect(weekday(new Date('2025-06-04T20:00:00.000Z'), shanghai)).toBe(4)
    expect(weekday(new Date('2025-06-04T20:00:00.000Z'), 'UTC')).toBe(3)
  })

  it('keeps the wall clock over a change of the clocks and at the end of a month', () => {
    const before = new Date('2025-03-29T23:30:00.000Z') // 00:30 in Berlin on the day the clocks go forward
    expect(localIso(shift(before, 'Europe/Berlin', { days: 1 }), 'Europe/Berlin')).toBe('2025-03-31T00:30:00+02:00')
    expect(localIso(shift(new Date('2024-03-31T12:00:00.000Z'), 'UTC', { months: -1 }), 'UTC')).toBe('2024-02-29T12:00:00+00:00')
    expect(localIso(shift(new Date('2024-02-29T12:00:00.000Z'), 'UTC', { years: -1 }), 'UTC')).toBe('2023-02-28T12:00:00+00:00')
  })

  it('finds back every instant from its wall time outside of overlaps', () => {
    const instant = fc.date({ min: new Date('1990-01-01T00:00:00.000Z'), max: new Date('2040-01-01T00:00:00.000Z'), noInvalidDate: true })
    fc.assert(
      fc.property(instant, fc.constantFrom(shanghai, 'Europe/Berlin', 'America/New_York', 'Pacific/Chatham', 'UTC'), (date, zone) => {
        const back = instantOf(wallTime(date, zone), zone)
        expect(Math.abs(back.getTime() - date.getTime()) % 3_600_000).toBe(0)
        expect(wallTime(back, zone)).toEqual(wallTime(date, zone))
      }),
    )
  })
})

describe('resolveRelativeDate', () => {
  it.each([
    ['I moved yesterday', '2025-06-03'],
    ['the day before yesterday it rained', '2025-06-02'],
    ['we meet tomorrow', '2025-06-05'],
    ['three weeks ago I began', '2025-05-14'],
    ['in 2 months I travel', '2025-08-04'],
    ['last Friday we danced', '2025-05-30'],
    ['last Monday we danced', '2025-06-02'],
    ['next Monday it starts', '2025-06-09'],
    ['next friday it starts', '2025-06-06'],
    ['last week', '2025-05-28'],
    ['next year', '2026-06-04'],
    ['我昨天搬家了', '2025-06-03'],
    ['前天去了海边', '2025-06-02'],
    ['大前天去了海边', '2025-06-01'],
    ['后天出发', '2025-06-06'],
    ['三天前', '2025-06-01'],
    ['十二天后', '2025-06-16'],
    ['两个星期前', '2025-05-21'],
    ['2个月后', '2025-08-04'],
    ['上周三见过', '2025-05-28'],
    ['下周一开始', '2025-06-09'],
    ['上个月', '2025-05-04'],
    ['去年夏天', '2024-06-04'],
    ['明年', '2026-06-04'],
    ['tomorrow, not yesterday', '2025-06-05'],
  ])('%s → %s', (text, day) => {
    const date = resolveRelativeDate({ text, at, zone: shanghai })
    expect(date && localIso(date, shanghai)).toBe(`${day}T23:30:00+08:00`)
  })

  it.each(['I like tea', 'yesterdayish', '我喜欢茶', '日前三'])('finds none in %s', (text) => {
    expect(resolveRelativeDate({ text, at, zone: shanghai })).toBeNull()
  })
})

describe('readStatedDate', () => {
  it.each([
    ['2025-05-01', '2025-05-01T15:30:00.000Z'],
    ['2025-05-01T09:00', '2025-05-01T01:00:00.000Z'],
    ['2025-05-01 09:00:30', '2025-05-01T01:00:30.000Z'],
    ['2025-05-01T09:00:00Z', '2025-05-01T09:00:00.000Z'],
    ['2025-05-01T09:00:00+02:00', '2025-05-01T07:00:00.000Z'],
  ])('%s → %s', (text, expected) => {
    expect(readStatedDate({ text, at, zone: shanghai })?.toISOString()).toBe(expected)
  })

  it.each(['soon', '2025', '2025-13-01', '2025-02-30', '2025-05-01T25:00', '0001-01-01', '9999-01-01', '2025-05-01T09:00:00+99:99'])(
    'refuses %s',
    (text) => {
      expect(readStatedDate({ text, at, zone: shanghai })).toBeNull()
    },
  )
})

describe('eventTime', () => {
  const message = { at, zone: shanghai, text: 'I moved yesterday' }

  it('is the time of the event, not of the import (R21)', () => {
    expect(eventTime({ text: 'The user moved', type: 'event', messages: [message] }).toISOString()).toBe('2025-06-03T15:30:00.000Z')
  })

  it('prefers the date that the memory names', () => {
    const text = 'The user moved on 2025-06-01'
    expect(localIso(eventTime({ text, type: 'event', messages: [message] }), shanghai)).toBe('2025-06-01T23:30:00+08:00')
    expect(resolveAbsoluteDate({ text: '2024年2月29日搬家', at, zone: shanghai })?.toISOString()).toBe('2024-02-29T15:30:00.000Z')
    expect(resolveAbsoluteDate({ text: '2023-02-29', at, zone: shanghai })).toBeNull()
  })

  it('takes the date that the model states before any other, and none that is no date', () => {
    const memory = { text: 'The user moved on 2025-06-01', type: 'event', messages: [message] } as const
    expect(localIso(eventTime({ ...memory, stated: '2025-05-20' }), shanghai)).toBe('2025-05-20T23:30:00+08:00')
    expect(localIso(eventTime({ ...memory, stated: 'last spring' }), shanghai)).toBe('2025-06-01T23:30:00+08:00')
  })

  it('is the newest message for what does not happen on a day', () => {
    const older = { at: new Date('2025-01-01T00:00:00.000Z'), zone: shanghai, text: 'born yesterday' }
    expect(eventTime({ text: 'The user was born on 1990-01-01', type: 'fact', messages: [message, older] })).toEqual(at)
    expect(() => eventTime({ text: 'x', type: 'fact', messages: [] })).toThrow(RangeError)
  })
})
