import type { ExtractionProposal } from '#contracts/memory-extraction'
import type { Language } from './language.ts'

/** One kind of thing worth keeping, told by its words. `say` gets the groups and answers with what follows the subject. */
export type Rule = {
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
  {
    sign: new RegExp(`\\b(?:my name is|my name's|please call me|you can call me|call me) ([A-Z][\\p{L}'’-]{1,30})`, 'u'),
    type: 'fact',
    priority: 0.9,
    isPossessive: true,
    say: (name) => `name is ${name}`,
  },
  {
    sign: new RegExp(`\\bi(?:'m| am) (?:badly |severely )?allergic to (.{2,60}?)${EN_END}`, 'iu'),
    type: 'fact',
    priority: 0.95,
    sensitive: true,
    say: (what) => `is allergic to ${what}`,
  },
  {
    sign: new RegExp(
      `\\bi (?:have|was diagnosed with|suffer from) (?:a |an )?((?:\\w+ )?(?:diabetes|asthma|depression|anxiety|migraines?|insomnia|epilepsy|cancer|adhd|arthritis))${EN_END}`,
      'iu',
    ),
    type: 'fact',
    priority: 0.9,
    sensitive: true,
    say: (what) => `has ${what}`,
  },
  {
    sign: new RegExp(`\\bi(?:'ve| have)? (?:just |recently )?moved (?:from .{2,30} )?to (.{2,50}?)${EN_END}`, 'iu'),
    type: 'event',
    priority: 0.7,
    say: (where) => `moved to ${where}`,
  },
  { sign: new RegExp(`\\bi live in (.{2,50}?)${EN_END}`, 'iu'), type: 'fact', priority: 0.7, say: (where) => `lives in ${where}` },
  {
    sign: new RegExp(`\\bi (?:work|am working|'m working) (as|at|for|in) (.{2,60}?)${EN_END}`, 'iu'),
    type: 'fact',
    priority: 0.7,
    say: (how, where) => `works ${how} ${where}`,
  },
  {
    sign: new RegExp(
      `\\bi (?:really |just |absolutely )?(?:hate|dislike|can't stand|cannot stand|don't like|do not like) (.{2,70}?)${EN_END}`,
      'iu',
    ),
    type: 'preference',
    priority: 0.6,
    say: (what) => `dislikes ${what}`,
  },
  {
    sign: new RegExp(`\\bmy favou?rite ([\\p{L} ]{2,24}?) (?:is|are) (.{2,60}?)${EN_END}`, 'iu'),
    type: 'preference',
    priority: 0.65,
    isPossessive: true,
    say: (kind, what) => `favourite ${kind} is ${what}`,
  },
  {
    sign: new RegExp(
      `\\bi (?:really |just |also |always |absolutely )?(like|love|enjoy|prefer|adore) (?!(?:you|your|it|that|this|them|him|her|how|when|what|the way|to hear)\\b)(.{2,70}?)${EN_END}`,
      'iu',
    ),
    type: 'preference',
    priority: 0.6,
    say: (verb, what) => `${verb.toLowerCase()}s ${what}`,
  },
  {
    sign: new RegExp(`\\bi promise(?: you)? (that |to )?(.{3,90}?)${EN_END}`, 'iu'),
    type: 'promise',
    priority: 0.7,
    say: (how, what) => `promised ${how || 'that '} ${what}`.replace(/ {2,}/gu, ' '),
  },
  {
    sign: new RegExp(
      `\\b(?:i(?:'ll| will| am going to|'m going to| plan to| am planning to|'m planning to) )(.{3,90}?(?:tomorrow|tonight|next \\w+|in \\w+ (?:days?|weeks?|months?)|on (?:mon|tues|wednes|thurs|fri|satur|sun)day|this (?:week|weekend|evening|month)))${EN_END}`,
      'iu',
    ),
    type: 'plan',
    priority: 0.7,
    say: (what) => `plans to ${what}`,
  },
  {
    sign: new RegExp(
      `\\bi have (an? (?=.{0,80}\\b(?:tomorrow|tonight|next \\w+|on (?:mon|tues|wednes|thurs|fri|satur|sun)day)\\b).{3,90}?)${EN_END}`,
      'iu',
    ),
    type: 'plan',
    priority: 0.7,
    say: (what) => `has ${what}`,
  },
  {
    sign: new RegExp(`\\b(yesterday|last (?:night|week|month|year)),? i (.{4,90}?)${EN_END}`, 'iu'),
    type: 'event',
    priority: 0.5,
    say: (when, what) => (/yesterday|night/iu.test(when) ? `${what} yesterday` : what),
  },
]

