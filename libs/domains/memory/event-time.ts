import type { MemoryType } from '#contracts'
import { instantOf, shift, wallTime, weekday } from './zone-time.ts'

/** A message that a memory rests on: when it was written, in whose zone, and its text. */
export type DatedMessage = { at: Date; zone: string; text: string }

type Reading = { pattern: RegExp; resolve: (match: RegExpMatchArray, at: Date, zone: string) => Date | null }

const englishNumbers = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve']
const chineseDigits = '零一二三四五六七八九'
const englishWeekdays = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']
const englishNumber = `\\d{1,3}|an?|a couple of|${englishNumbers.slice(1).join('|')}`
const chineseNumber = '\\d{1,3}|[一二两三四五六七八九十]{1,3}'

function numberOf(word: string): number {
  const text = word.toLowerCase()
  if (/^\d+$/.test(text)) return Number(text)
  if (text === 'a' || text === 'an') return 1
  if (text === 'a couple of') return 2
  const english = englishNumbers.indexOf(text)
  if (english >= 0) return english
  const [tens, ones] = text.includes('十') ? text.split('十') : [undefined, text]
  const digit = (sign: string | undefined) => (sign === '两' ? 2 : chineseDigits.indexOf(sign ?? ''))
  const tensValue = tens === undefined ? 0 : (tens === '' ? 1 : digit(tens)) * 10
  return tensValue + (ones === '' ? 0 : digit(ones))
}

function unitShift(unit: string, count: number): { days?: number; months?: number; years?: number } {
  if (/^(?:day|天|日)/i.test(unit)) return { days: count }
  if (/^(?:week|周|星期|礼拜)/i.test(unit)) return { days: count * 7 }
  if (/^(?:month|月|个月)/i.test(unit)) return { months: count }
  return { years: count }
}

