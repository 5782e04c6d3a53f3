import { atMost, isNull, text, textList } from './codecs.ts'
import type { Codec, ReadContext } from './codecs.ts'
import type { CardAsset, NormalisedCard } from './card-types.ts'
import { fromPlain, isPrototypeKey, member, memberObject, toPlainObject } from './json-node.ts'
import type { JsonNode, JsonObjectNode } from './json-node.ts'
import { limits } from './limits.ts'
import { hasEntries, readBook } from './lore-book.ts'
import { joinPath } from './parse-json.ts'

/** Texts every card has, by their name in the file. */
export const textFields = {
  name: 'name',
  description: 'description',
  personality: 'personality',
  scenario: 'scenario',
  firstMessage: 'first_mes',
  exampleMessages: 'mes_example',
  creatorNotes: 'creator_notes',
  systemPrompt: 'system_prompt',
  postHistoryInstructions: 'post_history_instructions',
  creator: 'creator',
  characterVersion: 'character_version',
} as const satisfies Partial<Record<keyof NormalisedCard, string>>

const whole = textList('only_item')

/** Lists of texts, by their name in the file; a lone text is one greeting, but tags in one text are a comma list. */
export const listFields = {
  alternateGreetings: { key: 'alternate_greetings', codec: whole },
  groupOnlyGreetings: { key: 'group_only_greetings', codec: whole },
  tags: { key: 'tags', codec: textList('comma_list') },
  source: { key: 'source', codec: whole },
} as const satisfies Partial<Record<keyof NormalisedCard, { key: string; codec: Codec<string[]> }>>

/** SillyTavern's older name for the creator's notes, at the root of a card. */
export const oldCreatorNotes = 'creatorcomment'

/** Everything that V2 and V3 keep in `data`; a V1 card has it at the root, or lacks it. */
export const dataKeys: ReadonlySet<string> = new Set([
  ...Object.values(textFields),
  ...Object.values(listFields).map(({ key }) => key),
  'nickname',
  'creator_notes_multilingual',
  'assets',
  'character_book',
  'extensions',
  'creation_date',
  'modification_date',
])

/** Reads the object that holds a card's fields: `data`, or the root of a V1 card. */
export function readCard(node: JsonObjectNode, context: ReadContext): NormalisedCard {
  const at = <Value>(key: string, codec: Codec<Value>): Value | undefined => {
    const found = member(node, key)
    if (found === undefined || isNull(found)) return undefined
    return codec.decode(found, { ...context, path: joinPath(context.path, key) })
  }
  const textAt = (key: string): string => at(key, text) ?? ''
  const listAt = ({ key, codec }: { key: string; codec: Codec<string[]> }): string[] => at(key, codec) ?? []
  const card: NormalisedCard = {
    name: textAt(textFields.name),
    description: textAt(textFields.description),
    personality: textAt(textFields.personality),
    scenario: textAt(textFields.scenario),
    firstMessage: textAt(textFields.firstMessage),
    alternateGreetings: listAt(listFields.alternateGreetings),
    groupOnlyGreetings: listAt(listFields.groupOnlyGreetings),
    exampleMessages: textAt(textFields.exampleMessages),
    systemPrompt: textAt(textFields.systemPrompt),
    postHistoryInstructions: textAt(textFields.postHistoryInstructions),
    creatorNotes: textAt(textFields.creatorNotes),
    tags: listAt(listFields.tags),
    creator: textAt(textFields.creator),
    characterVersion: textAt(textFields.characterVersion),
    source: listAt(listFields.source),
    extensions: at('extensions', plainObject) ?? {},
  }
  const nickname = at('nickname', text)
  if (nickname !== undefined) card.nickname = nickname
  const notes = at('creator_notes_multilingual', textMap)
  if (notes !== undefined) card.creatorNotesMultilingual = notes
  const assets = at('assets', assetList)
  if (assets !== undefined) card.assets = assets
  const book = memberObject(node, 'character_book')
  if (book !== undefined) card.book = readBook(book, { ...context, path: joinPath(context.path, 'character_book') })
  else at('character_book', plainObject)
  if (book !== undefined && hasEntries(book) && card.book?.origin?.dialect === 'world_info') {
    context.report.add(
      joinPath(context.path, 'character_book'),
      'world_info_in_card',
      'The book is spelled as a world info file; it was read as one',
    )
  }
  return card
}

const plainObject: Codec<NormalisedCard['extensions']> = {
  decode(node, { path, report }) {
    if (node.kind === 'object') return toPlainObject(node)
    report.add(path, 'wrong_type', `Expected an object, found ${node.kind}: kept in the file, not used`)
    return undefined
  },
  encode: fromPlain,
}

const textMap: Codec<Record<string, string>> = {
  decode(node, context) {
    if (node.kind !== 'object') {
      context.report.add(context.path, 'wrong_type', 'Expected an object of texts: kept in the file, not used')
      return undefined
    }
    const entries = atMost(node.members, limits.listItems, context.path).flatMap(({ key, value }): [string, string][] => {
      if (isPrototypeKey(key)) return []
      const found = text.decode(value, { ...context, path: joinPath(context.path, key) })
      return found === undefined ? [] : [[key, found]]
    })
    return Object.fromEntries(entries)
  },
  encode: fromPlain,
}

const assetList: Codec<CardAsset[]> = {
  decode(node, context) {
    if (node.kind !== 'array') {
      context.report.add(context.path, 'wrong_type', 'Expected a list of assets: kept in the file, not used')
      return undefined
    }
    return atMost(node.items, limits.listItems, context.path).flatMap((item, index) => {
      const asset = readAsset(item)
      if (asset === undefined) {
        context.report.add(joinPath(context.path, index), 'asset_unreadable', 'An asset needs a type and a uri: kept in the file, not used')
        return []
      }
      return [asset]
    })
  },
  encode: (assets) => fromPlain(assets.map((asset) => ({ ...asset }))),
}

/** One item of `assets`; undefined where it says neither what it is nor where. */
export function readAsset(node: JsonNode): CardAsset | undefined {
  const part = (key: string): string | undefined => {
    const found = member(node, key)
    return found?.kind === 'string' ? found.value : undefined
  }
  const [type, uri] = [part('type'), part('uri')]
  if (type === undefined || uri === undefined) return undefined
  return { type, uri, name: part('name') ?? '', ext: part('ext') ?? 'unknown' }
}
