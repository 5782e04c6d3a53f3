import type { ExtractionAnswer, ExtractionProposal, ExtractionRequest } from '#contracts/memory-extraction'
import { dayOf } from './days.ts'
import { asClause, type Language, languageOf, spokenText } from './language.ts'

/** One kind of thing worth keeping, told by its words. `say` gets the groups and answers with what follows the subject. */
type Rule = {
  sign: RegExp
  type: ExtractionProposal['type']
  priority: number
  sensitive?: boolean
  /** The subject owns it: "The user's name is …". */
  isPossessive?: boolean
  say: (...groups: string[]) => string
}

const EN_END = '(?=$|[.!?;\\n]|,? (?:but|because|so|and i|and my|although|though|which)\\b|, )'
const ZH_END = '(?=$|[，,。.！!？?；;\\n]|但|因为|所以|不过)'

const ENGLISH: readonly Rule[] = [
  { sign: new RegExp(`\\b(?:my name is|my name's|please call me|you can call me|call me) ([A-Z][\\p{L}'’-]{1,30})`, 'u'), type: 'fact', priority: 0.9, isPossessive: true, say: (name) => `name is ${name}` },
  { sign: new RegExp(`\\bi(?:'m| am) (?:badly |severely )?allergic to (.{2,60}?)${EN_END}`, 'iu'), type: 'fact', priority: 0.95, sensitive: true, say: (what) => `is allergic to ${what}` },
  { sign: new RegExp(`\\bi (?:have|was diagnosed with|suffer from) (?:a |an )?((?:\\w+ )?(?:diabetes|asthma|depression|anxiety|migraines?|insomnia|epilepsy|cancer|adhd|arthritis))${EN_END}`, 'iu'), type: 'fact', priority: 0.9, sensitive: true, say: (what) => `has ${what}` },
  { sign: new RegExp(`\\bi(?:'ve| have)? (?:just |recently )?moved (?:from .{2,30} )?to (.{2,50}?)${EN_END}`, 'iu'), type: 'event', priority: 0.7, say: (where) => `moved to ${where}` },
  { sign: new RegExp(`\\bi live in (.{2,50}?)${EN_END}`, 'iu'), type: 'fact', priority: 0.7, say: (where) => `lives in ${where}` },
  { sign: new RegExp(`\\bi (?:work|am working|'m working) (as|at|for|in) (.{2,60}?)${EN_END}`, 'iu'), type: 'fact', priority: 0.7, say: (how, where) => `works ${how} ${where}` },
  { sign: new RegExp(`\\bi (?:really |just |absolutely )?(?:hate|dislike|can't stand|cannot stand|don't like|do not like) (.{2,70}?)${EN_END}`, 'iu'), type: 'preference', priority: 0.6, say: (what) => `dislikes ${what}` },
  { sign: new RegExp(`\\bmy favou?rite ([\\p{L} ]{2,24}?) (?:is|are) (.{2,60}?)${EN_END}`, 'iu'), type: 'preference', priority: 0.65, isPossessive: true, say: (kind, what) => `favourite ${kind} is ${what}` },
  { sign: new RegExp(`\\bi (?:really |just |also |always |absolutely )?(like|love|enjoy|prefer|adore) (?!(?:you|your|it|that|this|them|him|her|how|when|what|the way|to hear)\\b)(.{2,70}?)${EN_END}`, 'iu'), type: 'preference', priority: 0.6, say: (verb, what) => `${verb.toLowerCase()}s ${what}` },
  { sign: new RegExp(`\\b(?:i promise(?: you)?(?: that)?(?: to)?) (.{3,90}?)${EN_END}`, 'iu'), type: 'promise', priority: 0.7, say: (what) => `promised: ${what}` },
  { sign: new RegExp(`\\b(?:i(?:'ll| will| am going to|'m going to| plan to| am planning to|'m planning to) )(.{3,90}?(?:tomorrow|tonight|next \\w+|in \\w+ (?:days?|weeks?|months?)|on (?:mon|tues|wednes|thurs|fri|satur|sun)day|this (?:week|weekend|evening|month)))${EN_END}`, 'iu'), type: 'plan', priority: 0.7, say: (what) => `plans to ${what}` },
  { sign: new RegExp(`\\bi have (an? (?=.{0,80}\\b(?:tomorrow|tonight|next \\w+|on (?:mon|tues|wednes|thurs|fri|satur|sun)day)\\b).{3,90}?)${EN_END}`, 'iu'), type: 'plan', priority: 0.7, say: (what) => `has ${what}` },
  { sign: new RegExp(`\\b(yesterday|last (?:night|week|month|year)),? i (.{4,90}?)${EN_END}`, 'iu'), type: 'event', priority: 0.5, say: (when, what) => (/yesterday|night/iu.test(when) ? `${what} yesterday` : what) },
]

