import { readPattern, UnreadPatternError } from './pattern-syntax.ts'
import type { CodePoints, PatternNode } from './pattern-syntax.ts'

/** States of one pattern once its counts are written out, and what building them may take. */
const MAX_STATES = 500
const MAX_BUILT = 5_000

/** `next`: where it goes on; a state of `one` does so over one code point of its set, a fork without one, to both. */
type State =
  | { kind: 'one'; of: CodePoints; next: number }
  | { kind: 'fork'; next: number; other: number }
  | { kind: 'start' | 'end'; next: number }
  | { kind: 'found' }

/** Steps that searching may still take; shared by all searches of one check. */
export type Work = { left: number }

/**
 * A pattern that is searched for in time that grows with the text and not faster: all ways through it are followed at once, a code point at
 * a time (Thompson's construction), so that no text makes it try again. What is not in its syntax is refused where it is read.
 */
export class LinearPattern {
  readonly #states: readonly State[]

  private constructor(states: readonly State[]) {
    this.#states = states
  }

  /** A pattern, or what keeps it from being one: words that complete “the pattern …”. */
  static read(source: string): LinearPattern | string {
    try {
      const node = readPattern(source)
      const unsafe = ambiguity(node, false)
      return unsafe ?? new LinearPattern(new Builder().build(node))
    } catch (error) {
      if (error instanceof UnreadPatternError) return error.message
      throw error
    }
  }

  /** Whether it is found anywhere in a text. Null where there was too little work left to tell. */
  isIn(text: string, work: Work): boolean | null {
    let here = new Set<number>()
    let position = 0
    for (const sign of text) {
      // It may begin at every place.
      this.#enter(0, here, { first: position === 0, last: false })
      if (this.#hasFound(here)) return true
      work.left -= here.size + 1
      if (work.left < 0) return null
      const point = sign.codePointAt(0) ?? 0
      const next = new Set<number>()
      const isLast = position + sign.length === text.length
      for (const at of here) {
        const state = this.#states[at]
        if (state?.kind === 'one' && includes(state.of, point)) this.#enter(state.next, next, { first: false, last: isLast })
      }
      here = next
      position += sign.length
    }
    this.#enter(0, here, { first: position === 0, last: true })
    return this.#hasFound(here)
  }

  #hasFound(states: ReadonlySet<number>): boolean {
    return states.has(this.#states.length - 1)
  }

  /** Adds a state and all that follow it without a code point. */
  #enter(from: number, into: Set<number>, place: { first: boolean; last: boolean }): void {
    const left = [from]
    for (let at = left.pop(); at !== undefined; at = left.pop()) {
      const state = this.#states[at]
      if (!state || into.has(at)) continue
      into.add(at)
      if (state.kind === 'fork') left.push(state.next, state.other)
      else if ((state.kind === 'start' && place.first) || (state.kind === 'end' && place.last)) left.push(state.next)
    }
  }
}

function includes(set: CodePoints, point: number): boolean {
  return set.some(([from, to]) => from <= point && point <= to)
}

/** Writes states in the order in which they are met; the last is where the pattern is found. */
class Builder {
  readonly #states: State[] = []
  #built = 0

  build(node: PatternNode): State[] {
    this.#write(node)
    this.#push({ kind: 'found' })
    return this.#states
  }

  #push(state: State): number {
    if (this.#states.length >= MAX_STATES) throw new UnreadPatternError('is too large once its counts are written out')
    return this.#states.push(state) - 1
  }

  #write(node: PatternNode): void {
    if (++this.#built > MAX_BUILT) throw new UnreadPatternError('is too large once its counts are written out')
    switch (node.kind) {
      case 'one':
        this.#push({ kind: 'one', of: node.of, next: this.#states.length + 1 })
        return
      case 'start':
      case 'end':
        this.#push({ kind: node.kind, next: this.#states.length + 1 })
        return
      case 'sequence':
        for (const part of node.parts) this.#write(part)
        return
      case 'choice':
        this.#choice(node.options)
        return
      case 'repeat':
        this.#repeat(node)
    }
  }

