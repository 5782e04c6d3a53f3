import { CardError } from './card-error.ts'
import type { Report } from './card-error.ts'
import { isPrototypeKey } from './json-node.ts'
import type { JsonMember, JsonNode } from './json-node.ts'
import { limits } from './limits.ts'

const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
/** Below U+0020: JSON has these as escapes only. */
const controlCharacter = /[^\x20-\uffff]/
const plainKey = /^[\p{L}_][\p{L}\p{N}_-]{0,63}$/u

/** Written form of one more step of a path: `.name`, `[3]`, `["odd key"]`. */
export function joinPath(path: string, step: string | number): string {
  if (typeof step === 'number') return `${path}[${step}]`
  if (!plainKey.test(step)) return `${path}[${JSON.stringify(step.length > 64 ? `${step.slice(0, 64)}…` : step)}]`
  return path === '' ? step : `${path}.${step}`
}

/**
 * Reads JSON text without losing anything (decision 9) and within bounds (decision 7): nesting, count of values, length of a number.
 * NUL characters are refused; lone surrogates become U+FFFD in the value and stay as they were written in the text; repeated and
 * prototype keys are reported. Throws CardError: not_json, nul_character, too_deep, too_many_values, number_too_long.
 */
export function parseJson(text: string, { report, maxDepth = limits.depth }: { report: Report; maxDepth?: number }): JsonNode {
  return new Reader(text, report, maxDepth).document()
}

class Reader {
  readonly #text: string
  readonly #report: Report
  readonly #maxDepth: number
  readonly #steps: (string | number)[] = []
  #at = 0
  #depth = 0
  #values = 0

  constructor(text: string, report: Report, maxDepth: number) {
    this.#text = text
    this.#report = report
    this.#maxDepth = maxDepth
  }

  document(): JsonNode {
    const node = this.#value()
    this.#skipSpace()
    if (this.#at < this.#text.length) throw this.#unexpected()
    return node
  }

  #value(): JsonNode {
    this.#values += 1
    if (this.#values > limits.jsonValues) {
      throw new CardError('too_many_values', this.#path(), `More than ${limits.jsonValues} values in one document`)
    }
    this.#skipSpace()
    const character = this.#text[this.#at]
    if (character === '{') return this.#object()
    if (character === '[') return this.#array()
    if (character === '"') return { kind: 'string', ...this.#string() }
    if (character === 't') return this.#literal('true', true)
    if (character === 'f') return this.#literal('false', false)
    if (character === 'n') return this.#literal('null', null)
    return this.#number()
  }

  #object(): JsonNode {
    this.#open()
    const members: JsonMember[] = []
    if (!this.#accept('}')) {
      do {
        this.#skipSpace()
        if (this.#text[this.#at] !== '"') throw this.#unexpected()
        const { value: key, raw: rawKey } = this.#string()
        this.#steps.push(key)
        if (isPrototypeKey(key)) {
          this.#report.add(this.#path(), 'prototype_key', `The key ${key} is kept in the file but left out of what is read`)
        }
        if (!this.#accept(':')) throw this.#unexpected()
        members.push({ key, ...(rawKey === undefined ? {} : { rawKey }), value: this.#value() })
        this.#steps.pop()
      } while (this.#accept(','))
      if (!this.#accept('}')) throw this.#unexpected()
    }
    this.#close()
    if (new Set(members.map(({ key }) => key)).size < members.length) {
      this.#report.add(this.#path(), 'duplicate_key', 'A key is repeated; the last one counts')
    }
    return { kind: 'object', members }
  }

  #array(): JsonNode {
    this.#open()
    const items: JsonNode[] = []
    if (!this.#accept(']')) {
      do {
        this.#steps.push(items.length)
        items.push(this.#value())
        this.#steps.pop()
      } while (this.#accept(','))
      if (!this.#accept(']')) throw this.#unexpected()
    }
    this.#close()
    return { kind: 'array', items }
  }

  #open(): void {
    this.#at += 1
    this.#depth += 1
    if (this.#depth > this.#maxDepth) throw new CardError('too_deep', this.#path(), `Nested deeper than ${this.#maxDepth} levels`)
  }

  #close(): void {
    this.#depth -= 1
  }

  #string(): { value: string; raw?: string } {
    const start = this.#at
    const end = this.#closingQuote(start + 1)
    const raw = this.#text.slice(start, end + 1)
    const control = controlCharacter.exec(raw)
    if (control?.[0] === '\0') throw this.#nul()
    if (control !== null) {
      this.#at = start + control.index
      throw this.#unexpected()
    }
    this.#at = end + 1
    const escaped = raw.includes('\\')
    const value = escaped ? this.#unescape(raw, start) : raw.slice(1, -1)
    if (escaped && value.includes('\0')) throw this.#nul()
    if (value.isWellFormed()) return escaped ? { value, raw } : { value }
    this.#report.add(this.#path(), 'lone_surrogate', 'Half of a character pair was replaced by U+FFFD')
    return { value: value.toWellFormed(), raw }
  }

  #closingQuote(from: number): number {
    for (let end = this.#text.indexOf('"', from); end >= 0; end = this.#text.indexOf('"', end + 1)) {
      let backslashes = 0
      while (this.#text.charCodeAt(end - 1 - backslashes) === 0x5c) backslashes += 1
      if (backslashes % 2 === 0) return end
    }
    this.#at = this.#text.length
    throw this.#unexpected()
  }

  #nul(): CardError {
    return new CardError('nul_character', this.#path(), 'A NUL character cannot be stored')
  }

  #unescape(raw: string, start: number): string {
    try {
      return String(JSON.parse(raw))
    } catch (cause) {
      throw new CardError('not_json', this.#path(), `Bad escape in the string at position ${start}`, { cause })
    }
  }

  #number(): JsonNode {
    const start = this.#at
    let end = start
    while (end < this.#text.length && '+-.0123456789eE'.includes(this.#text.charAt(end))) end += 1
    if (end - start > limits.numberCharacters) {
      throw new CardError('number_too_long', this.#path(), `A number has more than ${limits.numberCharacters} characters`)
    }
    const text = this.#text.slice(start, end)
    if (!numberPattern.test(text)) throw this.#unexpected()
    this.#at = end
    return { kind: 'number', text }
  }

  #literal(text: string, value: null | boolean): JsonNode {
    if (!this.#text.startsWith(text, this.#at)) throw this.#unexpected()
    this.#at += text.length
    return { kind: 'literal', value }
  }

  #accept(character: string): boolean {
    this.#skipSpace()
    if (this.#text[this.#at] !== character) return false
    this.#at += 1
    return true
  }

  #skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
      this.#at += 1
    }
  }

  #path(): string {
    return this.#steps.reduce<string>(joinPath, '')
  }

  #unexpected(): CardError {
    const place = this.#at < this.#text.length ? `character at position ${this.#at}` : 'end of the text'
    return new CardError('not_json', this.#path(), `Not valid JSON: unexpected ${place}`)
  }
}
