const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** Wall-clock time somewhere; `month` is 1 to 12. */
export type WallTime = { year: number; month: number; day: number; hour: number; minute: number; second: number; millisecond: number }

const formats = new Map<string, Intl.DateTimeFormat>()

/** Intl is asked for the zone's rules alone; how a date is written stays with our code (decision 42). */
function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
      era: 'short',
    })
    formats.set(zone, format)
  }
  return format
}

/** What the clocks of an IANA zone show at an instant. Throws a RangeError for an unknown zone. */
export function wallTime(at: Date, zone: string): WallTime {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(at)
      .map((part) => [part.type, part.value]),
  )
  const read = (type: Intl.DateTimeFormatPartTypes) => Number(parts.get(type))
  const year = parts.get('era') === 'BC' ? 1 - read('year') : read('year')
  return {
    year,
    month: read('month'),
    day: read('day'),
    hour: read('hour'),
    minute: read('minute'),
    second: read('second'),
    millisecond: ((at.getTime() % 1000) + 1000) % 1000,
  }
}

function asUtc(wall: WallTime): number {
  const date = new Date(0)
  date.setUTCFullYear(wall.year, wall.month - 1, wall.day)
  date.setUTCHours(wall.hour, wall.minute, wall.second, wall.millisecond)
  return date.getTime()
}

function offsetMs(at: Date, zone: string): number {
  return asUtc(wallTime(at, zone)) - at.getTime()
}

/** The instant at which the clocks of a zone show a wall time; in a gap the later side, in an overlap the earlier. */
export function instantOf(wall: WallTime, zone: string): Date {
  const guess = asUtc(wall)
  const early = offsetMs(new Date(guess - DAY_MS), zone)
  const late = offsetMs(new Date(guess + DAY_MS), zone)
  const first = new Date(guess - early)
  return offsetMs(first, zone) === early ? first : new Date(guess - late)
}

/** The same wall-clock time some days, months or years on; a day that the month lacks becomes its last. */
export function shift(at: Date, zone: string, by: { days?: number; months?: number; years?: number }): Date {
  const wall = wallTime(at, zone)
  const months = wall.year * 12 + (wall.month - 1) + (by.months ?? 0) + (by.years ?? 0) * 12
  const year = Math.floor(months / 12)
  const month = months - year * 12 + 1
  const monthEnd = new Date(Date.UTC(year, month, 0)).getUTCDate()
  const moved = new Date(asUtc({ ...wall, year, month, day: Math.min(wall.day, monthEnd) }) + (by.days ?? 0) * DAY_MS)
  return instantOf({ ...wall, year: moved.getUTCFullYear(), month: moved.getUTCMonth() + 1, day: moved.getUTCDate() }, zone)
}

/** Day of the week in a zone: 1 = Monday … 7 = Sunday. */
export function weekday(at: Date, zone: string): number {
  const wall = wallTime(at, zone)
  return ((new Date(asUtc(wall)).getUTCDay() + 6) % 7) + 1
}

/** `2026-11-28T21:40:00+08:00`: local time with its offset, as a model reads it best. */
export function localIso(at: Date, zone: string): string {
  const wall = wallTime(at, zone)
  const two = (value: number) => String(value).padStart(2, '0')
  const offset = Math.round(offsetMs(at, zone) / MINUTE_MS)
  const sign = offset < 0 ? '-' : '+'
  const hours = Math.floor(Math.abs(offset) / 60)
  const date = `${String(wall.year).padStart(4, '0')}-${two(wall.month)}-${two(wall.day)}`
  return `${date}T${two(wall.hour)}:${two(wall.minute)}:${two(wall.second)}${sign}${two(hours)}:${two(Math.abs(offset) % 60)}`
}
