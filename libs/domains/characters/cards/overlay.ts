import { emptyObject, fromPlain, isPrototypeKey, sameValue, withMember } from './json-node.ts'
import type { JsonObject, JsonObjectNode } from './json-node.ts'

/**
 * Brings an object of the file from `before` (what we read of it) to `after`, key by key: what did not change keeps its own text, and
 * what we never read (prototype keys, names in `untouchable`) stays.
 */
export function overlay(input: {
  node: JsonObjectNode | undefined
  before: JsonObject
  after: JsonObject
  path: string
  untouchable?: ReadonlySet<string>
}): JsonObjectNode | undefined {
  const { node, before, after, path, untouchable } = input
  const isOurs = (key: string): boolean => !isPrototypeKey(key) && untouchable?.has(key) !== true
  let result = node ?? emptyObject
  for (const key of Object.keys(before)) {
    if (isOurs(key) && !Object.hasOwn(after, key)) result = withMember(result, key, undefined)
  }
  for (const [key, value] of Object.entries(after)) {
    if (!isOurs(key) || (Object.hasOwn(before, key) && sameValue(before[key], value))) continue
    result = withMember(result, key, fromPlain(value, `${path}.${key}`))
  }
  return result === emptyObject ? node : result
}
