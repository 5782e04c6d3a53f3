import type { ChatMessage } from '#kernel/ports/model-gateway'
import { embedText } from '../lexical-embedder.ts'
import { type Intent, type IntentKind, intentOf } from './intents.ts'
import { asClause, asSentence, languageOf, mirror } from './language.ts'
import { fill, type Lines, type Phrases, phrasesOf, type Slots } from './phrases.ts'
import { readScene, type Scene } from './scene.ts'
import { createSeeded, type Seeded } from './seeded.ts'
import { calculate } from './calculate.ts'
import { echoOf, isNounPhrase, topicOf } from './topic.ts'

const cosine = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)

/** Texts with how near they are to what was said, nearest first; ties keep their order. */
const byNearness = (texts: readonly string[], said: string): { text: string; nearness: number }[] => {
  const wanted = embedText(said)
  return texts.map((text) => ({ text, nearness: cosine(wanted, embedText(text)) })).sort((a, b) => b.nearness - a.nearness)
}

const NEAR = 0.12
const SAME_QUESTION = 0.45
/** "What do you remember about me?" asks for everything. */
const ASKS_FOR_ALL =
  /\b(?:about|of) me\b|\bremember me\b|\bwho i am\b|关于我|记得我(?:吗|么|[？?]|$)|(?:记得|记住)了?我?(?:的)?(?:什么|哪些)|我是谁/iu

const ASKS_FOR_NAME = /\bwho are you\b|\byour name\b|你是谁|你叫|你的名字/iu

/** Answers that nothing else is put beside. */
const STANDS_ALONE = new Set<IntentKind>(['is_demo', 'recall', 'arithmetic', 'story', 'poem', 'joke', 'where'])

/** Where there is room to bring something up that nobody asked for. */
const IS_TALK = new Set<IntentKind>(['told', 'question', 'why', 'advice', 'plan', 'move', 'yes', 'how_are_you'])
const TELLS_ANEW = new Set<IntentKind>(['like', 'dislike', 'move', 'plan', 'name', 'remember'])
const SAME_THING = 0.3

const capitalised = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)

type Composer = {
  scene: Scene
  intent: Intent
  phrases: Phrases
  seeded: Seeded
  slots: Slots
  memories: { text: string; nearness: number }[]
}

/** One of the lines that can be filled and was not said lately; undefined where there is none. */
const chooseLine = ({ scene, seeded, slots }: Composer, lines: Lines): string | undefined => {
  const filled = lines.flatMap((line) => fill(line, slots) ?? [])
  const fresh = filled.filter((line) => !scene.earlierAnswers.slice(-6).some((answer) => answer.includes(line.slice(0, 16))))
  const [first, ...rest] = fresh.length > 0 ? fresh : filled
  return first === undefined ? undefined : seeded.pick([first, ...rest])
}

const cleanSubject = (intent: Intent, scene: Scene): string => {
  if (intent.kind === 'name') return capitalised(intent.subject)
  const [head = ''] = intent.subject.split(
    scene.language === 'zh' ? /[，,。！!；;]/u : /[.!;?]|, | (?:because|and i|but|so that|since)\b/iu,
  )
  return mirror(asClause(intent.kind === 'remember' ? intent.subject : head), scene.language)
}

const optionsOf = (subject: string): [string, string] | undefined => {
  const [left = '', right = ''] = subject.split(/还是|\bor\b/iu).map((part) => asClause(part))
  if (left === '' || right === '') return undefined
  const short = left
    .split(' ')
    .slice(-2)
    .join(' ')
    .replace(/^(?:i|we|you|have|take|get|go|to|drink|eat|choose|pick|prefer|rather|the|should)\s+/iu, '')
  return [short, right.split(' ').slice(0, 3).join(' ')]
}

