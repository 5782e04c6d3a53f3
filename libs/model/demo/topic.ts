import { asClause, type Language, mirror, sentencesOf } from './language.ts'

const PLAIN_WORDS = new Set(
  `a about after again all also always am an and any anyone anything are around as ask asked at away back be because been before being big but by came can
  cannot come could day days did do does doing don't done each even ever every everything feel few find first for found from gave get gets getting give go goes
  going gone good got great had has have having he hello help her here hers hey hi him his how i i'd i'll i'm i've if in into is it it's its just keep kind
  knew know last let like little long look lot made make makes many maybe me mean more most much must my myself need never new next no not nothing now of off often oh ok
  old on once one only or other our out over people please put quite really recommend remember right said same saw say see seem seems she should sing so some someone something sometimes
  soon started still such sure take talk tell than that that's the their them then there these they thing things think this those though thought through
  time to today tomorrow tonight too took tried try two under until up us use used very want wanted was way we well went were what when where which while who
  whole why will with without won't word words work would year years yes yesterday yet you story tale poem joke question thank thanks sorry real person you're your yours`.split(
    /\s+/,
  ),
)
const PLAIN_HAN = new Set(
  '今天 明天 昨天 现在 时候 什么 怎么 为什么 这个 那个 这样 那样 一个 一下 一点 有点 觉得 知道 可以 可能 应该 没有 不是 就是 还是 但是 因为 所以 如果 我们 你们 他们 她们 自己 大家 真的 非常 特别 已经 一直 还有 然后 后来 最近 其实 只是 事情 东西 起来 出来 看看 告诉 喜欢 想要 需要 开始 继续 感觉 终于 刚刚 一起 一些 这里 那里 里面 的话 说话 请问 好像 比较 不过 故事 笑话 讲个 讲讲 说说 一首 首诗 写诗 你是 我是 真人 谢谢 你好 再见 记得 记住 是不是 还记得 为何 哪里 怎么样 介绍'.split(
    ' ',
  ),
)

const segmenter = new Intl.Segmenter('zh', { granularity: 'word' })

/** What stands before a noun, turned round: my clock → your clock. */
const DETERMINERS: Record<string, string> = {
  a: 'the',
  an: 'the',
  the: 'the',
  this: 'this',
  that: 'that',
  these: 'these',
  those: 'those',
  my: 'your',
  our: 'your',
  your: 'my',
}

/** Has a word of its own before it, and so is a noun for sure. */
export const isNounPhrase = (topic: string): boolean => /^(?:the|this|that|these|those|your|my) /u.test(topic)

const topicEnglish = (text: string): string | undefined => {
  const words = text.match(/[\p{L}'’-]+/gu) ?? []
  let best: { text: string; weight: number } | undefined
  let run: string[] = []
  let before = ''
  for (const [at, word] of [...words, 'the'].entries()) {
    const lower = word.toLowerCase().replace(/’/gu, "'")
    const isPlain = PLAIN_WORDS.has(lower) || word.length < 3 || /(?:ly|n't)$/u.test(lower)
    if (!isPlain) {
      run.push(/^[A-Z]/u.test(word) && at > 0 ? word : lower)
      continue
    }
    // "My boss shouted": the noun, without what it did.
    while (run.length > 1 && /(?:ed|ing)$/u.test(run.at(-1) ?? '')) run.pop()
    const kept = run.slice(-2)
    const determiner = run.length <= 2 ? DETERMINERS[before] : undefined
    // A noun with its article carries most; later and longer words carry more; a lone verb form carries less.
    const weight =
      kept.join('').length +
      (determiner === undefined ? 0 : 7) +
      (kept.some((one) => /(?:ing|ed)$/u.test(one)) ? -4 : 0) +
      (best === undefined ? 0 : 1)
    if (kept.length > 0 && (best === undefined || weight >= best.weight))
      best = { text: [...(determiner === undefined ? [] : [determiner]), ...kept].join(' '), weight }
    run = []
    before = lower
  }
  return best?.text
}

const topicChinese = (text: string): string | undefined => {
  const words = [...segmenter.segment(text)].filter((piece) => piece.isWordLike === true).map((piece) => piece.segment)
  const telling = words.filter((word) => word.length >= 2 && !PLAIN_HAN.has(word) && !/^[\d\p{Script=Latin}]+$/u.test(word))
  return telling.toSorted((a, b) => b.length - a.length)[0]
}

/** What a message is about, in one or two of its own words; undefined where nothing in it stands out. */
export const topicOf = (text: string, language: Language): string | undefined =>
  language === 'zh' ? topicChinese(text) : topicEnglish(text)

/** A short piece of what was said, turned round to be said back; undefined where there is none that reads well. */
export const echoOf = (text: string, language: Language): string | undefined => {
  const clauses = sentencesOf(text)
    .filter((sentence) => !/[?？]$/u.test(sentence))
    .flatMap((sentence) => sentence.split(language === 'zh' ? /[，,；;]/u : /[,;](?= )/u))
    .map(asClause)
  const isGood = (clause: string): boolean =>
    language === 'zh'
      ? clause.length >= 4 && clause.length <= 22 && /我|你/u.test(clause)
      : /^(?:i|my|we|our|you|your|i'[a-z]+)\b/iu.test(clause) && clause.split(' ').length >= 3 && clause.split(' ').length <= 16
  const best = clauses.find(isGood)
  return best === undefined ? undefined : mirror(best.replace(/^(?:今天|其实|那个|嗯|啊)[，,]?/u, ''), language)
}