const CHINESE: readonly Rule[] = [
  {
    sign: /(?:我叫|我的名字(?:是|叫)|(?:请|可以)?叫我)\s*([\p{L}·]{1,10}?)(?=$|[，,。.！!？?；;\s吧就])/u,
    type: 'fact',
    priority: 0.9,
    say: (name) => `名叫${name}`,
  },
  { sign: new RegExp(`我对(.{1,20}?)(?:严重)?过敏`, 'u'), type: 'fact', priority: 0.95, sensitive: true, say: (what) => `对${what}过敏` },
  {
    sign: /我(?:有|得了|患有|患了)((?:\p{L}{0,4})(?:糖尿病|哮喘|抑郁症|焦虑症|偏头痛|失眠|癫痫|癌症?|高血压))/u,
    type: 'fact',
    priority: 0.9,
    sensitive: true,
    say: (what) => `患有${what}`,
  },
  {
    sign: new RegExp(`我(?:最近|刚刚?|上个?月|去年)?(?:从.{1,10})?(?:搬到|搬去|搬来|搬进)了?(.{1,20}?)(?:了)?${ZH_END}`, 'u'),
    type: 'event',
    priority: 0.7,
    say: (where) => `搬到了${where}`,
  },
  { sign: new RegExp(`我住在(.{1,20}?)${ZH_END}`, 'u'), type: 'fact', priority: 0.7, say: (where) => `住在${where}` },
  {
    sign: new RegExp(`我(?:是做|是一[名个位]|在)(.{1,20}?(?:工作|上班|师|员|医生|老师|学生|工程师|设计师))${ZH_END}`, 'u'),
    type: 'fact',
    priority: 0.7,
    say: (what) => (/(?:工作|上班)$/u.test(what) ? `在${what}` : `是${what}`),
  },
  {
    sign: new RegExp(`我(?:最|很|特别|真的|非常|一直)*(?:不喜欢|讨厌|受不了|不爱)(?!你)(.{1,24}?)${ZH_END}`, 'u'),
    type: 'preference',
    priority: 0.6,
    say: (what) => `不喜欢${what}`,
  },
  {
    sign: new RegExp(`我最喜欢的(.{1,10}?)是(.{1,24}?)${ZH_END}`, 'u'),
    type: 'preference',
    priority: 0.65,
    say: (kind, what) => `最喜欢的${kind}是${what}`,
  },
  {
    sign: new RegExp(`我(?:很|也|特别|真的|非常|一直|最)*(喜欢|爱|偏爱|热爱)(?!你|他|她|它|的|这|那|听你)(.{1,24}?)${ZH_END}`, 'u'),
    type: 'preference',
    priority: 0.6,
    say: (verb, what) => `${verb}${what}`,
  },
  {
    sign: new RegExp(`我(?:答应|保证|发誓)(?:你)?[，,：:]?(.{2,40}?)${ZH_END}`, 'u'),
    type: 'promise',
    priority: 0.7,
    say: (what) => `答应：${what}`,
  },
  {
    sign: new RegExp(
      `((?:明天|后天|今晚|下周[一二三四五六日天]?|下个?(?:星期|礼拜)[一二三四五六日天]?|下个?月|周末|\\d{1,2}月\\d{1,2}[日号]))[，,]?我?(?:就|会)?(?:要|打算|准备|计划|想|得)?(去.{1,30}?|有.{1,20}?|.{2,30}?(?:面试|考试|出发|搬家|开会|见面|手术|结婚))${ZH_END}`,
      'u',
    ),
    type: 'plan',
    priority: 0.7,
    say: (when, what) => `计划${when}${what}`,
  },
  { sign: new RegExp(`我(?:打算|准备|计划)(?!不)(.{2,40}?)${ZH_END}`, 'u'), type: 'plan', priority: 0.65, say: (what) => `计划${what}` },
  {
    sign: new RegExp(`我?(昨天|前天|昨晚|上周|上个?月|去年)我?(.{3,40}?)了?${ZH_END}`, 'u'),
    type: 'event',
    priority: 0.5,
    say: (when, what) => `${when}${what}`,
  },
]

/** A request to remember; the group is what. */
export const REMEMBER: Record<Language, RegExp> = {
  en: /\b(?:please |can you |could you |you should )?(?:remember|keep in mind|don't forget|do not forget)(?: this:?| that|:) (.{4,200}?)(?=$|[.!?\n])/iu,
  zh: /(?:请|帮我|要|你要)(?:记住|记下|别忘了?|不要忘记)[：:，,\s]*(.{2,80}?)(?=$|[。！!？?\n])/u,
}

export const RULES: Record<Language, readonly Rule[]> = { en: ENGLISH, zh: CHINESE }