  /** A fork before each option but the last, and after each a way past the others: a fork whose two ways are one. */
  #choice([first, ...others]: readonly PatternNode[]): void {
    if (!first) return
    if (others.length === 0) {
      this.#write(first)
      return
    }
    const fork = { kind: 'fork' as const, next: this.#states.length + 1, other: 0 }
    this.#push(fork)
    this.#write(first)
    const past = { kind: 'fork' as const, next: 0, other: 0 }
    this.#push(past)
    fork.other = this.#states.length
    this.#choice(others)
    past.next = this.#states.length
    past.other = past.next
  }

  #repeat({ part, least, most }: Extract<PatternNode, { kind: 'repeat' }>): void {
    for (let times = 0; times < least; times++) this.#write(part)
    if (most === Infinity) {
      const fork = { kind: 'fork' as const, next: this.#states.length + 1, other: 0 }
      const at = this.#push(fork)
      this.#write(part)
      this.#push({ kind: 'fork', next: at, other: at })
      fork.other = this.#states.length
      return
    }
    const forks = Array.from({ length: most - least }, () => {
      const fork = { kind: 'fork' as const, next: this.#states.length + 1, other: 0 }
      this.#push(fork)
      this.#write(part)
      return fork
    })
    for (const fork of forks) fork.other = this.#states.length
  }
}

/**
 * Why a pattern can be gone through in more ways than anybody meant. None of it costs time here; but whoever wrote it meant something else,
 * and elsewhere such a pattern may run for ever.
 */
function ambiguity(node: PatternNode, isRepeated: boolean): string | null {
  switch (node.kind) {
    case 'sequence':
      return firstOf(node.parts, (part) => ambiguity(part, isRepeated))
    case 'choice':
      if (isRepeated && overlap(node.options)) return 'repeats alternatives of which one begins another'
      return firstOf(node.options, (option) => ambiguity(option, isRepeated))
    case 'repeat':
      if (node.most > 1 && isElastic(node.part)) return 'repeats a repetition'
      return ambiguity(node.part, isRepeated || node.most > 1)
    default:
      return null
  }
}

function firstOf(nodes: readonly PatternNode[], look: (node: PatternNode) => string | null): string | null {
  for (const node of nodes) {
    const found = look(node)
    if (found !== null) return found
  }
  return null
}

/** Whether nothing in a part is there exactly once, so that one round of it can be two as well. */
function isElastic(node: PatternNode): boolean {
  switch (node.kind) {
    case 'repeat':
      return (node.most > 1 && node.most > node.least) || isElastic(node.part)
    case 'sequence':
      return node.parts.some(isElastic) && node.parts.every((part) => isElastic(part) || canBeEmpty(part))
    case 'choice':
      return node.options.some(isElastic)
    default:
      return false
  }
}

function canBeEmpty(node: PatternNode): boolean {
  switch (node.kind) {
    case 'one':
      return false
    case 'sequence':
      return node.parts.every(canBeEmpty)
    case 'choice':
      return node.options.some(canBeEmpty)
    case 'repeat':
      return node.least === 0 || canBeEmpty(node.part)
    default:
      return true
  }
}

/** Whether of plain alternatives one is how another may begin. */
function overlap(options: readonly PatternNode[]): boolean {
  const plain = options.map(setsOf)
  return plain.some((left, index) =>
    plain.slice(index + 1).some((right) => {
      if (!left || !right) return false
      const length = Math.min(left.length, right.length)
      return left.slice(0, length).every((set, at) => meet(set, right[at] ?? []))
    }),
  )
}

function setsOf(node: PatternNode): CodePoints[] | null {
  if (node.kind === 'one') return [node.of]
  if (node.kind !== 'sequence') return null
  const sets = node.parts.map((part) => (part.kind === 'one' ? part.of : null))
  return sets.every((set) => set !== null) ? sets : null
}

function meet(left: CodePoints, right: CodePoints): boolean {
  return left.some(([from, to]) => right.some(([first, last]) => from <= last && first <= to))
}
