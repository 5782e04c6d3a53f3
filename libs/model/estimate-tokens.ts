import { COMMON_HAN, COMMON_TRIGRAMS } from './token-shapes.ts'

/**
 * A stated safe over-estimate of tokens, for models whose tokenizer is not known. It walks the text once and weighs each piece by what
 * byte-pair tokenizers make of its kind at worst or on average of random text, so that real text lies well below; a share and a constant on
 * top cover short samples. Checked against o200k_base on English, Chinese, code, emoji and random text; never more than the UTF-8 length,
 * which no byte-level tokenizer can pass. Measured on long texts: 1.35 times o200k_base on English
 * prose, 1.5 on Chinese, 1.7 on code; about 30 million characters a second.
 */
export const ESTIMATE_ID = 'estimate-v1'

const SHARE = 1.05
const CONSTANT = 4

const hasBit = (bits: Uint8Array, at: number): boolean => ((bits[at >> 3] ?? 0) & (1 << (at & 7))) !== 0
const isLower = (code: number): boolean => code >= 97 && code <= 122
const isUpper = (code: number): boolean => code >= 65 && code <= 90
const isLatinLetter = (code: number): boolean =>
  isLower(code) || isUpper(code) || (code >= 0xc0 && code <= 0x24f && code !== 0xd7 && code !== 0xf7)
const isDigit = (code: number): boolean => code >= 48 && code <= 57
const isAsciiSymbol = (code: number): boolean => code > 32 && code < 127 && !isDigit(code) && !isUpper(code) && !isLower(code)
const letterIndex = (code: number): number => (isLower(code) ? code - 97 : isUpper(code) ? code - 65 : -1)

/** Weight of one code point outside ASCII and Latin words. */
const weightOf = (code: number): number => {
  if (code >= 0x4e00 && code <= 0x9fff) return hasBit(COMMON_HAN, code - 0x4e00) ? 1.15 : 2.15
  if (code < 0x80) return 1
  if (code < 0x250) return 1.5
  if (code < 0x370) return 2
  if (code < 0x400) return 1.2
  if (code < 0x700) return code < 0x590 ? 0.95 : 1.1
  if (code < 0x800) return 2
  if (code >= 0x900 && code < 0xe80) return 1.6
  if (code >= 0x1e00 && code < 0x1f00) return 1.35
  if (code >= 0x2000 && code < 0x2070) return 2
  if (code >= 0x3040 && code < 0x3100) return 1.25
  if (code >= 0xac00 && code < 0xd7a4) return 2.4
  if (code >= 0x3000 && code < 0x3020) return 1.2
  if (code === 0xff0c || code === 0xff01 || code === 0xff1f || code === 0xff1a || code === 0xff1b || code === 0xff08 || code === 0xff09)
    return 1.1
  return code < 0x1_0000 ? 3 : code >= 0x1_f000 && code < 0x1_fb00 ? 3 : 4
}

/** What longer words of a text add up to, weighed at its end. */
type LongWords = { count: number; letters: number; triples: number; unusual: number }

/**
 * Weight of a run of Latin letters of one case pattern, text[from, to); that of four letters and more is left to `long`. Unusual letter
 * triples tell random strings from words.
 */
const wordWeight = (text: string, from: number, to: number, long: LongWords): number => {
  const length = to - from
  let unusual = 0
  let extra = 0
  let capitals = 0
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at)
    const third = letterIndex(code)
    if (third < 0) extra += code < 0x100 ? 0.6 : 1.4
    else if (isUpper(code)) capitals += 1
    if (at < from + 2) continue
    const first = letterIndex(text.charCodeAt(at - 2))
    const second = letterIndex(text.charCodeAt(at - 1))
    if (first < 0 || second < 0 || third < 0 || !hasBit(COMMON_TRIGRAMS, (first * 26 + second) * 26 + third)) unusual += 1
  }
  if (capitals > 1) extra += 0.08 * capitals
  if (length <= 2) return (length === 1 ? 1 : 1.1) + extra
  if (length === 3) return 1.1 + 0.85 * unusual + extra
  long.count += 1
  long.letters += length
  long.triples += length - 2
  long.unusual += unusual
  return extra
}

/** A text starts as suspect; each usual triple speaks for real words, which tokenizers cut into few pieces. */
const DOUBT_TRIPLES = 60
const DOUBT_SHARE = 0.3

const longWordsWeight = (long: LongWords): number => {
  const share = (long.unusual + DOUBT_TRIPLES * DOUBT_SHARE) / (long.triples + DOUBT_TRIPLES)
  const strangeness = Math.min(1, Math.max(0, (share - 0.135) / 0.065))
  return 0.3 * long.count + (0.16 + 0.23 * strangeness) * long.letters + 0.26 * long.unusual
}

/** Where a word that starts at `from` ends: at a non-letter, or where a capital follows a small letter (as tokenizers split names in code). */
const wordEnd = (text: string, from: number): number => {
  let at = from + 1
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (!isLatinLetter(code) || (isUpper(code) && !isUpper(text.charCodeAt(at - 1)))) break
    at += 1
  }
  return at
}

const runEnd = (text: string, from: number, belongs: (code: number) => boolean): number => {
  let at = from + 1
  while (at < text.length && belongs(text.charCodeAt(at))) at += 1
  return at
}

/** Tokens of this text, over-estimated; 0 for an empty text. Linear in its length. */
export const estimateTokens = (text: string): number => {
  if (text === '') return 0
  const long: LongWords = { count: 0, letters: 0, triples: 0, unusual: 0 }
  let sum = 0
  let at = 0
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (isLatinLetter(code)) {
      const end = wordEnd(text, at)
      sum += wordWeight(text, at, end, long)
      at = end
    } else if (isDigit(code)) {
      const end = runEnd(text, at, isDigit)
      sum += Math.ceil((end - at) / 3)
      at = end
    } else if (code === 32) {
      const end = runEnd(text, at, (next) => next === 32)
      // One space belongs to the word after it; more make a token of their own.
      sum += end - at === 1 ? 0.05 : 1 + (end - at) / 24
      at = end
    } else if (isAsciiSymbol(code)) {
      const end = runEnd(text, at, isAsciiSymbol)
      sum += 1 + 0.72 * (end - at - 1)
      at = end
    } else if (code < 32) {
      sum += code === text.charCodeAt(at - 1) ? 0.3 : 1
      at += 1
    } else {
      const point = text.codePointAt(at) ?? code
      sum += weightOf(point)
      at += point > 0xffff ? 2 : 1
    }
  }
  sum += longWordsWeight(long)
  return Math.min(Math.ceil(sum * SHARE + CONSTANT), Buffer.byteLength(text, 'utf8'))
}
