import { CardError } from './card-error.ts'
import type { Report } from './card-error.ts'
import { fromPlain, fromString } from './json-node.ts'
import type { JsonNode } from './json-node.ts'
import { limits } from './limits.ts'
import { joinPath } from './parse-json.ts'

/** Where a value stands and where to report what is odd about it. */
export interface ReadContext {
  path: string
  report: Report
}

/** One value between the file's spelling and ours. `decode` answers undefined, and reports, where the file holds nothing usable. */
export interface Codec<Value> {
  decode(node: JsonNode, context: ReadContext): Value | undefined
  encode(value: Value): JsonNode
}

function refuse(node: JsonNode, { path, report }: ReadContext, wanted: string): undefined {
  const found = node.kind === 'literal' ? String(node.value) : node.kind
  report.add(path, 'wrong_type', `Expected ${wanted}, found ${found}: kept in the file, not used`)
  return undefined
}

function coerced<Value>(value: Value, { path, report }: ReadContext, from: string): Value {
  report.add(path, 'coerced', `Read from ${from}`)
  return value
}

export const isNull = (node: JsonNode): boolean => node.kind === 'literal' && node.value === null

export const text: Codec<string> = {
  decode(node, context) {
    if (node.kind === 'string') return node.value
    if (node.kind === 'number') return coerced(node.text, context, 'a number')
    return refuse(node, context, 'text')
  },
  encode: fromString,
}

export const flag: Codec<boolean> = {
  decode(node, context) {
    if (node.kind === 'literal' && typeof node.value === 'boolean') return node.value
    if (node.kind === 'number' && (node.text === '0' || node.text === '1')) return coerced(node.text === '1', context, 'a number')
    if (node.kind === 'string' && (node.value === 'true' || node.value === 'false')) return coerced(node.value === 'true', context, 'text')
    return refuse(node, context, 'true or false')
  },
  encode: fromPlain,
}

/** The same switch written the other way round: SillyTavern's `disable` is our `enabled`. */
export const inverseFlag: Codec<boolean> = {
  decode(node, context) {
    const value = flag.decode(node, context)
    return value === undefined ? undefined : !value
  },
  encode: (value) => fromPlain(!value),
}

/** Any finite number. */
export const number: Codec<number> = {
  decode(node, context) {
    if (node.kind === 'number') {
      const value = Number(node.text)
      return Number.isFinite(value) ? value : refuse(node, context, 'a finite number')
    }
    if (node.kind === 'string' && /^\s*-?\d{1,15}(\.\d{1,15})?\s*$/.test(node.value)) return coerced(Number(node.value), context, 'text')
    return refuse(node, context, 'a number')
  },
  encode: fromPlain,
}

/** A number that is not negative. */
export const count: Codec<number> = {
  decode(node, context) {
    const value = number.decode(node, context)
    return value === undefined || value >= 0 ? value : refuse(node, context, 'a number of 0 or more')
  },
  encode: fromPlain,
}

/** `false` or a level; `true` is level 1 and level 0 is false. */
export const level: Codec<false | number> = {
  decode(node, context) {
    if (node.kind === 'literal' && typeof node.value === 'boolean') return node.value ? 1 : false
    const value = count.decode(node, context)
    return value === 0 ? false : value
  },
  encode: fromPlain,
}

export const identifier: Codec<number | string> = {
  decode(node, context) {
    if (node.kind === 'string') return node.value
    return number.decode(node, context)
  },
  encode: fromPlain,
}

/** One of a list of names; files hold the name or its position in the list. `asName` says which one is written. */
export function choice<Name extends string>(names: readonly Name[], asName = false): Codec<Name> {
  return {
    decode(node, context) {
      const found = node.kind === 'string' ? names.find((name) => name === node.value) : undefined
      if (found !== undefined) return found
      const index = node.kind === 'number' || node.kind === 'string' ? Number(node.kind === 'number' ? node.text : node.value || '-1') : -1
      return names[index] ?? refuse(node, context, `one of ${names.join(', ')}`)
    },
    encode: (value) => fromPlain(asName ? value : names.indexOf(value)),
  }
}

/** What a lone text means where a list of texts belongs: a comma list, or the only item. */
type LoneText = 'comma_list' | 'only_item'

/** A list of texts. Items of another kind are reported and left out. Throws CardError too_many_items. */
export function textList(loneText: LoneText): Codec<string[]> {
  return {
    decode(node, context) {
      if (node.kind === 'string') {
        const parts = loneText === 'comma_list' ? node.value.split(',').map((part) => part.trim()) : [node.value]
        const items = parts.filter((part) => part !== '')
        return coerced([...atMost(items, limits.listItems, context.path)], context, 'one text')
      }
      if (node.kind !== 'array') return refuse(node, context, 'a list of texts')
      return atMost(node.items, limits.listItems, context.path).flatMap((item, index) => {
        const value = text.decode(item, { ...context, path: joinPath(context.path, index) })
        return value === undefined ? [] : [value]
      })
    },
    encode: fromPlain,
  }
}

/** The list itself; throws CardError too_many_items past the bound. */
export function atMost<Item>(items: readonly Item[], most: number, path: string): readonly Item[] {
  if (items.length > most) throw new CardError('too_many_items', path, `More than ${most} items in one list`)
  return items
}