const slotsOf = (scene: Scene, intent: Intent, seeded: Seeded): Slots => {
  const unused = (texts: readonly string[]): string[] =>
    texts.filter((text) => !scene.earlierAnswers.some((answer) => answer.includes(text.slice(0, 24))))
  const facts = unused(scene.facts)
    .map((fact) => ({ fact, at: seeded.next() }))
    .sort((a, b) => a.at - b.at)
  const [prop] = scene.props
  const noun = scene.props.length === 0 || prop === undefined ? '' : seeded.pick([prop, ...scene.props.slice(1)]).noun
  const subject = cleanSubject(intent, scene)
  const echo = echoOf(scene.said, scene.language)
  const options = intent.kind === 'choice' ? optionsOf(intent.subject) : undefined
  const isFirst = seeded.chance(0.5)
  const earlier = scene.earlierSaid
    .slice(-5, -1)
    .flatMap((text) => topicOf(text, scene.language) ?? [])
    .findLast((text) => scene.language === 'zh' || isNounPhrase(text))
  const topic = topicOf(scene.said, scene.language)
  return {
    comma: scene.language === 'zh' ? '，' : ', ',
    character: scene.character,
    user: scene.user,
    subject,
    Subject: capitalised(subject),
    topic,
    echo,
    Echo: echo === undefined ? undefined : capitalised(echo),
    fact: facts[0]?.fact,
    fact2: facts[1]?.fact,
    noun: (intent.kind === 'poem' || intent.kind === 'story') && topic !== undefined ? topic : noun,
    place: scene.place === undefined ? undefined : capitalised(scene.place),
    option: options?.[isFirst ? 0 : 1],
    other: options?.[isFirst ? 1 : 0],
    sum: intent.kind === 'arithmetic' ? calculate(intent.subject) : undefined,
    earlier: earlier === topic ? undefined : earlier,
    steer:
      scene.steers.length === 0 ? undefined : asClause(mirror(scene.steers.join(scene.language === 'zh' ? '，' : ', '), scene.language)),
    passage: scene.passages[0] === undefined ? undefined : excerpt(scene.passages[0], scene.language === 'zh' ? 24 : 80),
  }
}

