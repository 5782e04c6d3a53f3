/** What a mask stands for. */
export type SecretKind = 'key' | 'card' | 'identity' | 'password'

export type Scrubbed = { text: string; masked: readonly SecretKind[] }

type Range = { from: number; to: number; kind: SecretKind }
/** `least`: the shortest text, in UTF-16 units, that can hold such a secret with what gives it away. */
type Finder = { kind: SecretKind; least: number; pattern: RegExp; accepts?: (match: string) => boolean }

/*
 * Each finder's work grows with the length of the text and no faster: whoever writes a text must not be able to stop the process with it. No
 * pattern therefore looks on without a bound before it has a match; a run of unknown length is matched first and judged by `accepts`.
 */

// Signs that people put between groups of digits, seen or unseen.
const gap = '[\\s.\\-\\u2010-\\u2015\\u00a0\\u200b-\\u200d\\u2060]'
const wide = /[\uff01-\uff5e]/g
// Where a token may begin: after no letter or digit, unless that belongs to an escape of a JSON text.
const head = '(?:(?<![A-Za-z0-9])|(?<=\\\\(?:[bfnrt]|u[0-9A-Fa-f]{4})))'

const finders: readonly Finder[] = [
  { kind: 'key', least: 27, pattern: /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g },
  // A token with a known head: model providers, code hosts, clouds, chat services, our own.
  { kind: 'key', least: 9, pattern: new RegExp(`${head}(?:sk|pk|rk)[-_][A-Za-z0-9_-]{6,}`, 'g'), accepts: (token) => /\d/.test(token) },
  {
    kind: 'key',
    least: 11,
    pattern: new RegExp(`${head}(?:gh[pousr]_|github_pat_|glpat-|hf_|npm_|lt_|xox[abeoprs]-|AIza|ya29\\.)[A-Za-z0-9_.-]{8,}`, 'g'),
  },
  { kind: 'key', least: 20, pattern: new RegExp(`${head}(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])`, 'g') },
  { kind: 'key', least: 15, pattern: /(?<=\bbearer\s{1,4})[A-Za-z0-9._~+/-]{8,}=*/gi },
  // What somebody says is a key or a password, by the word before it.
  {
    kind: 'key',
    least: 9,
    pattern:
      /(?<=(?:\b(?:api|access|secret|private)[ _-]?(?:key|token)|\b(?:auth|access)[ _-]?token|密钥|秘钥|令牌)["'”’]?\s{0,3}(?:is|are|was|[:=：＝]|是|为)\s{0,3}["'“‘]?)[^\s"'“”‘’，。；、,;]{6,}/gi,
    accepts: looksSecret,
  },
  {
    kind: 'password',
    least: 6,
    pattern:
      /(?<=(?:\b(?:password|passwd|passcode|passphrase|pwd|pin(?:[ _-]?code)?)|密码|口令|验证码)["'”’]?\s{0,3}(?:(?:is|was|now)\s{1,3}|[:=：＝]\s{0,3}|(?:现在)?(?:是|为|改成了?|设成了?)[:：]?\s{0,3})["'“‘]?)[^\s"'“”‘’，。；、,;]{3,}/gi,
    accepts: looksSecret,
  },
  {
    kind: 'identity',
    least: 18,
    pattern: new RegExp(`(?<![0-9A-Za-z])[1-9](?:${gap}?[0-9]){16}${gap}?[0-9Xx](?![0-9A-Za-z])`, 'g'),
    accepts: isChineseIdentity,
  },
  { kind: 'identity', least: 11, pattern: /(?<![0-9A-Za-z])(?!000|666|9)\d{3}[- ](?!00)\d{2}[- ](?!0000)\d{4}(?![0-9A-Za-z])/g },
  { kind: 'card', least: 13, pattern: new RegExp(`(?<![0-9A-Za-z])[0-9](?:${gap}?[0-9]){12,18}(?![0-9A-Za-z])`, 'g'), accepts: isCard },
  {
    kind: 'card',
    least: 15,
    pattern: /(?<![0-9A-Za-z])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?(?![0-9A-Za-z])/g,
    accepts: isIban,
  },
]

/**
 * Masks keys, passwords, card and account numbers (Luhn, IBAN) and identity numbers (Chinese with their check digit, US) in a text
 * (spec/5 "Secrets", case R13). The rest stays byte for byte; a second pass changes nothing.
 */
export function scrub(text: string): Scrubbed {
  // Full-width forms are read as their plain ones, unit for unit, so that places agree.
  const plain = text.replace(wide, (sign) => String.fromCharCode(sign.charCodeAt(0) - 0xfee0))
  const ranges: Range[] = []
  for (const { kind, least, pattern, accepts } of finders) {
    if (plain.length < least) continue
    // Not matchAll, which makes a pattern anew for each text: arguments are many short ones.
    pattern.lastIndex = 0
    for (let match = pattern.exec(plain); match; match = pattern.exec(plain)) {
      if (!accepts || accepts(match[0])) ranges.push({ from: match.index, to: match.index + match[0].length, kind })
    }
  }
  for (const token of signedTokens(plain)) ranges.push(token)
  if (ranges.length === 0) return { text, masked: [] }
  const joined = joinOverlaps(ranges)
  let scrubbed = ''
  let end = 0
  for (const range of joined) {
    scrubbed += `${text.slice(end, range.from)}[masked:${range.kind}]`
    end = range.to
  }
  return { text: scrubbed + text.slice(end), masked: [...new Set(joined.map((range) => range.kind))] }
}

/** True where nothing is left to remember once the masks are taken away. */
export function isEmptyOfMeaning(text: string): boolean {
  return !/[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(text.replace(/\[masked:[a-z]+\]/g, ''))
}

const part = /[A-Za-z0-9_-]*/y
const signedHead = new RegExp(`${head}eyJ[A-Za-z0-9_-]{8}`, 'g')

/** JSON web tokens: three parts with points between, the first of them an object in base64. The last may be empty. */
function signedTokens(plain: string): Range[] {
  const found: Range[] = []
  signedHead.lastIndex = 0
  for (let start = signedHead.exec(plain); start; start = signedHead.exec(plain)) {
    const first = endOfPart(plain, start.index)
    const second = plain[first] === '.' ? endOfPart(plain, first + 1) : first
    const isToken = second - first > 8 && plain[second] === '.'
    // What stands before the first point can begin no other token that this one is not.
    signedHead.lastIndex = isToken ? endOfPart(plain, second + 1) : first
    if (isToken) found.push({ from: start.index, to: signedHead.lastIndex, kind: 'key' })
  }
  return found
}

function endOfPart(plain: string, from: number): number {
  part.lastIndex = from
  return from + (part.exec(plain)?.[0].length ?? 0)
}

/** One mask where finds overlap, named by the one that begins first. */
function joinOverlaps(ranges: readonly Range[]): Range[] {
  const joined: Range[] = []
  for (const range of ranges.toSorted((left, right) => left.from - right.from)) {
    const last = joined.at(-1)
    if (last && range.from < last.to) last.to = Math.max(last.to, range.to)
    else joined.push({ ...range })
  }
  return joined
}

function digitsOf(text: string): string {
  return text.replace(/[^0-9]/g, '')
}

/** A word of prose after "the password is" is no password: it must hold a digit or a sign, or change case inside. */
function looksSecret(value: string): boolean {
  if (value.startsWith('[masked:')) return false
  return /[0-9]|[^\p{L}\p{M}.!?]|\p{Ll}\p{Lu}/u.test(value)
}

// The lengths that networks give out behind their heads (ISO 7812); a time in milliseconds, or a number that somebody counts, is none.
const issued =
  /^(?:4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[0689]\d{12,17}|35\d{14,17}|(?:5[0678]|6\d)\d{11,17}|8[12]\d{14,17}|9792\d{12})$/

function isCard(value: string): boolean {
  const digits = digitsOf(value)
  if (!issued.test(digits) || /^(\d)\1*$/.test(digits)) return false
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index])
    const doubled = index % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

const identityWeights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]

/** GB 11643: a plausible day of birth and the check sign of ISO 7064. */
function isChineseIdentity(value: string): boolean {
  const signs = value.replace(/[^0-9Xx]/g, '').toUpperCase()
  const month = Number(signs.slice(10, 12))
  const day = Number(signs.slice(12, 14))
  if (!/^(?:18|19|20)/.test(signs.slice(6, 8)) || month < 1 || month > 12 || day < 1 || day > 31) return false
  const sum = identityWeights.reduce((total, weight, index) => total + weight * Number(signs[index]), 0)
  return '10X98765432'[sum % 11] === signs[17]
}

/** ISO 13616: the number is 1 modulo 97 once its head stands at the end. */
function isIban(value: string): boolean {
  const signs = value.replace(/ /g, '')
  if (signs.length < 15 || signs.length > 34) return false
  let remainder = 0
  for (const sign of signs.slice(4) + signs.slice(0, 4)) {
    const part = sign >= 'A' ? String(sign.charCodeAt(0) - 55) : sign
    for (const digit of part) remainder = (remainder * 10 + Number(digit)) % 97
  }
  return remainder === 1
}
