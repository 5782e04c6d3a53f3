/** Languages that the demo model answers in. */
export type Language = 'en' | 'zh'

const HAN = /\p{Script=Han}/gu
const LATIN_WORD = /\p{Script=Latin}+/gu

/** The language of a text, a Han character weighing as much as a Latin word; undefined where it holds neither. */
export const languageOf = (text: string): Language | undefined => {
  const han = text.match(HAN)?.length ?? 0
  const latin = text.match(LATIN_WORD)?.length ?? 0
  if (han === 0 && latin === 0) return undefined
  return han >= latin ? 'zh' : 'en'
}

/** Cuts into sentences, keeping their marks; quotes and stage directions stay inside. */
export const sentencesOf = (text: string): string[] =>
  text
    .split(/(?<=[.!?…。！？])(?:["'”’」*]+)?\s+|(?<=[。！？])|\n+/u)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '')

/** Without stage directions, quotes' marks and mark-up: what was said. */
export const spokenText = (text: string): string =>
  text
    .replace(/\*[^*]*\*|（[^）]*）|\([^)]*\)/gu, ' ')
    .replace(/[“”"「」『』_#>`]/gu, ' ')
    .replace(/\s+/gu, ' ')
    .trim()

/** What was done: the stage directions of a message. */
export const stageText = (text: string): string =>
  [...text.matchAll(/\*([^*]+)\*|（([^）]+)）/gu)]
    .map((match) => (match[1] ?? match[2] ?? '').trim())
    .join(' ')
    .trim()

const capitalise = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)

const ENGLISH_MIRROR: Record<string, string> = {
  'i am': 'you are',
  'i was': 'you were',
  'am i': 'are you',
  'was i': 'were you',
  'you are': 'I am',
  'you were': 'I was',
  'are you': 'am I',
  'were you': 'was I',
  i: 'you',
  me: 'you',
  my: 'your',
  mine: 'yours',
  myself: 'yourself',
  we: 'you',
  us: 'you',
  our: 'your',
  ours: 'yours',
  your: 'my',
  yours: 'mine',
  yourself: 'myself',
  "i'm": "you're",
  "i've": "you've",
  "i'll": "you'll",
  "i'd": "you'd",
  "we're": "you're",
  "we've": "you've",
  "we'll": "you'll",
  "you're": "I'm",
  "you've": "I've",
  "you'll": "I'll",
  "you'd": "I'd",
}
const ENGLISH_PERSONS = /\b(?:i am|i was|am i|was i|you are|you were|are you|were you)\b|[a-z']+/giu
const BEFORE_OBJECT = /\b(?:to|for|with|about|of|from|at|on|by|like|than|see|tell|told|give|love|miss|meet|met|thank|help|ask|let)\s+$/iu

/** Turns what somebody said about themselves into what one says back: "my sister left me" → "your sister left you". */
export const mirrorEnglish = (text: string): string =>
  text.replace(/’/gu, "'").replace(ENGLISH_PERSONS, (word, at: number, whole: string) => {
    const known = ENGLISH_MIRROR[word.toLowerCase()]
    if (known !== undefined) return known
    if (word.toLowerCase() !== 'you') return word
    const isObject =
      BEFORE_OBJECT.test(whole.slice(0, at)) ||
      /^you(?:\s*$|[.,!?;]| (?:and|or|but|so|to|for|in|at|with|on|because)\b)/iu.test(whole.slice(at))
    return isObject ? 'me' : 'I'
  })

/** The same in Chinese: 我 ↔ 你. */
export const mirrorChinese = (text: string): string =>
  text.replace(/我们|咱们|咱|我|您|你们|你/gu, (word) => (word.startsWith('我') || word.startsWith('咱') ? '你' : '我'))

export const mirror = (text: string, language: Language): string => (language === 'zh' ? mirrorChinese(text) : mirrorEnglish(text))

export const asSentence = (text: string, language: Language): string => {
  const bare = text.replace(/[\s,;:，；：、]+$/u, '')
  if (bare === '' || /[.!?…。！？]$/u.test(bare)) return language === 'zh' ? bare : capitalise(bare)
  return language === 'zh' ? `${bare}。` : `${capitalise(bare)}.`
}

/** Without the mark at its end, to be put inside another sentence. */
export const asClause = (text: string): string => text.trim().replace(/[.!?…。！？,，;；\s]+$/u, '')
