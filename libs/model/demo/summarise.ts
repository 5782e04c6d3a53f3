import type { SummaryAnswer, SummaryRequest } from '#contracts/memory-extraction'
import { extractMemories } from './extract.ts'
import { asClause, languageOf, sentencesOf, spokenText } from './language.ts'

const MOST = 24
const LONGEST = 160

const joined = (older: readonly string[] | undefined, newer: readonly string[]): string[] =>
  [...new Set([...(older ?? []), ...newer])].slice(-MOST)

/** The demo model's incremental summary: what its extraction finds, sorted into five parts, and where the talk stands. */
export const summarise = (request: SummaryRequest): SummaryAnswer => {
  const { previous, messages, zone } = request
  const { proposals } = extractMemories({ messages, zone })
  const ofType = (...types: string[]): string[] => proposals.filter(({ type }) => types.includes(type)).map(({ content }) => content)
  const speakers = [...new Set(messages.map(({ speaker }) => speaker))]
  const texts = messages.map(({ text }) => spokenText(text))
  const isChinese = languageOf(texts.join(' ')) === 'zh'
  const talkers = speakers.join(isChinese ? '、' : ', ')
  const opening = sentencesOf(texts[0] ?? '')[0]
  const lastQuestion = messages.findLast(({ role, text }) => role === 'user' && /[?？]\s*$/u.test(text.trim()))
  const quote = (text: string): string => asClause(spokenText(text)).slice(0, LONGEST)
  return {
    background: joined(
      previous?.background,
      opening === undefined
        ? []
        : [isChinese ? `${talkers}在交谈，从“${quote(opening)}”说起。` : `${talkers} talk; it begins with “${quote(opening)}”.`],
    ),
    facts: joined(previous?.facts, ofType('fact', 'preference', 'event')),
    relationships: joined(previous?.relationships, ofType('relationship_view')),
    open_matters: joined(previous?.open_matters, [
      ...ofType('plan'),
      ...(lastQuestion === undefined
        ? []
        : [
            isChinese
              ? `${lastQuestion.speaker}问：${quote(lastQuestion.text)}`
              : `${lastQuestion.speaker} asked: ${quote(lastQuestion.text)}`,
          ]),
    ]),
    key_decisions: joined(previous?.key_decisions, ofType('promise')),
  }
}
