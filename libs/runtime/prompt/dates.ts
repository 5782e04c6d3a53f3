import type { Instant } from '#contracts'

const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December']
const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

const DAY_MS = 86_400_000

const pad = (value: number, digits: number): string => String(value).padStart(digits, '0')

function ordinal(value: number): string {
  const lastTwo = value % 100
  if (lastTwo >= 11 && lastTwo <= 13) return `${value}th`
  return `${value}${{ 1: 'st', 2: 'nd', 3: 'rd' }[value % 10] ?? 'th'}`
}

function offsetText(minutes: number, separator: string): string {
  const size = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60), 2)}${separator}${pad(size % 60, 2)}`
}

/** Composite patterns, in the spelling that prompt authors know from moment.js. */
const COMPOSITES: ReadonlyMap<string, string> = new Map([
  ['LT', 'h:mm A'],
  ['LTS', 'h:mm:ss A'],
  ['L', 'MM/DD/YYYY'],
  ['LL', 'MMMM D, YYYY'],
  ['LLL', 'MMMM D, YYYY h:mm A'],
  ['LLLL', 'dddd, MMMM D, YYYY h:mm A'],
])

const TOKEN =
  /\[([^\]]*)\]|LTS|LT|L{1,4}|YYYY|YY|Qo|Q|MMMM|MMM|MM|Mo|M|DDDD|DDDo|DDD|DD|Do|D|dddd|ddd|dd|do|d|E|HH|H|hh|h|kk|k|mm|m|ss|s|SSS|SS|S|A|a|ZZ|Z|X|x/g

/** A moment on somebody's wall: UTC getters of `local` read it. */
type WallClock = { local: Date; offsetMinutes: number }

const year = ({ local }: WallClock): number => local.getUTCFullYear()
const month = ({ local }: WallClock): number => local.getUTCMonth()
const day = ({ local }: WallClock): number => local.getUTCDate()
const weekday = ({ local }: WallClock): number => local.getUTCDay()
const hour = ({ local }: WallClock): number => local.getUTCHours()
const minute = ({ local }: WallClock): number => local.getUTCMinutes()
const second = ({ local }: WallClock): number => local.getUTCSeconds()
const millisecond = ({ local }: WallClock): number => local.getUTCMilliseconds()
const quarter = (clock: WallClock): number => Math.floor(month(clock) / 3) + 1
const monthName = (clock: WallClock): string => MONTHS[month(clock)] ?? ''
const dayName = (clock: WallClock): string => WEEKDAYS[weekday(clock)] ?? ''
const epoch = ({ local, offsetMinutes }: WallClock): number => local.getTime() - offsetMinutes * 60_000
const dayOfYear = (clock: WallClock): number =>
  Math.round((Date.UTC(year(clock), month(clock), day(clock)) - Date.UTC(year(clock), 0, 1)) / DAY_MS) + 1

const formatters: ReadonlyMap<string, (clock: WallClock) => string> = new Map(
  Object.entries<(clock: WallClock) => string>({
    YYYY: (clock) => pad(year(clock), 4),
    YY: (clock) => pad(year(clock) % 100, 2),
    Q: (clock) => String(quarter(clock)),
    Qo: (clock) => ordinal(quarter(clock)),
    MMMM: monthName,
    MMM: (clock) => monthName(clock).slice(0, 3),
    MM: (clock) => pad(month(clock) + 1, 2),
    Mo: (clock) => ordinal(month(clock) + 1),
    M: (clock) => String(month(clock) + 1),
    DDDD: (clock) => pad(dayOfYear(clock), 3),
    DDDo: (clock) => ordinal(dayOfYear(clock)),
    DDD: (clock) => String(dayOfYear(clock)),
    DD: (clock) => pad(day(clock), 2),
    Do: (clock) => ordinal(day(clock)),
    D: (clock) => String(day(clock)),
    dddd: dayName,
    ddd: (clock) => dayName(clock).slice(0, 3),
    dd: (clock) => dayName(clock).slice(0, 2),
    do: (clock) => ordinal(weekday(clock)),
    d: (clock) => String(weekday(clock)),
    E: (clock) => String(weekday(clock) || 7),
    HH: (clock) => pad(hour(clock), 2),
    H: (clock) => String(hour(clock)),
    hh: (clock) => pad(hour(clock) % 12 || 12, 2),
    h: (clock) => String(hour(clock) % 12 || 12),
    kk: (clock) => pad(hour(clock) || 24, 2),
    k: (clock) => String(hour(clock) || 24),
    mm: (clock) => pad(minute(clock), 2),
    m: (clock) => String(minute(clock)),
    ss: (clock) => pad(second(clock), 2),
    s: (clock) => String(second(clock)),
    SSS: (clock) => pad(millisecond(clock), 3),
    SS: (clock) => pad(Math.floor(millisecond(clock) / 10), 2),
    S: (clock) => String(Math.floor(millisecond(clock) / 100)),
    A: (clock) => (hour(clock) < 12 ? 'AM' : 'PM'),
    a: (clock) => (hour(clock) < 12 ? 'am' : 'pm'),
    Z: (clock) => offsetText(clock.offsetMinutes, ':'),
    ZZ: (clock) => offsetText(clock.offsetMinutes, ''),
    X: (clock) => String(Math.floor(epoch(clock) / 1000)),
    x: (clock) => String(epoch(clock)),
  }),
)

/**
 * Formats an instant at an offset (minutes east of UTC) by a moment.js pattern, in English: names, ordinals and composites as its default
 * locale spells them. `[text]` stands for itself, what is no token too. Formatted here, not by Intl (decision 42).
 */
export function formatDate(instant: Instant, offsetMinutes: number, pattern: string): string {
  const clock: WallClock = { local: new Date(Date.parse(instant) + offsetMinutes * 60_000), offsetMinutes }
  const formatToken = (token: string): string => formatters.get(token)?.(clock) ?? token
  return pattern.replace(TOKEN, (token, literal: string | undefined) => {
    if (literal !== undefined) return literal
    return COMPOSITES.get(token)?.replace(TOKEN, formatToken) ?? formatToken(token)
  })
}

/** A length of time in words, as moment.js says it: `a few seconds`, `5 minutes`, `an hour`, `3 days`. */
export function describeDuration(milliseconds: number): string {
  const length = Math.abs(milliseconds)
  const seconds = Math.round(length / 1000)
  const minutes = Math.round(length / 60_000)
  const hours = Math.round(length / 3_600_000)
  const days = Math.round(length / DAY_MS)
  const months = Math.round(length / (DAY_MS * 30.436875))
  const years = Math.round(length / (DAY_MS * 365.2425))
  if (seconds < 45) return 'a few seconds'
  if (minutes <= 1) return 'a minute'
  if (minutes < 45) return `${minutes} minutes`
  if (hours <= 1) return 'an hour'
  if (hours < 22) return `${hours} hours`
  if (days <= 1) return 'a day'
  if (days < 26) return `${days} days`
  if (months <= 1) return 'a month'
  if (months < 11) return `${months} months`
  if (years <= 1) return 'a year'
  return `${years} years`
}
