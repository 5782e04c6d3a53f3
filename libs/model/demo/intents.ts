import type { Scene } from './scene.ts'

/** What the user's words ask for. `subject` is the part that matters, as they wrote it. */
export type Intent = { kind: IntentKind; subject: string }

export type IntentKind =
  | 'is_demo'
  | 'arithmetic'
  | 'recall'
  | 'remember'
  | 'name'
  | 'farewell'
  | 'greeting'
  | 'thanks'
  | 'sorry'
  | 'how_are_you'
  | 'about_you'
  | 'where'
  | 'story'
  | 'joke'
  | 'poem'
  | 'choice'
  | 'advice'
  | 'go_on'
  | 'dislike'
  | 'like'
  | 'move'
  | 'plan'
  | 'low'
  | 'glad'
  | 'affection'
  | 'yes'
  | 'no'
  | 'deed'
  | 'silence'
  | 'why'
  | 'question'
  | 'told'

/** In order: the first that fits decides. A pattern's first group, where it has one, is the subject. */
const SIGNS: readonly [IntentKind, RegExp][] = [
  [
    'is_demo',
    /\b(?:are|aren't) you (?:really |actually |just )?(?:an? )?(?:real|human|person|ai|a\.i\.|bot|robot|chatbot|language model|llm|gpt|chatgpt|program|machine|demo)\b|\b(?:is this|are you) (?:an? |the )?(?:built-in )?demo\b|\bwhat (?:language )?model (?:are you|is this)\b|你(?:到底)?(?:是不是|是|真的是)(?:一?个)?(?:真人|人类|AI|人工智能|机器人|程序|语言模型|大模型|模型|演示|demo)|什么模型|(?:这是|你是)(?:一个)?(?:演示|demo|内置)|是真人吗/iu,
  ],
  ['arithmetic', /(-?\d+(?:\.\d+)?\s*(?:[-+*/×÷x]|plus|minus|times|加|减|乘|除以)\s*-?\d+(?:\.\d+)?)/iu],
  [
    'recall',
    /\b(?:do you|don't you|can you|you)?\s*(?:still )?remember (?:me|my|what|when|how|who|that i|anything|i)\b|\bdo you (?:still )?remember\b|\bwhat do you (?:know|remember) (?:about|of) me\b|\b(?:do you know|what is|what's) my (?:name|favou?rite)\b|\bknow who i am\b|(?:还|你)记得|你知道我(?:是|的|叫|喜欢|爱)|我叫什么|(?:记住|知道)了?我(?:的)?(?:什么|哪些)|关于我/iu,
  ],
  [
    'remember',
    /\b(?:please |can you |could you )?(?:remember|keep in mind|don't forget|do not forget|note)(?: this| that)?[:,]?\s+(?:that )?(.{3,})|(?:请|帮我|要|你要)?(?:记住|记下|别忘了?|不要忘记?)[：:，,\s]*(.{2,})/iu,
  ],
  [
    'name',
    /\b(?:my name is|my name's|call me|i am called|i'm called)\s+([\p{L}'’-]{2,24})|(?:我叫|我的名字(?:是|叫)|叫我)\s*([\p{L}·]{1,8}?)(?=[，,。.！!\s吧就]|$)/iu,
  ],
  [
    'farewell',
    /^\W*(?:good ?bye|bye(?: bye)?|good ?night|see you|farewell|i (?:have to|must|should|need to) (?:go|leave)|gotta go|until next time)\b|^(?:再见|拜拜|晚安|我(?:先|得|该)走了|回头见|下次见|告辞)/iu,
  ],
  [
    'how_are_you',
    /\bhow (?:are|have) you\b|\bhow's it going\b|\bhow do you feel\b|(?:你|您)(?:今天|最近)?(?:还)?(?:好吗|怎么样|如何|过得)/iu,
  ],
  [
    'greeting',
    /^\W*(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|day)|howdy|hiya)\b.{0,40}$|^(?:你好|您好|嗨|哈喽|早上好|下午好|晚上好|早安|在吗|我来了|我回来了).{0,12}$/iu,
  ],
  ['thanks', /^\W*(?:thanks|thank you|thx|much appreciated)\b|^(?:多谢|谢谢|感谢|谢了)/iu],
  ['sorry', /^\W*(?:sorry|i(?:'m| am) sorry|my apologies|forgive me)\b|^(?:对不起|抱歉|不好意思|请原谅)/iu],
  ['story', /\b(?:tell|share).{0,20}\b(?:story|tale)\b|讲.{0,6}故事|说.{0,4}故事/iu],
  ['joke', /\b(?:joke|make me laugh|something funny)\b|笑话|逗我/iu],
  ['poem', /\b(?:poem|haiku|verse|rhyme)\b|写.{0,6}诗|作.{0,4}诗|一首诗|俳句/iu],
  [
    'where',
    /\bwhere (?:are we|am i|is this)\b|\bwhat is this place\b|\bdescribe (?:the|this) (?:place|room|scene)\b|这(?:里|儿)?是(?:哪|什么地方)|我(?:们)?在哪/iu,
  ],
  [
    'choice',
    /\b(?:should i|shall i|which|would you|do you prefer).{0,80}?\b([\p{L}' -]{2,30} or (?:a |an |the )?[\p{L}' -]{2,30})|([\p{L}\p{N}]{1,12}还是[\p{L}\p{N}]{1,12})/iu,
  ],
  [
    'about_you',
    /\bwho are you\b|\btell me (?:more )?about (?:yourself|you|your\b)|\bwhat(?:'s| is) your (?:name|story|job)\b|\bwhat do you do\b|\byour favou?rite\b|\bdo you (?:like|live|ever|have|miss|want|enjoy)\b|\b(?:why|how long|when) (?:are|did|do|have) you\b|你(?:是谁|叫什么|是做什么|是干什么)|介绍.{0,4}(?:自己|你)|(?:说说|讲讲|聊聊)你|你(?:喜欢|平时|住在|一个人|为什么|多大|怎么会)/iu,
  ],
  [
    'advice',
    /\b(?:what should i|should i|any advice|advise me|what would you do|recommend|suggest|help me (?:decide|choose))\b|怎么办|该不该|(?:给|有).{0,4}建议|推荐|你觉得我/iu,
  ],
  [
    'go_on',
    /^\W*(?:go on|continue|and then|tell me more|more|keep going|what happened next)\W*$|^(?:继续|然后呢|接着说|再说点|还有呢|后来呢)/iu,
  ],
  [
    'affection',
    /\bi (?:love|adore|like|miss|missed|trust) you\b|\byou(?:'re| are) (?:so |very |really )?(?:kind|sweet|beautiful|lovely|wonderful|great|cute|nice|funny|wise)\b|我(?:爱|喜欢|想|想念)你|你(?:真|好|太)(?:好|美|可爱|温柔|善良|有趣)/iu,
  ],
  [
    'dislike',
    /\bi (?:really |just )?(?:hate|dislike|can't stand|cannot stand|don't like|do not like|never liked)\s+(.{2,60})|我(?:很|最|特别|真的)?(?:讨厌|不喜欢|受不了|不爱)(?!你)(.{1,24})/iu,
  ],
  [
    'like',
    /\bi (?:really |just |also |always |do )?(?:like|love|adore|enjoy|prefer)\s+(.{2,60})|\bmy favou?rite (?:[\p{L}]+ )?(?:is|are)\s+(.{2,60})|我(?:很|最|也|特别|一直|真的|非常)?(?:喜欢|爱|偏爱|热爱)(?!你)(.{1,24})|我最喜欢的.{1,8}是(.{1,16})/iu,
  ],
  [
    'move',
    /\bi (?:have |just |'ve )*(?:moved|am moving|'m moving) (?:to|into|from)\s+(.{2,40})|我(?:刚|刚刚|最近)?(?:搬到|搬去|搬来|搬进)了?(.{1,16})/iu,
  ],
  [
    'low',
    /\b(?:sad|tired|exhausted|lonely|anxious|worried|afraid|scared|angry|upset|stressed|depressed|hurt|cry(?:ing)?|heartbroken|failed|lost my|broke up|awful|terrible|overwhelmed|hopeless)\b|难过|伤心|好?累|疲惫|孤独|寂寞|焦虑|担心|害怕|生气|压力|想哭|哭了|失败|失恋|分手|崩溃|委屈|烦|糟糕|失眠/iu,
  ],
  [
    'glad',
    /\b(?:happy|glad|excited|proud|great news|good news|wonderful|delighted|i did it|got the job|passed|won|celebrat\w+)\b|开心|高兴|激动|太好了|好消息|成功了|通过了|赢了|骄傲|庆祝|终于/iu,
  ],
  [
    'plan',
    /\b(?:tomorrow|tonight|next (?:week|month|year|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|i(?:'m| am) (?:going|planning) to|i(?:'ll| will) )\b|明天|后天|今晚|下(?:周|个月|星期|礼拜)|我(?:打算|准备|计划|要去|想去)/iu,
  ],
  [
    'yes',
    /^\W*(?:yes|yeah|yep|sure|of course|ok(?:ay)?|alright|indeed|right|please do)\b.{0,24}$|^(?:是的?|对|好的?|嗯+|可以|行|当然|没错|好啊|愿意).{0,6}$/iu,
  ],
  ['no', /^\W*(?:no|nope|nah|not really|never|not yet)\b.{0,24}$|^(?:不|没有?|不是|不要|还没|不用|算了).{0,6}$/iu],
  ['why', /^\W*why\b|为什么|为何|怎么会/iu],
]

/** `或`, `?`, a first word: a question that no other sign told of. */
const QUESTION =
  /[?？]\s*$|^\W*(?:what|where|when|who|how|which|is|are|do|does|did|can|could|would|will|have|has)\b|(?:吗|呢|什么|哪里|哪儿|谁|怎么|多少|几)[？?。]?$/iu

const subjectOf = (match: RegExpExecArray): string => (match.slice(1).find((group) => group !== undefined) ?? '').trim()

/** Reads the intent off the signs in the words. */
export const intentOf = (scene: Pick<Scene, 'said' | 'did'>): Intent => {
  const { said } = scene
  if (said === '' && scene.did !== '') return { kind: 'deed', subject: scene.did }
  if (!/[\p{L}\p{N}]/u.test(said)) return { kind: 'silence', subject: '' }
  for (const [kind, sign] of SIGNS) {
    const match = sign.exec(said)
    if (match !== null) return { kind, subject: subjectOf(match) }
  }
  return { kind: QUESTION.test(said) ? 'question' : 'told', subject: '' }
}
