import type { Id, Trust } from '#contracts'
import { sha256Hex } from '#kernel/record/chain'
import { describeDuration, formatDate } from './dates.ts'
import { rollDice } from './dice.ts'
import type { PromptReadings } from './entity.ts'
import { matchBraces, readHead, splitSpan } from './macro-syntax.ts'
import type { MacroHead, Span } from './macro-syntax.ts'
import { createRandom } from './random.ts'

/** A text that a macro stands for, with the trust and contents that it brings into whatever it is put in. */
export type MacroValue = { text: string; trust: Trust; contentIds: readonly Id[] }

/** Names of values, as macros of the same name in lower case and their usual other names refer to them. */
export type MacroName =
  | 'char'
  | 'user'
  | 'description'
  | 'personality'
  | 'scenario'
  | 'persona'
  | 'mesexamples'
  | 'charprompt'
  | 'charinstruction'
  | 'charversion'
  | 'creatornotes'
  | 'greeting'
  | 'model'
  | 'lastmessage'
  | 'lastusermessage'
  | 'lastcharmessage'

export type MacroValues = { char: MacroValue; user: MacroValue } & { [name in MacroName]?: MacroValue }

/** Everything that expansion depends on. */
export type MacroContext = {
  /** Names the text (the entity's identifier): each text draws for itself, so that adding one changes no other's draws. */
  scope: string
  readings: PromptReadings
  /** The tree: {{pick}} answers the same in it for ever. */
  chatKey: string
  values: MacroValues
}

/** The text with its macros expanded, and the values that went into it. */
export type Expansion = { text: string; used: readonly MacroValue[] }

const otherNames: ReadonlyMap<string, MacroName> = new Map([
  ['group', 'char'],
  ['charifnotgroup', 'char'],
  ['groupnotmuted', 'char'],
  ['chardescription', 'description'],
  ['charpersonality', 'personality'],
  ['charscenario', 'scenario'],
  ['mesexamplesraw', 'mesexamples'],
  ['charjailbreak', 'charinstruction'],
  ['char_version', 'charversion'],
  ['version', 'charversion'],
  ['charcreatornotes', 'creatornotes'],
  ['charfirstmessage', 'greeting'],
  ['input', 'lastusermessage'],
])

/** Markers of the time before macros, with the value they stand for. */
const LEGACY = /<(user|bot|char|group|charifnotgroup)>/gi

/** Nesting deeper than this is left as it stands. */
const MAX_NESTING = 16
const MAX_REPEAT = 1000

/** Drops line ends at the end of a text, down to `floor`. */
function trimLineEnds(text: string, floor: number): string {
  let end = text.length
  while (end > floor && text[end - 1] === '\n') end -= text[end - 2] === '\r' && end - 1 > floor ? 2 : 1
  return text.slice(0, end)
}

/** What is written so far; {{trim}} takes line ends before and after it, {{noop}} stops it. */
class Output {
  #text = ''
  #floor = 0
  #trimming = false

  add(text: string): void {
    const added = this.#trimming ? text.replace(/^(?:\r?\n)+/, '') : text
    if (added === '') return
    this.#trimming = false
    this.#text += added
  }

  trim(): void {
    this.#text = trimLineEnds(this.#text, this.#floor)
    this.#trimming = true
  }

  stop(): void {
    this.#floor = this.#text.length
    this.#trimming = false
  }

  toString(): string {
    return this.#text
  }
}

class Expander {
  readonly #text: string
  readonly #context: MacroContext
  readonly #pairs: ReadonlyMap<number, number>
  readonly #values: ReadonlyMap<string, MacroValue | undefined>
  readonly used = new Set<MacroValue>()
  #textHash: string | null = null

  constructor(text: string, context: MacroContext) {
    this.#text = text
    this.#context = context
    this.#pairs = matchBraces(text)
    this.#values = new Map(Object.entries(context.values))
  }

