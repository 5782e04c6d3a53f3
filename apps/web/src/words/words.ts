import { useMemo } from 'react'
import type { ErrorWords } from './errors-en.ts'
import type { Words } from './en.ts'
import { en } from './en.ts'
import { errorsEn } from './errors-en.ts'
import { errorsZh } from './errors-zh.ts'
import { zh } from './zh.ts'
import type { Language } from './preferences.ts'
import { useLanguage } from './preferences.ts'

const catalogues: Record<Language, Words> = { en, zh }
const errorCatalogues: Record<Language, ErrorWords> = { en: errorsEn, zh: errorsZh }
const locales: Record<Language, string> = { en: 'en', zh: 'zh-CN' }

/** The words of the present language. */
export function useWords(): Words {
  return catalogues[useLanguage()[0]]
}

export function useErrorWords(): ErrorWords {
  return errorCatalogues[useLanguage()[0]]
}

export type Format = {
  number: (value: number) => string
  decimal: (value: number) => string
  percent: (share: number) => string
  /** Day and time, to the minute. */
  moment: (iso: string) => string
  /** Hours, minutes and seconds. */
  clock: (iso: string) => string
  /** How long ago or until: "5 minutes ago". */
  relative: (iso: string) => string
  /** The same, as short as the language allows. */
  relativeShort: (iso: string) => string
  duration: (milliseconds: number) => string
}

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
]

function distance(format: Intl.RelativeTimeFormat, iso: string): string {
  const away = (new Date(iso).getTime() - Date.now()) / 1000
  for (const [unit, length] of units) {
    if (Math.abs(away) >= length) return format.format(Math.round(away / length), unit)
  }
  return format.format(0, 'second')
}

function createFormat(locale: string): Format {
  const integers = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 })
  const decimals = new Intl.NumberFormat(locale, { maximumFractionDigits: 3 })
  const percents = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 0 })
  const moments = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' })
  const clocks = new Intl.DateTimeFormat(locale, { dateStyle: 'short', timeStyle: 'medium' })
  const relatives = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })
  const shortRelatives = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'narrow' })
  const seconds = new Intl.NumberFormat(locale, { style: 'unit', unit: 'second', maximumFractionDigits: 1 })
  const milliseconds = new Intl.NumberFormat(locale, { style: 'unit', unit: 'millisecond', maximumFractionDigits: 0 })
  return {
    number: (value) => integers.format(value),
    decimal: (value) => decimals.format(value),
    percent: (share) => percents.format(share),
    moment: (iso) => moments.format(new Date(iso)),
    clock: (iso) => clocks.format(new Date(iso)),
    relative: (iso) => distance(relatives, iso),
    relativeShort: (iso) => distance(shortRelatives, iso),
    duration: (value) => (value < 1000 ? milliseconds.format(value) : seconds.format(value / 1000)),
  }
}

/** Numbers and dates as the present language writes them. */
export function useFormat(): Format {
  const [language] = useLanguage()
  return useMemo(() => createFormat(locales[language]), [language])
}