function word(pattern: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${pattern})(?![\\p{L}\\p{N}])`, 'iu')
}

function days(count: number): Reading['resolve'] {
  return (_match, at, zone) => shift(at, zone, { days: count })
}

/** Day `day` (1 = Monday) of the week that lies `weeks` from the one of `at`. */
function dayOfWeek(at: Date, zone: string, day: number, weeks: number): Date {
  return shift(at, zone, { days: day - weekday(at, zone) + weeks * 7 })
}

function chineseWeekday(sign: string): number {
  return '日天'.includes(sign) ? 7 : '一二三四五六'.indexOf(sign) + 1
}

// The first that fits anywhere in the text wins by place; where two begin at one place, the one that stands first here.
const relative: readonly Reading[] = [
  { pattern: word('the day before yesterday'), resolve: days(-2) },
  { pattern: word('the day after tomorrow'), resolve: days(2) },
  { pattern: word('yesterday|last night'), resolve: days(-1) },
  { pattern: word('tomorrow'), resolve: days(1) },
  { pattern: word('today|tonight|this (?:morning|afternoon|evening)'), resolve: days(0) },
  {
    pattern: word(`(${englishNumber}) (days?|weeks?|months?|years?) ago`),
    resolve: (match, at, zone) => shift(at, zone, unitShift(match[2] ?? '', -numberOf(match[1] ?? ''))),
  },
  {
    pattern: word(`in (${englishNumber}) (days?|weeks?|months?|years?)`),
    resolve: (match, at, zone) => shift(at, zone, unitShift(match[2] ?? '', numberOf(match[1] ?? ''))),
  },
  {
    pattern: word(`(last|next) (${englishWeekdays.join('|')})`),
    resolve: (match, at, zone) => {
      const day = englishWeekdays.indexOf((match[2] ?? '').toLowerCase()) + 1
      const today = weekday(at, zone)
      if ((match[1] ?? '').toLowerCase() === 'last') return dayOfWeek(at, zone, day, day < today ? 0 : -1)
      return dayOfWeek(at, zone, day, day > today ? 0 : 1)
    },
  },
  {
    pattern: word('(last|next) (week|month|year)'),
    resolve: (match, at, zone) => shift(at, zone, unitShift(match[2] ?? '', (match[1] ?? '').toLowerCase() === 'last' ? -1 : 1)),
  },
  { pattern: /大前天/u, resolve: days(-3) },
  { pattern: /大后天/u, resolve: days(3) },
  { pattern: /前天|前晚/u, resolve: days(-2) },
  { pattern: /后天|後天/u, resolve: days(2) },
  { pattern: /昨天|昨日|昨晚|昨夜/u, resolve: days(-1) },
  { pattern: /明天|明日|明早|明晚/u, resolve: days(1) },
  { pattern: /今天|今日|今早|今晚|刚才|刚刚/u, resolve: days(0) },
  {
    pattern: new RegExp(`(${chineseNumber})(天|日|周|个?星期|个?礼拜|个月|年)(?:以)?(前|后)`, 'u'),
    resolve: (match, at, zone) => {
      const unit = (match[2] ?? '').replace(/^个(?!月)/u, '')
      return shift(at, zone, unitShift(unit, numberOf(match[1] ?? '') * (match[3] === '前' ? -1 : 1)))
    },
  },
  {
    pattern: /(上上|上|下下|下|这|本)个?(?:周|星期|礼拜)([一二三四五六日天])/u,
    resolve: (match, at, zone) => {
      const weeks = { 上上: -2, 上: -1, 下: 1, 下下: 2 }[match[1] ?? ''] ?? 0
      return dayOfWeek(at, zone, chineseWeekday(match[2] ?? ''), weeks)
    },
  },
  {
    pattern: /(上上|上|下下|下)个?(周|星期|礼拜|月)/u,
    resolve: (match, at, zone) => shift(at, zone, unitShift(match[2] ?? '', { 上上: -2, 上: -1, 下: 1, 下下: 2 }[match[1] ?? ''] ?? 0)),
  },
  { pattern: /前年/u, resolve: (_match, at, zone) => shift(at, zone, { years: -2 }) },
  { pattern: /去年/u, resolve: (_match, at, zone) => shift(at, zone, { years: -1 }) },
  { pattern: /明年/u, resolve: (_match, at, zone) => shift(at, zone, { years: 1 }) },
  { pattern: /后年/u, resolve: (_match, at, zone) => shift(at, zone, { years: 2 }) },
]

const absolute: readonly RegExp[] = [
  /(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)/u,
  /(?<!\d)(\d{4})\/(\d{1,2})\/(\d{1,2})(?!\d)/u,
  /(?<!\d)(\d{4})\s?年\s?(\d{1,2})\s?月\s?(\d{1,2})\s?[日号]/u,
]

/** The instant that a text's first relative date means, said at `at` in `zone`; null where it says none. */
export function resolveRelativeDate({ text, at, zone }: DatedMessage): Date | null {
  let best: { index: number; date: Date } | null = null
  for (const { pattern, resolve } of relative) {
    const match = text.match(pattern)
    if (!match || match.index === undefined || (best && match.index >= best.index)) continue
    const date = resolve(match, at, zone)
    if (date && Number.isFinite(date.getTime())) best = { index: match.index, date }
  }
  return best?.date ?? null
}

/** The instant of a full date written in a text, at the time of day of `at`; null where it holds none. */
export function resolveAbsoluteDate({ text, at, zone }: DatedMessage): Date | null {
  for (const pattern of absolute) {
    const match = text.match(pattern)
    if (!match) continue
    const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
    if (month < 1 || month > 12 || day < 1 || day > new Date(Date.UTC(year, month, 0)).getUTCDate()) continue
    return instantOf({ ...wallTime(at, zone), year, month, day }, zone)
  }
  return null
}

const statedDate = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$/
const FARTHEST_YEARS = 150

/** An ISO date or time as a model states it: without an offset it is meant in the zone, without a time at the time of day of `at`. */
export function readStatedDate({ text, at, zone }: DatedMessage): Date | null {
  const match = statedDate.exec(text.trim())
  if (!match) return null
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  const wall = wallTime(at, zone)
  if (
    Math.abs(year - wall.year) > FARTHEST_YEARS ||
    month < 1 ||
    month > 12 ||
    day < 1 ||
    day > new Date(Date.UTC(year, month, 0)).getUTCDate()
  )
    return null
  if (match[7] !== undefined) {
    const exact = new Date(text.trim().replace(' ', 'T'))
    return Number.isFinite(exact.getTime()) ? exact : null
  }
  if (match[4] === undefined) return instantOf({ ...wall, year, month, day }, zone)
  const [hour, minute, second] = [Number(match[4]), Number(match[5]), Number(match[6] ?? 0)]
  if (hour > 23 || minute > 59 || second > 59) return null
  return instantOf({ year, month, day, hour, minute, second, millisecond: 0 }, zone)
}

/**
 * When what a memory tells happened (case R21). For events and plans: the date that the model states, else the date that the text names,
 * else the relative date of a message it rests on, resolved with that message's time in its zone. For anything else, or without any date:
 * when the newest message was written.
 */
export function eventTime(input: { text: string; type: MemoryType; messages: readonly DatedMessage[]; stated?: string | null }): Date {
  const { text, type, messages, stated } = input
  const newest = messages.reduce<DatedMessage | null>((latest, message) => (latest && latest.at >= message.at ? latest : message), null)
  if (!newest) throw new RangeError('a memory rests on at least one message')
  if (type !== 'event' && type !== 'plan') return newest.at
  const { at, zone } = newest
  const named = (stated ? readStatedDate({ text: stated, at, zone }) : null) ?? resolveAbsoluteDate({ text, at, zone })
  if (named) return named
  for (const message of messages) {
    const meant = resolveRelativeDate(message)
    if (meant) return meant
  }
  return at
}
