import { atMost, count, flag, isNull, text } from './codecs.ts'
import type { Codec, ReadContext } from './codecs.ts'
import { Report } from './card-error.ts'
import { emptyArray, emptyObject, fromPlain, fromString, member, memberObject, stringify, toPlainObject, withMember } from './json-node.ts'
import type { JsonMember, JsonNode, JsonObjectNode } from './json-node.ts'
import { limits } from './limits.ts'
import { originNode, readEntry, writeEntry } from './lore-entry.ts'
import type { LoreBook, LoreDialect, LoreEntry } from './lore-types.ts'
import { overlay } from './overlay.ts'
import { joinPath } from './parse-json.ts'

type SettingName = 'name' | 'description' | 'scanDepth' | 'tokenBudget' | 'recursive'

interface Setting {
  read(node: JsonObjectNode, into: LoreBook, context: ReadContext): void
  write(node: JsonObjectNode, book: LoreBook, before: LoreBook): JsonObjectNode
}

function setting<Name extends SettingName>(name: Name, key: string, codec: Codec<NonNullable<LoreBook[Name]>>): Setting {
  return {
    read(node, into, context) {
      const found = member(node, key)
      if (found === undefined || isNull(found)) return
      const value = codec.decode(found, { ...context, path: joinPath(context.path, key) })
      if (value !== undefined) into[name] = value
    },
    write(node, book, before) {
      const value = book[name]
      if (value === before[name]) return node
      return withMember(node, key, value === undefined ? undefined : codec.encode(value))
    },
  }
}

/** The settings of a book, spelled alike in both dialects. */
const settings: readonly Setting[] = [
  setting('name', 'name', text),
  setting('description', 'description', text),
  setting('scanDepth', 'scan_depth', count),
  setting('tokenBudget', 'token_budget', count),
  setting('recursive', 'recursive_scanning', flag),
]

/** Whether the object holds entries, as a list or as SillyTavern's object by uid. */
export function hasEntries(node: JsonObjectNode): boolean {
  const entries = member(node, 'entries')
  return entries?.kind === 'array' || entries?.kind === 'object'
}

/** Reads a book of either dialect; each entry is read in the dialect that its own keys show. Throws CardError too_many_items. */
export function readBook(node: JsonObjectNode, context: ReadContext): LoreBook {
  const book = readSettings(node, context)
  const entries = member(node, 'entries')
  const path = joinPath(context.path, 'entries')
  if (entries?.kind === 'array') {
    atMost(entries.items, limits.bookEntries, path)
    book.entries = entries.items.flatMap((item, index) => readItem(item, { ...context, path: joinPath(path, index) }))
  } else if (entries?.kind === 'object') {
    atMost(entries.members, limits.bookEntries, path)
    book.entries = inScriptOrder(entries.members).flatMap(({ key, value }) => {
      const [entry] = readItem(value, { ...context, path: joinPath(path, key) }, 'world_info')
      if (entry === undefined) return []
      return entry.id === undefined ? { ...entry, id: isIndex(key) ? Number(key) : key } : entry
    })
  } else {
    context.report.add(path, 'wrong_type', 'A book without entries')
  }
  const dialect = entries?.kind === 'object' || book.entries[0]?.origin?.dialect === 'world_info' ? 'world_info' : 'character_book'
  return { ...book, origin: { dialect, text: stringify(withMember(node, 'entries', undefined)) } }
}

function readSettings(node: JsonObjectNode, context: ReadContext): LoreBook {
  const extensions = memberObject(node, 'extensions')
  const book: LoreBook = { entries: [], extensions: extensions === undefined ? {} : toPlainObject(extensions) }
  for (const one of settings) one.read(node, book, context)
  return book
}

function readItem(node: JsonNode, context: ReadContext, otherwise: LoreDialect = 'character_book'): [LoreEntry] | [] {
  if (node.kind !== 'object') {
    context.report.add(context.path, 'entry_not_object', 'This entry is no object and was left out')
    return []
  }
  return [readEntry(node, dialectOf(node, otherwise), context)]
}