const excerpt = (text: string, length: number): string => {
  const bare = asClause(text.replace(/[*"“”]/gu, '').replace(/\s+/gu, ' '))
  return bare.length <= length ? bare : `${asClause(bare.slice(0, length).replace(/\s\S*$/u, ''))}…`
}

/** In another language than the answer, a remembered thing is quoted as it stands. */
const asMemory = (text: string, scene: Scene): string => (languageOf(text) === scene.language ? text : `“${text}”`)

const sayRecalled = (composer: Composer): string[] => {
  const { scene, memories, phrases, slots } = composer
  const asksForAll = ASKS_FOR_ALL.test(scene.said)
  const chosen = memories.filter(({ nearness }) => asksForAll || nearness > NEAR).slice(0, asksForAll ? 3 : 2)
  const [first, ...rest] = chosen.map(({ text }) => asMemory(text, scene))
  if (first === undefined) return [chooseLine(composer, phrases.recallNothing) ?? '']
  slots.memory = first
  const more = rest.flatMap((text, at) => {
    slots.memory2 = text
    return fill(phrases.alsoRemembered[at % phrases.alsoRemembered.length] ?? '', slots) ?? []
  })
  return [chooseLine(composer, phrases.intents.recall.say) ?? '', ...more]
}

/** What is brought up beside the answer itself; the closest first. */
const asides = (composer: Composer): string[] => {
  const { scene, intent, phrases, seeded, slots, memories } = composer
  const made: string[] = []
  const bring = (lines: Lines): void => {
    const line = chooseLine(composer, lines)
    if (line !== undefined) made.push(line)
  }
  if (scene.passages.length > 0) bring(phrases.quoted)
  if (scene.steers.length > 0) bring(phrases.interjected)
  if (STANDS_ALONE.has(intent.kind) || scene.wish === 'short') return made
  const [nearest] = memories
  if (nearest !== undefined && !scene.earlierAnswers.some((answer) => answer.includes(nearest.text))) {
    slots.memory = asMemory(nearest.text, scene)
    if (TELLS_ANEW.has(intent.kind) && nearest.nearness > SAME_THING) bring(phrases.knownAlready)
    else if (nearest.nearness > NEAR || (IS_TALK.has(intent.kind) && seeded.chance(0.35))) bring(phrases.recalled)
  }
  if (IS_TALK.has(intent.kind) && seeded.chance(scene.wish === 'long' ? 0.9 : 0.25)) bring(phrases.ofMyself)
  if (IS_TALK.has(intent.kind) && scene.earlierSaid.length > 1 && seeded.chance(0.2)) bring(phrases.earlier)
  return made.slice(0, scene.wish === 'long' ? 3 : 2)
}

const stageDirection = (composer: Composer): string | undefined => {
  const { scene, seeded } = composer
  const actions = scene.props.flatMap((prop) => prop.actions)
  const fresh = actions.filter((action) => !scene.earlierAnswers.slice(-4).some((answer) => answer.toLowerCase().includes(action.slice(1))))
  const [first, ...rest] = fresh.length > 0 ? fresh : actions
  return first === undefined ? undefined : asSentence(seeded.pick([first, ...rest]), scene.language)
}

const quoted = (speech: string, scene: Scene): string =>
  scene.language === 'zh' ? `“${speech.replaceAll('“', '‘').replaceAll('”', '’')}”` : `"${speech.replaceAll('"', "'")}"`

const polished = (text: string, scene: Scene): string =>
  scene.language === 'zh'
    ? text.replace(/([。！？…])[。，]/gu, '$1')
    : text
        .replace(/(^|[.!?]\s+)([a-z])/gu, (_all, before: string, letter: string) => before + letter.toUpperCase())
        .replace(/([.!?…])\./gu, '$1')

const paragraphs = (composer: Composer, said: string[], ask: string | undefined): string => {
  const { scene, seeded } = composer
  const join = scene.language === 'zh' ? '' : ' '
  const isVerse = composer.intent.kind === 'poem'
  const gap = isVerse ? '\n\n' : join
  const speech = polished(said.filter((line) => line !== '').join(join), scene)
  if (!scene.isStaged || composer.intent.kind === 'is_demo')
    return ask === undefined ? speech : `${speech}${speech.length > 220 ? '\n\n' : gap}${ask}`
  const before = seeded.chance(0.85) ? stageDirection(composer) : undefined
  const first = [before === undefined ? [] : [`*${before}*`], quoted(speech, scene)].flat().join(join)
  if (ask === undefined) return first
  const between = stageDirection(composer)
  if (between === undefined || between === before || seeded.chance(0.45)) {
    return [before === undefined ? [] : [`*${before}*`], quoted(`${speech}${gap}${ask}`, scene)].flat().join(join)
  }
  return `${first}\n\n*${between}*${join}${quoted(ask, scene)}`
}

const firstWords = (composer: Composer): string[] => {
  const { intent, phrases } = composer
  if (intent.kind === 'recall') return sayRecalled(composer)
  if (intent.kind === 'about_you' && ASKS_FOR_NAME.test(composer.scene.said)) {
    const named = chooseLine(
      composer,
      phrases.intents.about_you.say.filter((line) => line.includes('{character}')),
    )
    if (named !== undefined) return [named]
  }
  const lines = intent.kind === 'story' ? phrases.stories : intent.kind === 'poem' ? phrases.poems : phrases.intents[intent.kind].say
  const line =
    chooseLine(composer, lines) ?? chooseLine(composer, phrases.intents.question.say) ?? chooseLine(composer, phrases.intents.silence.say)
  return line === undefined ? [] : [line]
}

/**
 * The demo model's answer: in character as far as the prompt tells of one, in the user's language, with what was remembered, quoted and thrown
 * in. The same messages and seed give the same answer; another seed usually another one.
 */
export const composeAnswer = (messages: readonly ChatMessage[], seed: string): string => {
  const scene = readScene(messages)
  const seeded = createSeeded(`${seed}\n${JSON.stringify(messages)}`)
  const [example] = byNearness(
    scene.examples.map(({ asked }) => asked),
    scene.said,
  )
  if (example !== undefined && example.nearness > SAME_QUESTION && seeded.chance(0.6)) {
    const answered = scene.examples.find(({ asked }) => asked === example.text)?.answered ?? ''
    if (languageOf(answered) === scene.language && !scene.earlierAnswers.includes(answered)) return answered
  }
  const intent = intentOf(scene)
  const memories = byNearness(scene.memories, [scene.said, ...scene.steers].join(' '))
  const composer: Composer = { scene, intent, phrases: phrasesOf(scene.language), seeded, slots: slotsOf(scene, intent, seeded), memories }
  const resumed = scene.wasCut ? [chooseLine(composer, composer.phrases.resumed) ?? ''] : []
  const said = [...resumed, ...firstWords(composer), ...asides(composer)]
  const ask = seeded.chance(0.9) ? chooseLine(composer, composer.phrases.intents[intent.kind].ask) : undefined
  return paragraphs(composer, said, ask)
}
