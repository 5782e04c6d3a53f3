/** Code points from one to another, both included; a set is such ranges in order, none touching the next. */
export type CodePoints = readonly (readonly [from: number, to: number])[]

/** A pattern as it was read. `most`: Infinity where nothing bounds it. */
export type PatternNode =
  | { kind: 'one'; of: CodePoints }
  | { kind: 'sequence'; parts: readonly PatternNode[] }
  | { kind: 'choice'; options: readonly PatternNode[] }
  | { kind: 'repeat'; part: PatternNode; least: number; most: number }
  | { kind: 'start' }
  | { kind: 'end' }

/** A pattern says something that is not understood here. The message completes “the pattern …”. */
export class UnreadPatternError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UnreadPatternError'
  }
}

/** UTF-16 units of a pattern, and what a count in it may say. */
export const PATTERN_MAX_UNITS = 500
const MAX_COUNT = 1_000
const LAST = 0x10ffff

const digits: CodePoints = [[48, 57]]
const wordSigns = inOrder([
  [48, 57],
  [65, 90],
  [95, 95],
  [97, 122],
])
/** As ECMAScript has it: white space and ends of lines. */
const spaces = inOrder([
  [9, 13],
  [32, 32],
  [160, 160],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
])
const lineEnds = inOrder([
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
])
const classes = new Map<string, CodePoints>([
  ['d', digits],
  ['D', allBut(digits)],
  ['w', wordSigns],
  ['W', allBut(wordSigns)],
  ['s', spaces],
  ['S', allBut(spaces)],
])
const signs = new Map([
  ['n', 10],
  ['r', 13],
  ['t', 9],
  ['f', 12],
  ['v', 11],
])

/**
 * Reads a pattern: signs, `.`, classes, groups, alternatives, `* + ? {n,m}`, `^` and `$`, in ECMAScript's spelling and by code points.
 * No look-around, no back-reference, no property, no word boundary: what needs memory of what was read is not in it. Throws UnreadPatternError.
 */
export function readPattern(source: string): PatternNode {
  if (source.length > PATTERN_MAX_UNITS) throw new UnreadPatternError(`is longer than ${PATTERN_MAX_UNITS} characters`)
  return new Reader(source).whole()
}

class Reader {
  readonly #signs: readonly string[]
  #at = 0

  constructor(source: string) {
    this.#signs = [...source]
  }

  whole(): PatternNode {
    const node = this.#choice()
    if (this.#at < this.#signs.length) throw new UnreadPatternError('closes a group that it did not open')
    return node
  }

  #peek(): string | undefined {
    return this.#signs[this.#at]
  }

  #take(sign: string): boolean {
    if (this.#peek() !== sign) return false
    this.#at++
    return true
  }

