import type { ChatMessage } from '#kernel/ports/model-gateway'
import { toFirstPerson, toFirstPersonChinese, toSecondPerson, toSecondPersonChinese } from './first-person.ts'
import { asClause, type Language, languageOf, sentencesOf, spokenText, stageText } from './language.ts'
import { propsOf, type Prop } from './props.ts'

/** What the demo model understands of a request: who speaks with whom, where, and what lies on the table. */
export type Scene = {
  language: Language
  /** As the answer's language spells it. */
  character: string
  /** Undefined where the prompt gives no proper name. */
  user: string | undefined
  /** What the card says of the character, in the first person, without a full stop. */
  facts: string[]
  /** Where it plays: one sentence of the scenario, as it stands. */
  place: string | undefined
  props: Prop[]
  /** Answers with stage directions between asterisks, and speech in quotes. */
  isStaged: boolean
  /** What was recalled, in the second person: "you like jasmine tea". */
  memories: string[]
  passages: string[]
  /** The card's example dialogues. */
  examples: { asked: string; answered: string }[]
  /** What the user asked, said and did, and what was thrown in after it. */
  message: string
  said: string
  did: string
  steers: string[]
  earlierSaid: string[]
  earlierAnswers: string[]
  /** Our own last words were cut off, or this goes on after an interjection. */
  wasCut: boolean
  wish: 'short' | 'long' | undefined
}