  expand(span: Span, depth: number): string {
    const output = new Output()
    let literalFrom = span.from
    for (let at = span.from; at < span.to;) {
      const close = this.#pairs.get(at)
      if (close === undefined || close + 2 > span.to) {
        at += 1
        continue
      }
      output.add(this.#literal({ from: literalFrom, to: at }))
      this.#macro({ from: at + 2, to: close }, { output, depth })
      at = close + 2
      literalFrom = at
    }
    output.add(this.#literal({ from: literalFrom, to: span.to }))
    return output.toString()
  }

  #literal({ from, to }: Span): string {
    return this.#text.slice(from, to).replace(LEGACY, (marker, name: string) => {
      const value = this.#value(name.toLowerCase() === 'bot' ? 'char' : name.toLowerCase())
      return value ?? marker
    })
  }

  #value(name: string): string | null {
    const value = this.#values.get(otherNames.get(name) ?? name)
    if (value === undefined) return null
    this.used.add(value)
    return value.text
  }

  #macro(body: Span, { output, depth }: { output: Output; depth: number }): void {
    const raw = this.#text.slice(body.from, body.to)
    if (raw.trimStart().startsWith('//')) return
    const zoned = /^\s*time_utc([+-]\d{1,4})\s*$/i.exec(raw)
    if (zoned) {
      output.add(this.#timeAt(Number(zoned[1])))
      return
    }
    const head = readHead(this.#text, body)
    if (head?.name === 'trim' && head.separator === null) output.trim()
    else if (head?.name === 'noop' && head.separator === null) output.stop()
    else {
      const expanded = head && depth < MAX_NESTING ? this.#evaluate(head, { at: body.from, depth }) : null
      // Unknown: it stays as it is, known macros inside it are expanded.
      output.add(expanded ?? `{{${depth < MAX_NESTING ? this.expand(body, depth + 1) : raw}}}`)
    }
  }

  /** The macro's text; null where it is none that we know. */
  #evaluate(head: MacroHead, place: { at: number; depth: number }): string | null {
    return head.separator === null ? this.#plain(head.name) : this.#withArguments(head, place)
  }

  #plain(name: string): string | null {
    const { now, utcOffsetMinutes, idleMs } = this.#context.readings
    const date = (pattern: string): string => formatDate(now, utcOffsetMinutes, pattern)
    switch (name) {
      case 'newline':
        return '\n'
      case 'space':
        return ' '
      // Means something inside an override alone, where it has been replaced by now.
      case 'original':
        return ''
      case 'time':
        return date('LT')
      case 'date':
        return date('LL')
      case 'weekday':
        return date('dddd')
      case 'isotime':
        return date('HH:mm')
      case 'isodate':
        return date('YYYY-MM-DD')
      case 'idle_duration':
      case 'idleduration':
        return idleMs === undefined ? null : describeDuration(idleMs)
      default:
        return this.#value(name)
    }
  }

  #withArguments(head: MacroHead, { at, depth }: { at: number; depth: number }): string | null {
    const { now, utcOffsetMinutes, seed } = this.#context.readings
    const argument = (): string => this.expand(head.rest, depth + 1).trim()
    switch (head.name) {
      case 'random':
        return this.#choose(head.rest, { key: `random|${seed}|${this.#context.scope}|${at}`, depth })
      case 'pick':
        this.#textHash ??= sha256Hex(this.#text)
        return this.#choose(head.rest, { key: `pick|${this.#context.chatKey}|${this.#textHash}|${at}`, depth })
      case 'roll':
        return rollDice(argument(), createRandom(`roll|${seed}|${this.#context.scope}|${at}`)) ?? ''
      case 'datetimeformat':
        return formatDate(now, utcOffsetMinutes, argument())
      case 'time': {
        const offset = /^utc([+-]\d{1,4})$/i.exec(argument())
        return offset ? this.#timeAt(Number(offset[1])) : null
      }
      case 'reverse':
        return [...argument()].reverse().join('')
      case 'newline':
      case 'space': {
        const count = Number(argument())
        return Number.isInteger(count) && count >= 0 && count <= MAX_REPEAT ? (head.name === 'newline' ? '\n' : ' ').repeat(count) : null
      }
      // Seen by the author and by lore matching, never by the model.
      case 'comment':
      case 'hidden_key':
        return ''
      default:
        return null
    }
  }

  /** One of a list: `a::b::c`, or `a, b, c` where no `::` stands; `\,` is a comma. Only what is chosen is expanded. */
  #choose(rest: Span, { key, depth }: { key: string; depth: number }): string {
    const base = { text: this.#text, pairs: this.#pairs, span: rest }
    const byColons = splitSpan({ ...base, delimiter: '::' })
    const choices = byColons.length > 1 ? byColons : splitSpan({ ...base, delimiter: ',' })
    const chosen = choices[createRandom(key).below(choices.length)] ?? rest
    const text = this.expand(chosen, depth + 1).trim()
    return byColons.length > 1 ? text : text.replaceAll('\\,', ',')
  }

  /** As moment.js reads an offset: below 16 it is hours, else minutes. */
  #timeAt(offset: number): string {
    return formatDate(this.#context.readings.now, Math.abs(offset) < 16 ? offset * 60 : offset, 'LT')
  }
}

/**
 * Expands the macros of a text once: what a macro answers is never looked at again, unknown ones stay. Clock, seed and zone come from the
 * readings, so that a replay and a preview agree (spec/3). Never give it text from a model, a tool or a chat.
 */
export function expandMacros(text: string, context: MacroContext): Expansion {
  if (!text.includes('{{') && !text.includes('<')) return { text, used: [] }
  const expander = new Expander(text, context)
  const expanded = expander.expand({ from: 0, to: text.length }, 0)
  return { text: expanded, used: [...expander.used] }
}