const CHINESE: readonly Rule[] = [
  { sign: /(?:我叫|我的名字(?:是|叫)|(?:请|可以)?叫我)\s*([\p{L}·]{1,10}?)(?=$|[，,。.！!？?；;\s吧就])/u, type: 'fact', priority: 0.9, say: (name) => `名叫${name}` },
  { sign: new RegExp(`我对(.{1,20}?)(?:严重)?过敏`, 'u'), type: 'fact', priority: 0.95, sensitive: true, say: (what) => `对${what}过敏` },
  { sign: /我(?:有|得了|患有|患了)((?:\p{L}{0,4})(?:糖尿病|哮喘|抑郁症|焦虑症|偏头痛|失眠|癫痫|癌症?|高血压))/u, type: 'fact', priority: 0.9, sensitive: true, say: (what) => `患有${what}` },
  { sign: new RegExp(`我(?:最近|刚刚?|上个?月|去年)?(?:从.{1,10})?(?:搬到|搬去|搬来|搬进)了?(.{1,20}?)(?:了)?${ZH_END}`, 'u'), type: 'event', priority: 0.7, say: (where) => `搬到了${where}` },
  { sign: new RegExp(`我住在(.{1,20}?)${ZH_END}`, 'u'), type: 'fact', priority: 0.7, say: (where) => `住在${where}` },
  { sign: new RegExp(`我(?:是做|是一[名个位]|在)(.{1,20}?(?:工作|上班|师|员|医生|老师|学生|工程师|设计师))${ZH_END}`, 'u'), type: 'fact', priority: 0.7, say: (what) => (/(?:工作|上班)$/u.test(what) ? `在${what}` : `是${what}`) },
  { sign: new RegExp(`我(?:最|很|特别|真的|非常|一直)*(?:不喜欢|讨厌|受不了|不爱)(?!你)(.{1,24}?)${ZH_END}`, 'u'), type: 'preference', priority: 0.6, say: (what) => `不喜欢${what}` },
  { sign: new RegExp(`我最喜欢的(.{1,10}?)是(.{1,24}?)${ZH_END}`, 'u'), type: 'preference', priority: 0.65, say: (kind, what) => `最喜欢的${kind}是${what}` },
  { sign: new RegExp(`我(?:很|也|特别|真的|非常|一直|最)*(喜欢|爱|偏爱|热爱)(?!你|他|她|它|的|这|那|听你)(.{1,24}?)${ZH_END}`, 'u'), type: 'preference', priority: 0.6, say: (verb, what) => `${verb}${what}` },
  { sign: new RegExp(`我(?:答应|保证|发誓)(?:你)?[，,：:]?(.{2,40}?)${ZH_END}`, 'u'), type: 'promise', priority: 0.7, say: (what) => `答应：${what}` },
  { sign: new RegExp(`((?:明天|后天|今晚|下周[一二三四五六日天]?|下个?(?:星期|礼拜)[一二三四五六日天]?|下个?月|周末|\\d{1,2}月\\d{1,2}[日号]))[，,]?我?(?:就|会)?(?:要|打算|准备|计划|想|得)?(去.{1,30}?|有.{1,20}?|.{2,30}?(?:面试|考试|出发|搬家|开会|见面|手术|结婚))${ZH_END}`, 'u'), type: 'plan', priority: 0.7, say: (when, what) => `计划${when}${what}` },
  { sign: new RegExp(`我(?:打算|准备|计划)(?!不)(.{2,40}?)${ZH_END}`, 'u'), type: 'plan', priority: 0.65, say: (what) => `计划${what}` },
  { sign: new RegExp(`我?(昨天|前天|昨晚|上周|上个?月|去年)我?(.{3,40}?)了?${ZH_END}`, 'u'), type: 'event', priority: 0.5, say: (when, what) => `${when}${what}` },
]

const REMEMBER: Record<Language, RegExp> = {
  en: /\b(?:please |can you |could you |you should )?(?:remember|keep in mind|don't forget|do not forget)(?: this:?| that|:) (.{4,200}?)(?=$|[.!?\n])/iu,
  zh: /(?:请|帮我|要|你要)(?:记住|记下|别忘了?|不要忘记)[：:，,\s]*(.{2,80}?)(?=$|[。！!？?\n])/u,
}

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

const subjectOf = (speaker: string, language: Language): string => (UNNAMED.test(speaker.trim()) ? (language === 'zh' ? '用户' : 'The user') : speaker.trim())

const normal = (text: string): string => text.normalize('NFKC').toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')

const THIRD_PERSON: Record<string, string> = { are: 'is', have: 'has', do: 'does', "don't": "doesn't", "aren't": "isn't", "haven't": "hasn't" }

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
  if (language === 'zh') return told.startsWith('自己') ? { rest: told.slice(2), isPossessive: false } : { rest: `要人记住：${told}`, isPossessive: false }
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
  for (const rule of language === 'zh' ? CHINESE : ENGLISH) {
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
        const content = language === 'zh' ? `${subject}${dated}。` : `${subject}${rule.isPossessive === true ? "'s" : ''} ${dated}.`
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
