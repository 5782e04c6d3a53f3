import { CardError, Report } from './card-error.ts'
import { readDocument, stringAt } from './card-document.ts'
import type { CardDocument } from './card-document.ts'
import { dataKeys, listFields, oldCreatorNotes, readAsset, textFields } from './card-fields.ts'
import type { CardAsset, CardEdits, NormalisedCard } from './card-types.ts'
import { emptyArray, emptyObject, fromPlain, fromString, member, memberObject, sameValue, stringify, withMember } from './json-node.ts'
import type { JsonMember, JsonNode, JsonObjectNode } from './json-node.ts'
import { limits } from './limits.ts'
import { completeCardBook, fill, writeBook } from './lore-book.ts'
import type { LoreBook } from './lore-types.ts'
import { overlay } from './overlay.ts'
import { plainPng, readPng, readTextChunk, textChunk, writePng } from './png.ts'

export type CardFormat = 'json-v2' | 'json-v3' | 'png'

export interface CardExport {
  /** The card's own JSON text; without it the card is written from the edits alone, which then need a name. */
  source?: string
  edits?: CardEdits
  /** Picture for a PNG export; without one a plain picture is made. */
  avatarPng?: Uint8Array
}

/**
 * Writes a card (spec/6, formats). It starts from the source text and writes only what the edits change and what the specification
 * requires, so unknown fields survive with their digits (case C4, decision 9); an unedited card that lacks nothing comes out byte for
 * byte. A PNG holds both `chara` (V2) and `ccv3` (V3) (case C6). Throws CardError: missing_name, too_large (a PNG holds the card twice),
 * nul_character and wrong_number for edits that JSON cannot hold, and what reading the source and the picture gives.
 */
export function exportCard({ source, edits = {}, avatarPng }: CardExport, format: CardFormat): Uint8Array {
  const document = source === undefined ? blankDocument(edits) : readDocument(source, new Report())
  const text = (spec: 'v2' | 'v3'): string => {
    const root = writeDocument(document, edits, spec)
    return source !== undefined && root === document.root ? source : stringify(root)
  }
  const bytes =
    format === 'png'
      ? embed(avatarPng ?? plainPng(edits.name ?? document.card.name), { chara: text('v2'), ccv3: text('v3') })
      : Buffer.from(text(format === 'json-v2' ? 'v2' : 'v3'))
  if (bytes.length > limits.fileBytes) {
    throw new CardError('too_large', '', `The file would be larger than ${limits.fileBytes} bytes and could not be imported again`)
  }
  return bytes
}

function embed(png: Uint8Array, texts: { chara: string; ccv3: string }): Uint8Array {
  const kept = readPng(png).filter((chunk) => !Object.hasOwn(texts, readTextChunk(chunk)?.keyword ?? ''))
  const chunks = Object.entries(texts).map(([keyword, text]) => textChunk(keyword, Buffer.from(text).toString('base64')))
  // readPng has seen to it that IEND is the last one
  return writePng([...kept.slice(0, -1), ...chunks, ...kept.slice(-1)])
}

function writeDocument(document: CardDocument, edits: CardEdits, spec: 'v2' | 'v3'): JsonObjectNode {
  const nested = document.layout === 'flat' ? nest(document) : document.root
  const root = edit(nested, document.card, edits)
  return withSpec(withMember(root, 'data', completeData(memberObject(root, 'data') ?? emptyObject, spec)), spec)
}

function blankDocument(edits: CardEdits): CardDocument {
  const name = edits.name ?? ''
  const data = withMember(emptyObject, 'name', fromString(name, 'data.name'))
  const root = withMember(withSpec(emptyObject, 'v3'), 'data', data)
  return name.trim() === '' ? missingName() : readDocument(stringify(root), new Report())
}

function missingName(): never {
  throw new CardError('missing_name', 'data.name', 'A card needs a name')
}

/** A V1 card as `data` with what is unknown left at the root. */
function nest({ root, card }: CardDocument): JsonObjectNode {
  const isField = ({ key }: JsonMember): boolean => dataKeys.has(key)
  const fields: JsonObjectNode = { kind: 'object', members: root.members.filter(isField) }
  const notes = card.creatorNotes === '' ? fields : withMember(fields, textFields.creatorNotes, fromString(card.creatorNotes))
  // a `data` that is no object, and so was no card's data, must make room
  const stray = member(root, 'data')
  const data = stray === undefined ? notes : withMember(notes, 'lingtai_root_data', stray)
  const rest = root.members.filter((one) => !isField(one) && !['data', 'spec', 'spec_version'].includes(one.key))
  return { kind: 'object', members: [{ key: 'data', value: data }, ...rest] }
}

const specNames = { v2: ['chara_card_v2', '2.0'], v3: ['chara_card_v3', '3.0'] } as const

/** Says the version, at the head of the file where it was not said before; the version number of a card already of this kind stays. */
function withSpec(root: JsonObjectNode, spec: 'v2' | 'v3'): JsonObjectNode {
  const [name, version] = specNames[spec]
  if (stringAt(root, 'spec') === name && member(root, 'spec_version') !== undefined) return root
  const named = withMember(withMember(root, 'spec', fromString(name)), 'spec_version', fromString(version))
  const isSpec = ({ key }: JsonMember): boolean => key === 'spec' || key === 'spec_version'
  return { kind: 'object', members: [...named.members.filter(isSpec), ...named.members.filter((one) => !isSpec(one))] }
}

