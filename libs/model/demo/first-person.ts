import { asClause } from './language.ts'

const ADVERB =
  '(?:still|also|often|always|never|rarely|seldom|sometimes|usually|secretly|only|once|now|even|just|simply|mostly|really|quietly|\\w+ly)'
const IRREGULAR: Record<string, string> = {
  is: 'am',
  has: 'have',
  does: 'do',
  goes: 'go',
  "isn't": 'am not',
  "doesn't": "don't",
  "hasn't": "haven't",
}
/** Ends in s and is no verb of the third person. */
const NO_VERB = /^(?:as|its|his|this|was|perhaps|less|unless|across|always|sometimes|towards|yes|us|plus|is|has|does)$/iu

/** keeps → keep, carries → carry, is → am. */
const firstPersonVerb = (verb: string): string => {
  const known = IRREGULAR[verb.toLowerCase()]
  if (known !== undefined) return known
  if (NO_VERB.test(verb) || !/[a-z]s$/u.test(verb) || /(?:ss|us)$/u.test(verb)) return verb
  if (verb.endsWith('ies')) return verb.length > 4 ? `${verb.slice(0, -3)}y` : verb.slice(0, -1)
  return /(?:ches|shes|sses|xes|zes|oes)$/u.test(verb) ? verb.slice(0, -2) : verb.slice(0, -1)
}

const escapeForRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/gu, '\\$&')

/** A part that goes on with another verb of the third person would need a grammar; the sentence ends before it. */
const SECOND_VERB = new RegExp(
  `(?:[,;:—(]|\\s(?:and|but|or|who|which|that)\\b)\\s*(?:and |but |or |then )?(?:${ADVERB} )?([a-z]+s)\\b`,
  'u',
)

const untilSecondVerb = (rest: string): string => {
  let from = 0
  for (;;) {
    const found = SECOND_VERB.exec(rest.slice(from))
    if (found === null) return rest
    if (!NO_VERB.test(found[1] ?? '')) return rest.slice(0, from + found.index)
    from += found.index + found[0].length
  }
}

const WITH_PRONOUN = new RegExp(`\\b(?:she|he) ((?:${ADVERB} )?)([a-z']+)`, 'giu')
/** Words: longer sentences end at a comma before that. */
const LONGEST = 26
/** What points at another sentence says nothing alone. */
const POINTS_AWAY = /\b(?:it|them|this|those|these|later|then)\b|^I (?:say|tell|ask|remember|know|do|mean)\b/u

const shortened = (sentence: string): string => {
  const words = sentence.split(' ')
  if (words.length <= LONGEST) return sentence
  const head = words.slice(0, LONGEST).join(' ')
  return asClause(head.slice(0, Math.max(head.lastIndexOf(','), head.lastIndexOf(';'))))
}

/**
 * An English sentence about somebody ("She keeps a tea house.") as they would say it ("I keep a tea house."). `subjects` are the names and
 * pronouns that mean the speaker. Undefined where the sentence does not begin with one of them, or comes out too short or too long.
 */
export const toFirstPerson = (sentence: string, subjects: readonly string[]): string | undefined => {
  const names = subjects.map(escapeForRegExp).join('|')
  const start = new RegExp(`^(?:${names})(?: \\([^)]*\\))?,? ((?:${ADVERB} )?)([A-Za-z']+)(?=[ ,.])`, 'u').exec(sentence)
  if (start === null) return undefined
  const [whole, adverb = '', verb = ''] = start
  if (
    !/s$|ed$|^(?:was|had|did|could|would|will|can|must|may|came|went|left|kept|grew|learned|never|were|made|found|lost|took|ran|fought|knew|spent|wrote|built)$/u.test(
      verb,
    )
  ) {
    return undefined
  }
  const rest = untilSecondVerb(
    sentence
      .slice(whole.length)
      .replace(/ \([^)]*\)/gu, '')
      .replace(/ (?:before|after) that\b/u, ''),
  )
    .replace(/\b(?:herself|himself|themselves)\b/gu, 'myself')
    .replace(WITH_PRONOUN, (_all, between = '', next: string) => `I ${between}${firstPersonVerb(next)}`)
    .replace(/\bhis\b|\bher\b(?= [a-z])(?! (?:in|on|at|to|for|with|and|or|but|by|from|as|that|when|where)\b)/gu, 'my')
    .replace(/\bher\b|\bhim\b/gu, 'me')
  const made = shortened(asClause(`I ${adverb}${firstPersonVerb(verb)}${rest}`))
  const words = made.split(' ').length
  return words < 4 || words > LONGEST || /["“”{}<>[\]*]/u.test(made) || POINTS_AWAY.test(made) ? undefined : made
}

/** The same for a remembered sentence, said to the one it is about: "Mei likes tea." → "you like tea". */
export const toSecondPerson = (sentence: string, subjects: readonly string[]): string | undefined => {
  const names = subjects.map(escapeForRegExp).join('|')
  const start = new RegExp(`^(?:${names})('s)?\\s+((?:${ADVERB} )?)([A-Za-z']+)(?=[ ,.]|$)`, 'iu').exec(sentence)
  if (start === null) return undefined
  const [whole, possessive, adverb = '', verb = ''] = start
  const second = firstPersonVerb(verb)
  const said =
    possessive === undefined ? (second === 'am' ? 'are' : second === 'am not' ? "aren't" : second === 'was' ? 'were' : second) : verb
  const rest = sentence
    .slice(whole.length)
    .replace(/\b(?:their|his|her)\b/gu, 'your')
    .replace(/\b(?:themselves|themself|himself|herself)\b/gu, 'yourself')
    .replace(
      /\b(?:they|she|he) (\w+)/gu,
      (_all, next: string) => `you ${next === 'is' || next === 'was' ? (next === 'is' ? 'are' : 'were') : firstPersonVerb(next)}`,
    )
    .replace(/\bthem\b|\bhim\b/gu, 'you')
  return asClause(`you${possessive === undefined ? '' : 'r'} ${adverb}${said}${rest}`)
}

/** A Chinese sentence about somebody as they would say it. */
export const toFirstPersonChinese = (sentence: string, subjects: readonly string[]): string | undefined => {
  const subject = subjects.find((name) => sentence.startsWith(name))
  if (subject === undefined) return undefined
  const made = asClause(`我${sentence.slice(subject.length)}`)
    .replace(/她自己|他自己/gu, '我自己')
    .replace(/[她他](?!们)/gu, '我')
  return made.length < 5 || made.length > 60 || /["“”{}<>[\]*]/u.test(made) ? undefined : made.replace(/^我[，,、]/u, '我')
}

/** The same for a remembered sentence, said to the one it is about. */
export const toSecondPersonChinese = (sentence: string, subjects: readonly string[]): string | undefined => {
  const subject = subjects.find((name) => sentence.startsWith(name))
  return subject === undefined
    ? undefined
    : asClause(`你${sentence.slice(subject.length)}`)
        .replace(/自己的/gu, '你的')
        .replace(/[她他](?!们)/gu, '你')
}