function dialectOf(node: JsonObjectNode, otherwise: LoreDialect): LoreDialect {
  const hasCardKeys = member(node, 'keys') !== undefined
  const hasWorldKeys = member(node, 'key') !== undefined
  if (hasCardKeys === hasWorldKeys) return otherwise
  return hasCardKeys ? 'character_book' : 'world_info'
}

const isIndex = (key: string): boolean => /^(?:0|[1-9]\d{0,8})$/.test(key)

/** Script engines list number-like keys first and rising; "list position" in SillyTavern's files means that order. */
function inScriptOrder(members: readonly JsonMember[]): JsonMember[] {
  const [indexed, named] = [members.filter(({ key }) => isIndex(key)), members.filter(({ key }) => !isIndex(key))]
  return [...indexed.sort((left, right) => Number(left.key) - Number(right.key)), ...named]
}

/** Writes a book in a dialect. What did not change keeps its own text; unknown members are carried along (case C4). */
export function writeBook(book: LoreBook, dialect: LoreDialect, path: string): JsonObjectNode {
  const start = (book.origin === undefined ? undefined : originNode(book.origin.text)) ?? emptyObject
  const before = readSettings(start, { path, report: new Report() })
  const node = settings.reduce((result, one) => one.write(result, book, before), start)
  const extensions = overlay({
    node: memberObject(node, 'extensions'),
    before: before.extensions,
    after: book.extensions,
    path: `${path}.extensions`,
  })
  const complete = extensions === undefined ? node : withMember(node, 'extensions', extensions)
  const entriesPath = joinPath(path, 'entries')
  return withMember(complete, 'entries', dialect === 'world_info' ? worldEntries(book, entriesPath) : cardEntries(book, entriesPath))
}

function cardEntries({ entries }: LoreBook, path: string): JsonNode {
  return { kind: 'array', items: entries.map((entry, index) => writeEntry(entry, 'character_book', joinPath(path, index))) }
}

/** Uids must rise with the list, or readers would order the entries otherwise: an id that does not rise is replaced. */
function worldEntries({ entries }: LoreBook, path: string): JsonNode {
  let last = -1
  const members = entries.map((entry, index): JsonMember => {
    const { id } = entry
    const uid = typeof id === 'number' && Number.isSafeInteger(id) && id > last ? id : last + 1
    last = uid
    return { key: String(uid), value: writeEntry({ ...entry, id: uid }, 'world_info', joinPath(path, index)) }
  })
  return { kind: 'object', members }
}

/**
 * Adds what the card specifications require and a file may lack, with values that mean the same as nothing: other programs take an
 * absent `enabled` for a switched-off entry. `use_regex` belongs to V3 alone.
 */
export function completeCardBook(book: JsonObjectNode, spec: 'v2' | 'v3'): JsonObjectNode {
  const node = fill(book, 'extensions', emptyObject)
  const entries = member(node, 'entries')
  if (entries?.kind !== 'array') return fill(node, 'entries', emptyArray)
  const items = entries.items.map((item) => (item.kind === 'object' ? completeEntry(item, spec) : item))
  const isSame = items.every((item, index) => item === entries.items[index])
  return isSame ? node : withMember(node, 'entries', { kind: 'array', items })
}

function completeEntry(entry: JsonObjectNode, spec: 'v2' | 'v3'): JsonObjectNode {
  const filled = [
    ['keys', emptyArray],
    ['content', fromString('')],
    ['extensions', emptyObject],
    ['enabled', fromPlain(true)],
    ['insertion_order', fromPlain(100)],
  ] as const
  const node = filled.reduce<JsonObjectNode>((result, [key, value]) => fill(result, key, value), entry)
  if (spec === 'v2') return node
  const keys = member(node, 'keys')
  const hasPattern = keys?.kind === 'array' && keys.items.some((key) => key.kind === 'string' && /^\/.+\/[a-z]*$/s.test(key.value))
  return fill(node, 'use_regex', fromPlain(hasPattern))
}

/** Sets a member that is absent or null. */
export function fill(node: JsonObjectNode, key: string, value: JsonNode): JsonObjectNode {
  const found = member(node, key)
  return found === undefined || isNull(found) ? withMember(node, key, value) : node
}
