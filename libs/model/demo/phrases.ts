import type { Language } from './language.ts'
import type { IntentKind } from './intents.ts'
import { ENGLISH } from './phrases-en.ts'
import { CHINESE } from './phrases-zh.ts'

/**
 * Lines with slots. `{slot}` must be known for a line to be used; `{,user}` is the name with a comma before it, or nothing. Slots: character,
 * user, subject, Subject, topic, echo, Echo, fact, fact2, noun, place, memory, Memory, memory2, passage, option, other, sum, deed.
 */
export type Lines = readonly string[]

export type Phrases = {
  /** What is said first, by intent; `say` answers, `ask` gives something to pick up. */
  intents: Record<IntentKind, { say: Lines; ask: Lines }>
  /** Between the two, where there is something to bring up. */
  recalled: Lines
  /** The user says what is remembered already. */
  knownAlready: Lines
  quoted: Lines
  ofMyself: Lines
  earlier: Lines
  interjected: Lines
  resumed: Lines
  /** Shown where nothing is remembered. */
  recallNothing: Lines
  stories: Lines
  poems: Lines
  /** Joins two remembered things. */
  alsoRemembered: Lines
}

export const phrasesOf = (language: Language): Phrases => (language === 'zh' ? CHINESE : ENGLISH)

export type Slots = Partial<Record<string, string>>

/** Puts the slots in; undefined where one is not known. */
export const fill = (line: string, slots: Slots): string | undefined => {
  let isWhole = true
  const filled = line.replace(/\{(,?)([A-Za-z0-9]+)\}/gu, (_all, comma: string, name: string) => {
    const value = slots[name]
    if (value !== undefined && value !== '') return comma === '' ? value : `${slots.comma ?? ', '}${value}`
    if (comma === '') isWhole = false
    return ''
  })
  return isWhole ? filled : undefined
}