/** Adds what the specification requires and the card lacks; all of it means the same as nothing. */
function completeData(data: JsonObjectNode, spec: 'v2' | 'v3'): JsonObjectNode {
  const lists = [listFields.alternateGreetings.key, listFields.tags.key, ...(spec === 'v3' ? [listFields.groupOnlyGreetings.key] : [])]
  const withTexts = Object.values(textFields).reduce((result, key) => fill(result, key, fromString('')), data)
  const withLists = lists.reduce((result, key) => fill(result, key, emptyArray), withTexts)
  const complete = fill(withLists, 'extensions', emptyObject)
  const book = memberObject(complete, 'character_book')
  return book === undefined ? complete : withMember(complete, 'character_book', completeCardBook(book, spec))
}

function edit(root: JsonObjectNode, before: NormalisedCard, edits: CardEdits): JsonObjectNode {
  const data = memberObject(root, 'data') ?? emptyObject
  const after = editData(data, before, edits)
  return withMember(editCopies(root, before, edits), 'data', after)
}

/** Cards of SillyTavern repeat some fields at the root: a copy that was there follows the edit. */
function editCopies(root: JsonObjectNode, before: NormalisedCard, edits: CardEdits): JsonObjectNode {
  let result = root
  const follow = (key: string, value: JsonNode): void => {
    if (member(result, key) !== undefined) result = withMember(result, key, value)
  }
  for (const [field, key] of entriesOf(textFields)) {
    const value = edits[field]
    if (value === undefined || value === before[field]) continue
    follow(key, fromString(value, key))
    if (field === 'creatorNotes') follow(oldCreatorNotes, fromString(value, oldCreatorNotes))
  }
  if (edits.tags !== undefined && !sameValue(edits.tags, before.tags)) follow('tags', fromPlain(edits.tags, 'tags'))
  return result
}

function editData(data: JsonObjectNode, before: NormalisedCard, edits: CardEdits): JsonObjectNode {
  let result = data
  const put = (key: string, value: JsonNode | undefined): void => {
    result = withMember(result, key, value)
  }
  // a name that was found at the root belongs into the data
  const name = edits.name ?? before.name
  if (name.trim() === '') missingName()
  if (name !== stringAt(data, 'name')) put('name', fromString(name, 'data.name'))
  for (const [field, key] of entriesOf(textFields)) {
    const value = edits[field]
    if (field !== 'name' && value !== undefined && value !== before[field]) put(key, fromString(value, `data.${key}`))
  }
  for (const [field, { key }] of entriesOf(listFields)) {
    const value = edits[field]
    if (value !== undefined && !sameValue(value, before[field])) put(key, fromPlain(value, `data.${key}`))
  }
  const { nickname, creatorNotesMultilingual: notes, assets, extensions } = edits
  if (nickname !== undefined && nickname !== (before.nickname ?? null)) {
    put('nickname', nickname === null ? undefined : fromString(nickname, 'data.nickname'))
  }
  if (notes !== undefined && !sameValue(notes, before.creatorNotesMultilingual ?? null)) {
    const key = 'creator_notes_multilingual'
    const map = { node: memberObject(data, key), before: before.creatorNotesMultilingual ?? {}, path: `data.${key}` }
    put(key, notes === null ? undefined : (overlay({ ...map, after: notes }) ?? emptyObject))
  }
  if (assets !== undefined && !sameValue(assets, before.assets ?? null))
    put('assets', assets === null ? undefined : assetNodes(assets, data))
  if (extensions !== undefined) {
    const node = memberObject(data, 'extensions')
    put(
      'extensions',
      overlay({ node, before: before.extensions, after: extensions, path: 'data.extensions' }) ?? member(data, 'extensions'),
    )
  }
  put('character_book', bookNode(data, before.book, edits.book))
  return result
}

/** Assets that did not change keep members that we do not know. */
function assetNodes(assets: readonly CardAsset[], data: JsonObjectNode): JsonNode {
  const old = member(data, 'assets')
  const nodes = old?.kind === 'array' ? old.items : []
  const items = assets.map((asset) => nodes.find((node) => sameValue(readAsset(node), asset)) ?? fromPlain({ ...asset }, 'data.assets'))
  return { kind: 'array', items }
}

function bookNode(data: JsonObjectNode, before: LoreBook | undefined, edited: LoreBook | null | undefined): JsonNode | undefined {
  const found = member(data, 'character_book')
  if (edited === null) return undefined
  const book = edited ?? before
  if (book === undefined) return found
  const isForeign = before !== undefined && [before, ...before.entries].some(({ origin }) => origin?.dialect === 'world_info')
  if (!isForeign && sameValue(withoutOrigins(book), withoutOrigins(before))) return found
  return writeBook(book, 'character_book', 'data.character_book')
}

const withoutOrigins = (book: LoreBook | undefined): LoreBook | undefined =>
  book && { ...book, origin: undefined, entries: book.entries.map((entry) => ({ ...entry, origin: undefined })) }

function entriesOf<Key extends string, Value>(record: Readonly<Record<Key, Value>>): [Key, Value][] {
  // Object.entries forgets the keys' type; these records are closed constants of this folder
  return Object.entries(record) as [Key, Value][]
}
