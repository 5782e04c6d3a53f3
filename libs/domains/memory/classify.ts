import type { MemoryLevel, MemoryType, SensitiveTopic } from '#contracts'
import { isHighImpact, sensitiveTopics } from './sensitive-topics.ts'

/** How long an automatic memory, and the text of a rejected one, can still be taken back (spec/5 "Levels"). */
export const UNDO_WINDOW_DAYS = 7
const DAY_MS = 86_400_000

/** Types that take effect without the owner where nothing about them is sensitive (spec/5 "Levels"). */
export const automaticTypes: ReadonlySet<MemoryType> = new Set<MemoryType>(['preference', 'event', 'plan'])

/** What decides a level: the model's own judgement and the words themselves. */
export type Classifiable = { text: string; type: MemoryType; sensitive: boolean }

export type Classification = { level: Extract<MemoryLevel, 'explicit' | 'heavy'>; sensitive: boolean; topics: SensitiveTopic[] }

/**
 * explicit = takes effect at once; heavy = waits for the owner. The stricter of model and rule wins: either one can make a memory
 * sensitive, neither can clear it. High impact makes it heavy without making it sensitive.
 */
export function classify({ text, type, sensitive }: Classifiable): Classification {
  const topics = sensitiveTopics(text)
  const isSensitive = sensitive || topics.length > 0
  const level = automaticTypes.has(type) && !isSensitive && !isHighImpact(text) ? 'explicit' : 'heavy'
  return { level, sensitive: isSensitive, topics }
}

/** The instant at which the undo window that opens now is over. */
export function undoUntil(now: Date): Date {
  return new Date(now.getTime() + UNDO_WINDOW_DAYS * DAY_MS)
}
