import { isNull } from './codecs.ts'
import type { ReadContext } from './codecs.ts'
import { Report } from './card-error.ts'
import { ignoredDecorators, knownDecorators } from './decorators.ts'
import { emptyObject, member, memberObject, stringify, toPlain, toPlainObject, withMember } from './json-node.ts'
import type { JsonNode, JsonObject, JsonObjectNode } from './json-node.ts'
import { knownNames, loreFields } from './lore-fields.ts'
import type { LoreDialect, LoreEntry } from './lore-types.ts'
import { overlay } from './overlay.ts'
import { joinPath, parseJson } from './parse-json.ts'

/** Member of `extensions` for what cannot keep its own name in the other dialect without meaning something else there. */
const keptName = 'lingtai_kept'

/** Reads one entry. What is absent, null or unusable stays undefined: an entry never dies of a missing field (case C2). */
export function readEntry(node: JsonObjectNode, dialect: LoreDialect, context: ReadContext): LoreEntry {
  const entry: LoreEntry = {
    keys: [],
    secondaryKeys: [],
    // cards default to off by their specification; SillyTavern's own files to on
    selective: dialect === 'world_info',
    content: '',
    decorators: [],
    enabled: true,
    constant: false,
    order: 100,
    extensions: unknownExtensions(node, dialect),
    origin: { dialect, text: stringify(node) },
  }
  for (const field of loreFields) field.read({ node, dialect, into: entry, context })
  reportOddities(entry, node, context)
  return entry
}

function unknownExtensions(node: JsonObjectNode, dialect: LoreDialect): JsonObject {
  const extensions = memberObject(node, 'extensions')
  if (extensions === undefined) return {}
  const known = knownNames[dialect].extensions
  return toPlainObject({ kind: 'object', members: extensions.members.filter(({ key }) => !known.has(key)) })
}

function reportOddities(entry: LoreEntry, node: JsonObjectNode, { path, report }: ReadContext): void {
  const keysPath = joinPath(path, 'keys')
  entry.keys.forEach((key, index) => {
    if (key.trim() === '') report.add(joinPath(keysPath, index), 'blank_key', 'A blank key is kept and matches nothing')
  })
  const asks = entry.constant || entry.vectorized === true || knownDecorators(entry.decorators).has('activate')
  if (entry.enabled && !asks && entry.keys.every((key) => key.trim() === '')) {
    report.add(keysPath, 'no_keys', 'No key, not constant and not vectorized: nothing can activate this entry')
  }
  for (const { name } of ignoredDecorators(entry.decorators)) {
    report.add(joinPath(path, 'content'), 'decorator_ignored', `The decorator @@${name.slice(0, 64)} is kept but means nothing here`)
  }
  const useRegex = member(node, 'use_regex')
  if (useRegex === undefined || isNull(useRegex) || toPlain(useRegex) !== true) return
  entry.keys.forEach((key, index) => {
    if (key.startsWith('/') || !/[\\^$*+|[\]]/.test(key)) return
    report.add(
      joinPath(keysPath, index),
      'regex_as_literal',
      'Only a key written as /pattern/flags is a regular expression; this one is taken literally',
    )
  })
}

/** Writes one entry in a dialect. It starts from the entry's own text, so that only what changed is written (case C4). */
export function writeEntry(entry: LoreEntry, dialect: LoreDialect, path: string): JsonObjectNode {
  const { origin } = entry
  const own = origin === undefined ? undefined : originNode(origin.text)
  const read = own && origin && readEntry(own, origin.dialect, { path, report: new Report() })
  const isSameDialect = origin?.dialect === dialect
  const start = own === undefined || origin === undefined ? emptyObject : isSameDialect ? own : carryUnknown(own, origin.dialect, dialect)
  const before = isSameDialect ? read : undefined
  const written = loreFields.reduce((node, field) => field.write({ node, dialect, entry, before }), start)
  const extensions = overlay({
    node: memberObject(written, 'extensions'),
    before: read?.extensions ?? {},
    after: entry.extensions,
    path: `${path}.extensions`,
    untouchable: knownNames[dialect].extensions,
  })
  return extensions === undefined ? written : withMember(written, 'extensions', extensions)
}

/** The object that an origin's text holds, if it holds one. */
export function originNode(text: string): JsonObjectNode | undefined {
  const node: JsonNode = parseJson(text, { report: new Report() })
  return node.kind === 'object' ? node : undefined
}

/** What an entry holds beyond the known fields, placed so that it means nothing in the other dialect either. */
function carryUnknown(node: JsonObjectNode, from: LoreDialect, to: LoreDialect): JsonObjectNode {
  let result = emptyObject
  let extensions = emptyObject
  let kept = emptyObject
  for (const { key, value } of node.members) {
    if (knownNames[from].members.has(key)) continue
    if (knownNames[to].members.has(key)) kept = withMember(kept, key, value)
    else result = withMember(result, key, value)
  }
  for (const { key, value } of memberObject(node, 'extensions')?.members ?? []) {
    if (knownNames[from].extensions.has(key)) continue
    if (knownNames[to].extensions.has(key)) kept = withMember(kept, key, value)
    else extensions = withMember(extensions, key, value)
  }
  if (kept !== emptyObject) extensions = withMember(extensions, keptName, kept)
  return extensions === emptyObject ? result : withMember(result, 'extensions', extensions)
}
