import { CardError } from './card-error.ts'

/** A plain JSON value, as the rest of the system handles it. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject
export interface JsonObject {
  [key: string]: JsonValue
}

/**
 * JSON that forgets nothing: numbers keep their digits, strings their escapes, objects their order and repeated keys (decision 9).
 * Nodes are immutable; an update answers a new node, or the same one where nothing changed. Keys are data here, never properties, so
 * `__proto__` is a key like any other.
 */
export type JsonNode = JsonObjectNode | JsonArrayNode | JsonStringNode | JsonNumberNode | JsonLiteralNode
export interface JsonObjectNode {
  readonly kind: 'object'
  readonly members: readonly JsonMember[]
}
export interface JsonMember {
  readonly key: string
  /** The key as written, quotes included, where that differs from the ordinary spelling. */
  readonly rawKey?: string
  readonly value: JsonNode
}
export interface JsonArrayNode {
  readonly kind: 'array'
  readonly items: readonly JsonNode[]
}
export interface JsonStringNode {
  readonly kind: 'string'
  readonly value: string
  /** The string as written, quotes included, where that differs from the ordinary spelling. */
  readonly raw?: string
}
export interface JsonNumberNode {
  readonly kind: 'number'
  readonly text: string
}
export interface JsonLiteralNode {
  readonly kind: 'literal'
  readonly value: null | boolean
}

export const emptyObject: JsonObjectNode = { kind: 'object', members: [] }
export const emptyArray: JsonArrayNode = { kind: 'array', items: [] }

/** Keys that could reach an object's prototype in careless code further in: kept in the source, left out of plain values. */
export const isPrototypeKey = (key: string): boolean => key === '__proto__' || key === 'constructor' || key === 'prototype'

/** The value at a key; of repeated keys the last one counts, as in `JSON.parse`. */
export function member(node: JsonNode | undefined, key: string): JsonNode | undefined {
  if (node?.kind !== 'object') return undefined
  // a plain loop: lorebooks ask this half a million times
  for (let index = node.members.length - 1; index >= 0; index -= 1) {
    const candidate = node.members[index]
    if (candidate?.key === key) return candidate.value
  }
  return undefined
}

export function memberObject(node: JsonNode | undefined, key: string): JsonObjectNode | undefined {
  const value = member(node, key)
  return value?.kind === 'object' ? value : undefined
}

/** Puts a value at a key, in the key's old place if there was one, else at the end; `undefined` takes the key away. */
export function withMember(node: JsonObjectNode, key: string, value: JsonNode | undefined): JsonObjectNode {
  const index = node.members.findLastIndex((candidate) => candidate.key === key)
  if (value === undefined) {
    return index < 0 ? node : { kind: 'object', members: node.members.filter((candidate) => candidate.key !== key) }
  }
  const old = node.members[index]
  if (old === undefined) return { kind: 'object', members: [...node.members, { key, value }] }
  return old.value === value ? node : { kind: 'object', members: node.members.with(index, { ...old, value }) }
}

/** A plain value out of a node. A number that a double cannot hold becomes a string of its digits (decision 8). */
export function toPlain(node: JsonNode): JsonValue {
  switch (node.kind) {
    case 'literal':
    case 'string':
      return node.value
    case 'number':
      return plainNumber(node.text)
    case 'array':
      return node.items.map(toPlain)
    case 'object':
      return toPlainObject(node)
  }
}

export function toPlainObject(node: JsonObjectNode): JsonObject {
  const kept = node.members.filter(({ key }) => !isPrototypeKey(key))
  return Object.fromEntries(kept.map(({ key, value }) => [key, toPlain(value)]))
}

function plainNumber(text: string): number | string {
  const value = Number(text)
  if (!Number.isFinite(value)) return text
  const writtenAsInteger = /^-?\d+$/.test(text)
  return writtenAsInteger && !Number.isSafeInteger(value) ? text : value
}

/** A node out of a plain value. Lone surrogates become U+FFFD; a NUL or a number that is not finite is refused (decisions 7 and 8). */
export function fromPlain(value: JsonValue, path = ''): JsonNode {
  if (value === null || typeof value === 'boolean') return { kind: 'literal', value }
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new CardError('wrong_number', path, `${value} is no JSON number`)
    return { kind: 'number', text: Object.is(value, -0) ? '-0' : JSON.stringify(value) }
  }
  if (typeof value === 'string') return fromString(value, path)
  if (Array.isArray(value)) return { kind: 'array', items: value.map((item, index) => fromPlain(item, `${path}[${index}]`)) }
  return {
    kind: 'object',
    members: Object.entries(value).map(([key, item]) => ({ key: cleanString(key, path), value: fromPlain(item, `${path}.${key}`) })),
  }
}

export function fromString(value: string, path = ''): JsonStringNode {
  return { kind: 'string', value: cleanString(value, path) }
}

function cleanString(value: string, path: string): string {
  if (value.includes('\0')) throw new CardError('nul_character', path, 'A NUL character cannot be stored')
  return value.toWellFormed()
}

/** JSON text of a node, without white space between tokens; numbers and strings as they were written. */
export function stringify(node: JsonNode): string {
  const pieces: string[] = []
  write(node, pieces)
  return pieces.join('')
}

function write(node: JsonNode, pieces: string[]): void {
  switch (node.kind) {
    case 'literal':
      pieces.push(String(node.value))
      return
    case 'number':
      pieces.push(node.text)
      return
    case 'string':
      pieces.push(node.raw ?? JSON.stringify(node.value))
      return
    case 'array':
      pieces.push('[')
      node.items.forEach((item, index) => {
        if (index > 0) pieces.push(',')
        write(item, pieces)
      })
      pieces.push(']')
      return
    case 'object':
      pieces.push('{')
      node.members.forEach(({ key, rawKey, value }, index) => {
        if (index > 0) pieces.push(',')
        pieces.push(rawKey ?? JSON.stringify(key), ':')
        write(value, pieces)
      })
      pieces.push('}')
  }
}

/** Equality of plain values in which an absent property and an undefined one are the same. */
export function sameValue(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  if (Array.isArray(left) !== Array.isArray(right)) return false
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => sameValue(item, right[index]))
  }
  const leftEntries = definedEntries(left)
  const rightValues = new Map(definedEntries(right))
  return leftEntries.length === rightValues.size && leftEntries.every(([key, value]) => sameValue(value, rightValues.get(key)))
}

const definedEntries = (value: object): [string, unknown][] => Object.entries(value).filter(([, item]) => item !== undefined)