  #next(): string {
    const sign = this.#signs[this.#at++]
    if (sign === undefined) throw new UnreadPatternError('ends too early')
    return sign
  }

  #choice(): PatternNode {
    const options = [this.#sequence()]
    while (this.#take('|')) options.push(this.#sequence())
    const [only] = options
    return options.length === 1 && only ? only : { kind: 'choice', options }
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = []
    for (let sign = this.#peek(); sign !== undefined && sign !== '|' && sign !== ')'; sign = this.#peek()) {
      parts.push(this.#repeated(this.#atom()))
    }
    return { kind: 'sequence', parts }
  }

  #atom(): PatternNode {
    const sign = this.#next()
    switch (sign) {
      case '^':
        return { kind: 'start' }
      case '$':
        return { kind: 'end' }
      case '.':
        return { kind: 'one', of: allBut(lineEnds) }
      case '[':
        return { kind: 'one', of: this.#class() }
      case '(':
        return this.#group()
      case '\\':
        return { kind: 'one', of: this.#escape() }
      case '*':
      case '+':
      case '?':
      case '{':
      case '}':
      case ']':
        throw new UnreadPatternError(`has a ${sign} out of place`)
      default:
        return { kind: 'one', of: single(sign) }
    }
  }

  #group(): PatternNode {
    if (this.#take('?') && !this.#take(':')) throw new UnreadPatternError('has a group of a kind that is not understood here')
    const inside = this.#choice()
    if (!this.#take(')')) throw new UnreadPatternError('does not close a group')
    return inside
  }

  #repeated(part: PatternNode): PatternNode {
    const bounds = this.#bounds()
    if (!bounds) return part
    // A lazy repetition finds the same texts.
    this.#take('?')
    if (['*', '+', '?', '{'].includes(this.#peek() ?? '')) throw new UnreadPatternError('repeats a repetition')
    if (part.kind === 'start' || part.kind === 'end') throw new UnreadPatternError('repeats a place')
    return { kind: 'repeat', part, ...bounds }
  }

  #bounds(): { least: number; most: number } | null {
    if (this.#take('*')) return { least: 0, most: Infinity }
    if (this.#take('+')) return { least: 1, most: Infinity }
    if (this.#take('?')) return { least: 0, most: 1 }
    if (!this.#take('{')) return null
    const least = this.#count()
    const most = this.#take(',') ? (this.#peek() === '}' ? Infinity : this.#count()) : least
    if (!this.#take('}') || most < least) throw new UnreadPatternError('has a count that cannot be read')
    return { least, most }
  }

  #count(): number {
    let text = ''
    while (/^[0-9]$/.test(this.#peek() ?? '') && text.length < 5) text += this.#next()
    if (text === '' || Number(text) > MAX_COUNT) throw new UnreadPatternError(`has a count that is no number up to ${MAX_COUNT}`)
    return Number(text)
  }

  #class(): CodePoints {
    const negated = this.#take('^')
    const ranges: (readonly [number, number])[] = []
    while (!this.#take(']')) {
      const from = this.#member()
      const next = this.#signs[this.#at + 1]
      if (this.#peek() !== '-' || next === ']') {
        ranges.push(...from)
        continue
      }
      this.#at++
      const to = this.#member()
      const first = onlyOf(from)
      const last = onlyOf(to)
      if (first === null || last === null || last < first) throw new UnreadPatternError('has a range that cannot be read')
      ranges.push([first, last])
    }
    return negated ? allBut(inOrder(ranges)) : inOrder(ranges)
  }

  #member(): CodePoints {
    const sign = this.#next()
    return sign === '\\' ? this.#escape() : single(sign)
  }

  #escape(): CodePoints {
    const sign = this.#next()
    const known = classes.get(sign)
    if (known) return known
    const control = signs.get(sign)
    if (control !== undefined) return [[control, control]]
    if (sign === 'x') return this.#hexadecimal(2)
    if (sign === 'u') return this.#take('{') ? this.#braced() : this.#hexadecimal(4)
    if (/^[0-9A-Za-z]$/.test(sign)) throw new UnreadPatternError(`has \\${sign}, which is not understood here`)
    return single(sign)
  }

  #hexadecimal(digitCount: number): CodePoints {
    let text = ''
    while (text.length < digitCount) text += this.#next()
    return codePoint(text)
  }

  #braced(): CodePoints {
    let text = ''
    while (!this.#take('}')) text += this.#next()
    return codePoint(text)
  }
}

function codePoint(text: string): CodePoints {
  const value = /^[0-9A-Fa-f]{1,6}$/.test(text) ? Number.parseInt(text, 16) : LAST + 1
  if (value > LAST) throw new UnreadPatternError('names a character that there is not')
  return [[value, value]]
}

function single(sign: string): CodePoints {
  const value = sign.codePointAt(0) ?? 0
  return [[value, value]]
}

function onlyOf(set: CodePoints): number | null {
  const [first] = set
  return set.length === 1 && first && first[0] === first[1] ? first[0] : null
}

function inOrder(ranges: readonly (readonly [number, number])[]): CodePoints {
  const ordered: [number, number][] = []
  for (const [from, to] of [...ranges].sort((left, right) => left[0] - right[0])) {
    const last = ordered.at(-1)
    if (last && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else ordered.push([from, to])
  }
  return ordered
}

function allBut(set: CodePoints): CodePoints {
  const rest: [number, number][] = []
  let from = 0
  for (const [first, last] of set) {
    if (first > from) rest.push([from, first - 1])
    from = last + 1
  }
  if (from <= LAST) rest.push([from, LAST])
  return rest
}
