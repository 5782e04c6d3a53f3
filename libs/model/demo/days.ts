const WEEKDAYS_EN = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const WEEKDAYS_ZH = '日一二三四五六'
const DAY_MS = 86_400_000

/** Year, month and day on the wall of that zone, as a UTC midnight to count from; UTC where the zone is not known. */
const localMidnight = (at: string, zone: string): number | undefined => {
  const instant = Date.parse(at)
  if (Number.isNaN(instant)) return undefined
  try {
    const parts = new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' }).format(instant)
    return Date.parse(`${parts}T00:00:00Z`)
  } catch {
    // An unknown zone: the day in UTC is off by one at most.
    return Math.floor(instant / DAY_MS) * DAY_MS
  }
}

type Sign = { words: RegExp; offset: (match: RegExpExecArray, weekday: number) => number | undefined }

const untilWeekday = (wanted: number, weekday: number, isNextWeek: boolean): number | undefined => {
  if (wanted < 0) return undefined
  // Weeks begin on Monday.
  const fromMonday = ((wanted + 6) % 7) - ((weekday + 6) % 7)
  if (isNextWeek) return fromMonday + 7
  return fromMonday <= 0 ? fromMonday + 7 : fromMonday
}

const SIGNS: readonly Sign[] = [
  { words: /\bthe day after tomorrow\b|后天/iu, offset: () => 2 },
  { words: /\btomorrow\b|明天|明晚|明早/iu, offset: () => 1 },
  { words: /\btonight\b|\btoday\b|\bthis evening\b|今天|今晚/iu, offset: () => 0 },
  { words: /前天/u, offset: () => -2 },
  { words: /\byesterday\b|\blast night\b|昨天|昨晚/iu, offset: () => -1 },
  {
    words: new RegExp(`\\b(next|on|this) (${WEEKDAYS_EN.join('|')})\\b`, 'iu'),
    offset: (match, weekday) => untilWeekday(WEEKDAYS_EN.indexOf((match[2] ?? '').toLowerCase()), weekday, false),
  },
  {
    words: /下(?:周|个?星期|个?礼拜)([一二三四五六日天])/u,
    offset: (match, weekday) => untilWeekday(WEEKDAYS_ZH.indexOf((match[1] ?? '').replace('天', '日')), weekday, true),
  },
  { words: /\bin (\d{1,2}) days?\b|(\d{1,2})天后/iu, offset: (match) => Number(match[1] ?? match[2]) },
]

/** The day that a text speaks of, counted from when it was said, and the words it used; undefined where it names none that is sure. */
export const dayOf = (text: string, said: { at: string; zone: string }): { date: string; words: RegExp } | undefined => {
  const today = localMidnight(said.at, said.zone)
  if (today === undefined) return undefined
  for (const { words, offset } of SIGNS) {
    const match = words.exec(text)
    const days = match === null ? undefined : offset(match, new Date(today).getUTCDay())
    if (days !== undefined) return { date: new Date(today + days * DAY_MS).toISOString().slice(0, 10), words }
  }
  return undefined
}
