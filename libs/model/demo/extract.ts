import type { ExtractionAnswer, ExtractionProposal, ExtractionRequest } from '#contracts/memory-extraction'
import { dayOf } from './days.ts'
import { REMEMBER, type Rule, RULES } from './extraction-rules.ts'
import { asClause, type Language, languageOf, spokenText } from './language.ts'

/** Said about oneself → said about somebody: "my sister" → "their sister". */
const aboutThem = (text: string, language: Language): string =>
  language === 'zh'
    ? text.replace(/我自己|我(?!们)/gu, '自己')
    : text
        .replace(/\bmy\b/giu, 'their')
        .replace(/\bmine\b/giu, 'theirs')
        .replace(/\bmyself\b/giu, 'themselves')
        .replace(/\bme\b/giu, 'them')
        .replace(/\b(?:I'm|I am)\b/giu, 'they are')
        .replace(/\b(?:I've|I have)\b/giu, 'they have')
        .replace(/\b(?:I'll|I will)\b/giu, 'they will')
        .replace(/\bI\b/gu, 'they')

/** Health, money, identity, bodies, belief, other people: what the owner must confirm. Words only; the domain's own rules are stricter. */
const SENSITIVE =
  /allerg|diagnos|illness|medic|doctor|hospital|surgery|pregnan|therap|depress|anxi|salary|debt|loan|bank|passport|password|address|phone number|gay|lesbian|trans\b|religio|church|pray|\b(?:sister|brother|mother|father|mom|dad|wife|husband|son|daughter|boss|friend|girlfriend|boyfriend)\b|过敏|病|医院|医生|手术|吃药|怀孕|抑郁|焦虑|工资|欠|贷款|银行|护照|身份证|密码|住址|电话|同性|宗教|信佛|教堂|姐|妹|哥|弟|妈|爸|母亲|父亲|老婆|老公|妻子|丈夫|儿子|女儿|老板|朋友/iu

const UNNAMED = /^(?:user|you|me|anon(?:ymous)?|human|用户|你|我|匿名|)$/iu

const subjectOf = (speaker: string, language: Language): string =>
  UNNAMED.test(speaker.trim()) ? (language === 'zh' ? '用户' : 'The user') : speaker.trim()

const normal = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '')

const THIRD_PERSON: Record<string, string> = {
  are: 'is',
  have: 'has',
  do: 'does',
  "don't": "doesn't",
  "aren't": "isn't",
  "haven't": "hasn't",
}

/** hate → hates, carry → carries; auxiliaries and the past stay. */
const thirdPersonVerb = (verb: string): string => {
  const known = THIRD_PERSON[verb]
  if (known !== undefined) return known
  if (/^(?:can|will|must|may|might|could|would|should|had|was|were)$|ed$/u.test(verb)) return verb
  if (/[^aeiou]y$/u.test(verb)) return `${verb.slice(0, -1)}ies`
  return /(?:s|x|z|ch|sh|o)$/u.test(verb) ? `${verb}es` : `${verb}s`
}

/** What somebody wants remembered, as a sentence with them as its subject. */
const asRequested = (text: string, language: Language): { rest: string; isPossessive: boolean } => {
  const told = asClause(aboutThem(text, language))
  if (language === 'zh')
    return told.startsWith('自己') ? { rest: told.slice(2), isPossessive: false } : { rest: `要人记住：${told}`, isPossessive: false }
  if (/^their /iu.test(told)) return { rest: told.slice(6), isPossessive: true }
  const own = /^they ([a-z']+)(.*)$/iu.exec(told)
  return { rest: own === null ? `asks to keep in mind: ${told}` : `${thirdPersonVerb(own[1] ?? '')}${own[2] ?? ''}`, isPossessive: false }
}

type Found = { rest: string; rule: Pick<Rule, 'type' | 'priority' | 'sensitive' | 'isPossessive'>; confidence: number }

/** Names the character where it was said "you" to. */
const withoutYou = (text: string, character: string, language: Language): string =>
  language === 'zh' ? text.replace(/你(?!们)/gu, character) : text.replace(/\byour\b/giu, `${character}'s`).replace(/\byou\b/giu, character)

const findAll = (text: string, language: Language): Found[] => {
  const found: Found[] = []
  for (const rule of RULES[language]) {
    for (const match of text.matchAll(new RegExp(rule.sign.source, `${rule.sign.flags}g`))) {
      const rest = asClause(rule.say(...match.slice(1).map((group) => aboutThem((group ?? '').trim(), language))))
      if (rest !== '') found.push({ rest, rule, confidence: 0.85 })
    }
  }
  const asked = REMEMBER[language].exec(text)?.[1]
  // What a rule has caught needs no second sentence.
  if (asked === undefined || found.length > 0) return found
  const { rest, isPossessive } = asRequested(asked, language)
  return [{ rest, rule: { type: 'fact', priority: 0.8, isPossessive }, confidence: 0.9 }]
}

/**
 * The demo model's extraction: what people say of themselves in plain words, in English and Chinese, as sentences that stand alone. It reads
 * the user's messages only, and would rather find nothing than noise. Questions and what is remembered already are left out.
 */
export const extractMemories = (request: ExtractionRequest): ExtractionAnswer => {
  const byContent = new Map<string, ExtractionProposal>()
  const character = request.messages.find(({ role }) => role === 'character')?.speaker.trim()
  const known = new Set((request.existing ?? []).map(({ content }) => normal(content)))
  for (const message of request.messages) {
    if (message.role !== 'user') continue
    const text = spokenText(message.text).replace(/’/gu, "'")
    const statements = text.split(/(?<=[.!?。！？])\s*/u).filter((sentence) => !/[?？]\s*$/u.test(sentence))
    for (const statement of statements) {
      const language = languageOf(statement) ?? 'en'
      const subject = subjectOf(message.speaker, language)
      for (const { rest, rule, confidence } of findAll(statement, language)) {
        const day = dayOf(statement, { at: message.at, zone: request.zone })
        const named = withoutYou(rest, character ?? (language === 'zh' ? '对方' : 'the character'), language)
        const dated = day === undefined ? named : named.replace(day.words, language === 'zh' ? day.date : `on ${day.date}`)
        const who = rest.endsWith(subject) ? subjectOf('', language) : subject
        const content = language === 'zh' ? `${who}${dated}。` : `${who}${rule.isPossessive === true ? "'s" : ''} ${dated}.`
        if (known.has(normal(content))) continue
        const present = byContent.get(normal(content))
        if (present !== undefined) {
          if (!present.source_message_ids.includes(message.id)) present.source_message_ids.push(message.id)
          continue
        }
        byContent.set(normal(content), {
          content,
          type: rule.type,
          priority: rule.priority,
          confidence,
          sensitive: rule.sensitive === true || SENSITIVE.test(rest),
          source_message_ids: [message.id],
          event_at: rule.type === 'plan' || rule.type === 'event' ? (day?.date ?? null) : null,
        })
      }
    }
  }
  return { proposals: [...byContent.values()] }
}
