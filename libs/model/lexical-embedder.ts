import { stemmer } from 'stemmer'
import type { Embedder } from '#kernel/ports/embedder'

const DIMENSIONS = 1_024

/** Words that say little about what a text is about. They carry no feature: a query made of them alone is degenerate, and its leg left out. */
const STOP_WORDS = new Set(
  `a about after again all also am an and any are aren as at be because been before being between both but by can cannot could couldn d did didn do
  does doesn doing don down during each few for from further get gets getting go goes going gone got had hadn has hasn have haven having he her here
  hers herself him himself his how i if in into is isn it its itself just ll m me more most much my myself no nor not now of off oh ok okay on once
  only or other our ours out over own re really s same she should shouldn so some such t than that the their theirs them themselves then there these
  they this those through to too under until up us ve very was wasn we well were weren what when where which while who whom why will with won would
  wouldn yeah yes you your yours yourself`.split(/\s+/),
)
const STOP_HAN = new Set('的了是我你他她它们在有和与就都而及着这那个一不也很到说要会吗呢吧啊呀哦嗯么什怎为上下里去来对把被让给跟又还再最')

const HAN_SINGLE = 0.7
const HAN_PAIR = 1
const HAN_PAIR_WITH_STOP = 0.3
const LETTERS = 0.9
/** Longer words are rarer ones, and tell more. */
const wordWeight = (stem: string): number => Math.min(1.6, 0.6 + 0.15 * stem.length)

/**
 * Each text also carries marks that only its twin has. They lengthen short texts before normalising, as BM25's length term does: without
 * them a bare "Anna: Hi!" wins every question about Anna (measured: 2 to 3 points of recall@10 on English dialogue).
 */
const OWN_MARKS = 16
const OWN_MARKS_LATIN = 2
const OWN_MARKS_CJK = 1

const CJK = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u
const PIECES = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}ー]+|[\p{L}\p{M}\p{N}]+/gu

/** FNV-1a with a final mix: stable for ever, since stored vectors depend on it. */
const hash = (feature: string): number => {
  let value = 0x811c9dc5
  for (let at = 0; at < feature.length; at++) {
    value = Math.imul(value ^ feature.charCodeAt(at), 0x01000193)
  }
  value = Math.imul(value ^ (value >>> 16), 0x7feb352d)
  value = Math.imul(value ^ (value >>> 15), 0x846ca68b)
  return (value ^ (value >>> 16)) >>> 0
}

type Features = Map<string, { weight: number; times: number }>

const note = (features: Features, feature: string, weight: number): void => {
  const known = features.get(feature)
  if (known === undefined) features.set(feature, { weight, times: 1 })
  else known.times += 1
}

const noteWord = (features: Features, word: string): void => {
  if (STOP_WORDS.has(word)) return
  const stem = stemmer(word)
  const weight = wordWeight(stem)
  note(features, `s ${stem}`, weight)
  const framed = [...`^${word}$`]
  if (framed.length < 5) return
  const grams = framed.length - 2
  for (let at = 0; at < grams; at++) note(features, `3 ${framed.slice(at, at + 3).join('')}`, (weight * LETTERS) / Math.sqrt(grams))
}

const noteCjk = (features: Features, run: string): void => {
  const characters = [...run]
  for (const [at, character] of characters.entries()) {
    const isStop = STOP_HAN.has(character)
    if (!isStop) note(features, `h ${character}`, HAN_SINGLE)
    const next = characters[at + 1]
    if (next === undefined || (isStop && STOP_HAN.has(next))) continue
    note(features, `p ${character}${next}`, isStop || STOP_HAN.has(next) ? HAN_PAIR_WITH_STOP : HAN_PAIR)
  }
}

const featuresOf = (text: string): Features => {
  const features: Features = new Map()
  const pieces = Array.from(text.normalize('NFKC').toLowerCase().matchAll(PIECES), ([piece]) => piece)
  let cjk = 0
  for (const piece of pieces) {
    if (!CJK.test(piece)) noteWord(features, piece)
    else {
      noteCjk(features, piece)
      cjk += piece.length / 2
    }
  }
  if (features.size === 0) return features
  const own = hash(pieces.join(' '))
  const cjkShare = Math.min(1, cjk / pieces.length)
  const weight = OWN_MARKS_LATIN + (OWN_MARKS_CJK - OWN_MARKS_LATIN) * cjkShare
  for (let mark = 0; mark < OWN_MARKS; mark++) note(features, `= ${mark} ${own}`, weight / Math.sqrt(OWN_MARKS))
  return features
}

/** One text's vector, at once. */
export const embedText = (text: string): Float32Array => {
  const sums = new Float64Array(DIMENSIONS)
  for (const [feature, { weight, times }] of featuresOf(text)) {
    const value = hash(feature)
    const at = value % DIMENSIONS
    sums[at] = (sums[at] ?? 0) + (value & 0x8000_0000 ? -1 : 1) * weight * (1 + Math.log(times))
  }
  let squares = 0
  for (const value of sums) squares += value * value
  const norm = Math.sqrt(squares)
  return Float32Array.from(sums, (value) => (norm === 0 ? 0 : value / norm))
}

/** True for a vector without direction: all zero, or holding what is no number. */
export const isDegenerate = (vector: Float32Array): boolean => {
  let squares = 0
  for (const value of vector) squares += value * value
  return !(squares > 1e-12) || !Number.isFinite(squares)
}

/**
 * The offline embedder: hashed stems and letter groups, Han characters singly and in pairs; 1,024 dimensions, any language, no model file.
 * It knows spelling, not meaning, and is named so. A text without any telling word gives the zero vector, which is degenerate. Cosines run
 * low (related short texts 0.1–0.5, twins up to case and punctuation 1): rank by them, put no threshold on them.
 * Measured alone, recall@5/10/25 on five LoCoMo conversations 41/48/57 where BM25 has 50/57/68.
 */
export const createLexicalEmbedder = (): Embedder => ({
  space: { id: 'lexical-1024-v1', model: 'lexical', version: 'v1', dimensions: DIMENSIONS },
  embed: async (texts) => texts.map(embedText),
  isDegenerate,
})