const NO_NAME = /^(?:user|you|anon|anonymous|human|me|用户|你|匿名)$/iu
/** Rules and headings: they are for us, and tell nothing of the character. */
const RULES = /these rules come from|never (?:write|decide)|next message|do not (?:write|invent|claim)|not instructions/iu
const MEMORY_HEADING = /^\s*[[【(#*]*\s*(?:what you (?:remember|recall)|memor(?:y|ies)\b|你(?:所)?(?:记得|记住)|记忆|relevant memories)/iu
const PASSAGE_HEADING = /^\s*[[【(#*]*\s*(?:passages?\b|quoted\b|citations?\b|引用|引文|the user quotes)/iu
const EXAMPLE_HEADING = /^\s*[[【(#*]*\s*(?:examples? of how|example (?:dialogue|chat)|示例|对话示例)/iu

const matchOf = (texts: readonly string[], patterns: readonly RegExp[]): string | undefined => {
  for (const text of texts) {
    for (const pattern of patterns) {
      const found = pattern.exec(text)?.[1]?.trim()
      if (found !== undefined && found !== '' && found.length <= 40) return found
    }
  }
  return undefined
}

const CHARACTER_NAME = [
  /write ([^\n.,]{1,40}?)(?:'s|’s) (?:next )?(?:reply|message)/iu,
  /(?:you are|you're|roleplay as|play the role of|act as|your name is) ([A-Z][\p{L}'’-]*(?: [A-Z][\p{L}'’-]*){0,2})/u,
  /(?:你是|你叫|扮演|你的名字是)(?!一)([\p{Script=Han}A-Za-z·]{1,12}?)(?=[，,。.、；;\s]|$)/u,
]
const USER_NAME = [
  /next (?:reply|message) to ([^\n.,]{1,40}?)[.,\n]/iu,
  /(?:reply|talking|speaking) (?:to|with) ([A-Z][\p{L}'’-]*)/u,
  /与([\p{Script=Han}A-Za-z]{1,12}?)(?:对话|聊天|交谈)/u,
]

/** "Qinghe" also goes by 青禾 where the card says so: `Qinghe (青禾` or `Qinghe 青禾`. */
const nativeName = (name: string, language: Language, text: string): string => {
  const han = /[\p{Script=Han}·]{2,6}/u
  const latin = /[A-Z][\p{Script=Latin}'’-]+/u
  const wanted = language === 'zh' ? han : latin
  const own = wanted.exec(name)?.[0]
  if (own !== undefined) return own
  const at = text.indexOf(name)
  const nearby = at < 0 ? '' : text.slice(at + name.length, at + name.length + 12)
  return new RegExp(`^\\s*[(（,，]?\\s*(${wanted.source})`, 'u').exec(nearby)?.[1] ?? name
}

const OF_THE_HOUR =
  /^it is\b.*\b(?:afternoon|morning|evening|night|noon|dawn|dusk|day|raining|snowing)|^(?:此刻|现在是|正是)|(?:傍晚|清晨|黄昏|深夜|午后|雨夜)/iu
const OF_ARRIVAL = /\b(?:has|have) (?:just )?(?:come|arrived|walked)|(?:来到|走进|刚到)/iu

type Blocks = { plain: string[]; memories: string[]; passages: string[]; examples: { asked: string; answered: string }[]; late: string[] }

const LIST_MARK = /^\s*(?:[-*•]|\d+[.)、])\s*/u

const readExample = (text: string): { asked: string; answered: string }[] => {
  const turns = [...text.matchAll(/^([^\n:：]{1,40})[:：]\s*([\s\S]*?)(?=^[^\n:：]{1,40}[:：]|(?![\s\S]))/gmu)].map(
    ([, name = '', said = '']) => ({ name, said: said.trim() }),
  )
  return turns.flatMap((turn, at) => {
    const answer = turns[at + 1]
    return answer !== undefined && answer.name !== turn.name && at % 2 === 0 ? [{ asked: turn.said, answered: answer.said }] : []
  })
}

/** Sorts what is not conversation. A heading rules what follows it, in its own message or in those right after it. */
const readBlocks = (messages: readonly ChatMessage[], lastUser: number): Blocks => {
  const blocks: Blocks = { plain: [], memories: [], passages: [], examples: [], late: [] }
  let mode: 'plain' | 'memories' | 'passages' = 'plain'
  for (const [at, message] of messages.entries()) {
    if (message.role !== 'system' && message.role !== 'developer') {
      mode = 'plain'
      continue
    }
    const text = message.content
    const [heading = '', ...rest] = text.split('\n')
    if (EXAMPLE_HEADING.test(heading)) blocks.examples.push(...readExample(rest.join('\n')))
    else if (MEMORY_HEADING.test(heading) || PASSAGE_HEADING.test(heading)) {
      mode = MEMORY_HEADING.test(heading) ? 'memories' : 'passages'
      blocks[mode].push(...rest.map((line) => line.replace(LIST_MARK, '').trim()).filter((line) => line !== ''))
    } else if (mode !== 'plain') blocks[mode].push(text.trim())
    else (at > lastUser ? blocks.late : blocks.plain).push(text)
  }
  return blocks
}

/** The user's turn: all they said since our last answer. */
const trailingUserTexts = (messages: readonly ChatMessage[]): string[] => {
  const texts: string[] = []
  for (const message of messages.toReversed()) {
    if (message.role === 'user') texts.unshift(message.content)
    else if (message.role === 'assistant' || message.role === 'tool') break
  }
  return texts
}

const wishOf = (texts: readonly string[]): Scene['wish'] => {
  const text = texts.join('\n')
  if (/\b(?:shorter|briefly|brief|in one sentence|keep it short)\b|简短|短一点|一句话|简洁/iu.test(text)) return 'short'
  return /\b(?:longer|in detail|at length|tell me more)\b|详细|长一点|多说/iu.test(text) ? 'long' : undefined
}

const languageWish = (texts: readonly string[]): Language | undefined => {
  const text = texts.join('\n')
  if (/\b(?:in|speak|use) (?:chinese|mandarin)\b|用中文|说中文|讲中文/iu.test(text)) return 'zh'
  return /\b(?:in|speak|use) english\b|用英文|用英语|说英语/iu.test(text) ? 'en' : undefined
}

const pronounsOf = (text: string): string[] => {
  const count = (pattern: RegExp): number => text.match(pattern)?.length ?? 0
  return [count(/\bshe\b/giu) >= count(/\bhe\b/giu) ? 'She' : 'He', count(/她/gu) >= count(/他/gu) ? '她' : '他']
}

/** "You are Mira, a keeper." in a card is about the character, too. */
const inThirdPerson = (sentence: string, name: string): string =>
  sentence
    .replace(/^You are (?=an? |the )/u, `${name} is `)
    .replace(new RegExp(`^You are ${name.replace(/[.*+?^${}()|[\]\\]/gu, '\\$&')},? (?=an? |the )`, 'u'), `${name} is `)
    .replace(/^你是(?=一)/u, `${name}是`)

/** Reads a request's messages. Never fails: what it cannot find is left out of the answer. */
export const readScene = (messages: readonly ChatMessage[]): Scene => {
  const lastUser = messages.findLastIndex((message) => message.role === 'user')
  const blocks = readBlocks(messages, lastUser)
  const userTexts = messages.flatMap((message) => (message.role === 'user' ? [message.content] : []))
  const answers = messages.flatMap((message) => (message.role === 'assistant' && message.content !== null ? [message.content] : []))
  const trailing = trailingUserTexts(messages)
  const message = trailing[0] ?? userTexts.at(-1) ?? ''
  const steers = trailing.slice(1)
  const asked = [...steers, message]
  const language =
    languageWish(asked) ??
    [...asked, ...userTexts.toReversed(), ...answers.toReversed()]
      .map((text) => languageOf(spokenText(text)))
      .find((found) => found !== undefined) ??
    'en'

  const standing = blocks.plain.filter((text) => !RULES.test(text))
  const everything = [...blocks.plain, ...blocks.late].join('\n')
  const name = matchOf(blocks.plain, CHARACTER_NAME) ?? ''
  const nativeCharacter = nativeName(name, language, [...standing, everything, ...answers].join('\n'))
  const givenUser = matchOf(blocks.plain, USER_NAME)
  const user = givenUser === undefined || NO_NAME.test(givenUser) ? undefined : givenUser

  const names = [...new Set([name, nativeCharacter].filter((one) => one !== ''))]
  const subjects = [...names, ...pronounsOf(standing.join('\n'))]
  const sentences = standing.flatMap(sentencesOf).map((sentence) => inThirdPerson(sentence, names[0] ?? 'You'))
  const firstPerson = language === 'zh' ? toFirstPersonChinese : toFirstPerson
  const rememberedOf = [
    ...(user === undefined ? [] : [user]),
    'The user',
    'the user',
    'User',
    '用户',
    ...(givenUser === undefined ? [] : [givenUser]),
  ]
  const secondPerson = language === 'zh' ? toSecondPersonChinese : toSecondPerson
  const isRight = (text: string): boolean => languageOf(text) === language
  const placed = standing.flatMap(sentencesOf).filter(isRight)
  const place = placed.find((sentence) => OF_THE_HOUR.test(sentence)) ?? placed.find((sentence) => OF_ARRIVAL.test(sentence))

  return {
    language,
    character: nativeCharacter,
    user,
    facts: [...new Set(sentences.filter(isRight).flatMap((sentence) => firstPerson(sentence, subjects) ?? []))],
    place: place === undefined ? undefined : asClause(secondPerson(place, rememberedOf) ?? place),
    props: propsOf([...standing, answers[0] ?? ''].join('\n'), language),
    isStaged:
      answers.length === 0
        ? blocks.examples.some(({ answered }) => stageText(answered) !== '')
        : answers.slice(-4).some((text) => stageText(text) !== ''),
    memories: blocks.memories.map((text) => secondPerson(text, rememberedOf) ?? asClause(text)),
    passages: blocks.passages,
    examples: blocks.examples,
    message,
    said: spokenText(message),
    did: stageText(message),
    steers,
    earlierSaid: userTexts.slice(0, userTexts.length - trailing.length).map(spokenText),
    earlierAnswers: answers,
    wasCut: answers.length > 0 && trailing.length > 0 && !/[.!?…。！？"”'’」*)）\]】]\s*$/u.test(answers.at(-1) ?? ''),
    wish: wishOf([...asked, ...blocks.late]),
  }
}
