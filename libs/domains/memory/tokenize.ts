import { createHash } from 'node:crypto'
import { stemmer } from 'stemmer'

/** Longest token in code points; longer ones stand as a digest (decision 32). */
export const TOKEN_MAX_CODE_POINTS = 64

/** Most distinct tokens of one document (decision 32). */
export const DISTINCT_TOKENS_MAX = 20_000

/** Most UTF-8 bytes of all distinct tokens together: they travel as one statement parameter, which is bounded (decision 7). */
export const TOKEN_BYTES_MAX = 512 * 1024

/** What the text index knows of a text: how often each token stands in it, and how many tokens there are. */
export type TokenCounts = { counts: ReadonlyMap<string, number>; length: number }

// Scripts written without spaces between words, and Hangul, whose particles cling to the word: one and two signs at a time.
const unspaced = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}々〆ー`
const unspacedSign = new RegExp(`[${unspaced}]`, 'u')
const pieces = new RegExp(
  String.raw`(?<unspaced>[${unspaced}\p{M}]*[${unspaced}][${unspaced}\p{M}]*)|(?<word>(?:(?![${unspaced}])[\p{L}\p{M}\p{N}]|(?<=\p{L})['’](?=\p{L}))+)|(?<picture>\p{Extended_Pictographic})`,
  'gu',
)
const latinWord = /^[a-z]+$/
const latinLetter = /\p{Script=Latin}/u
const letterOrDigitRun = /\p{N}+|[^\p{N}]+/gu

/**
 * Tokens of a text, the same on both tiers and for texts and queries (spec/5 "Text leg"): Latin words lower-cased, without accents and
 * stemmed; scripts without spaces as single signs and pairs; other scripts as words; numbers; pictographs. NFKC serves the index alone:
 * the text itself is never changed.
 */
export function tokenize(text: string): TokenCounts {
  const counts = new Map<string, number>()
  let length = 0
  let bytes = 0
  for (const token of tokensOf(text)) {
    const known = counts.get(token)
    if (known === undefined) {
      bytes += Buffer.byteLength(token)
      if (counts.size >= DISTINCT_TOKENS_MAX || bytes > TOKEN_BYTES_MAX) break
    }
    counts.set(token, (known ?? 0) + 1)
    length += 1
  }
  return { counts, length }
}

/** The tokens of a text in order, repeated as they come. */
export function* tokensOf(text: string): Generator<string> {
  const folded = text.normalize('NFKC').toLowerCase()
  for (const match of folded.matchAll(pieces)) {
    const groups = match.groups ?? {}
    if (groups.unspaced !== undefined) yield* signTokens(groups.unspaced)
    else if (groups.word !== undefined) yield* wordTokens(groups.word)
    else if (groups.picture !== undefined) yield groups.picture
  }
}

function* signTokens(run: string): Generator<string> {
  let previous: string | undefined
  for (const sign of run) {
    // A combining mark belongs to the sign before it and says little alone.
    if (!unspacedSign.test(sign)) continue
    yield sign
    if (previous !== undefined) yield previous + sign
    previous = sign
  }
}

function* wordTokens(raw: string): Generator<string> {
  const word = raw.replace(/['’]s$/u, '').replace(/['’]/gu, '')
  const parts = word.match(letterOrDigitRun) ?? []
  for (const part of parts) yield bounded(normalWord(part))
  // "iphone15" is found by its parts and, more surely, as a whole.
  if (parts.length > 1) yield bounded(word)
}

function normalWord(part: string): string {
  if (latinLetter.test(part)) {
    const plain = part.normalize('NFKD').replace(/\p{M}/gu, '')
    return latinWord.test(plain) ? stemmer(plain) : plain
  }
  const withoutZeros = /^0+(?=\p{N})/u
  return part.replace(withoutZeros, '')
}

function bounded(token: string): string {
  // Two UTF-16 units per code point at most: a short string needs no counting.
  if (token.length <= TOKEN_MAX_CODE_POINTS || [...token].length <= TOKEN_MAX_CODE_POINTS) return token
  return `#${createHash('sha256').update(token, 'utf8').digest('hex').slice(0, 32)}`
}
