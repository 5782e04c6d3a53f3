import { Report } from './card-error.ts'
import { choice, count, flag, identifier, inverseFlag, isNull, level, number, text, textList } from './codecs.ts'
import type { Codec, ReadContext } from './codecs.ts'
import { joinDecorators, splitDecorators } from './decorators.ts'
import { emptyObject, fromPlain, member, memberObject, sameValue, withMember } from './json-node.ts'
import type { JsonNode, JsonObjectNode } from './json-node.ts'
import { loreLogics, lorePositions, loreRoles, loreTimeUnits } from './lore-types.ts'
import type { LoreCharacterFilter, LoreDecorator, LoreDialect, LoreEntry, LorePosition, LoreTimeUnit } from './lore-types.ts'
import { joinPath } from './parse-json.ts'

/** A member of the entry, or of its `extensions`. */
type Path = readonly [string] | readonly ['extensions', string]

interface Place<Value> {
  path: Path
  codec: Codec<Value>
}

/** One field of an entry in both dialects. */
export interface LoreField {
  places: Readonly<Record<LoreDialect, readonly { path: Path }[]>>
  read(input: { node: JsonObjectNode; dialect: LoreDialect; into: LoreEntry; context: ReadContext }): void
  /** Writes the field into the node where it differs from `before` (what the node holds now); without `before`, wherever it is set. */
  write(input: { node: JsonObjectNode; dialect: LoreDialect; entry: LoreEntry; before: LoreEntry | undefined }): JsonObjectNode
}

const keyList = textList('comma_list')

type Places<Value> = Record<LoreDialect, readonly Place<Value>[]>

/** Reads the first place that holds something; writes all places, so that every reader of the file agrees. */
function field<Name extends keyof LoreEntry>(name: Name, places: Places<NonNullable<LoreEntry[Name]>>): LoreField {
  return {
    places,
    read({ node, dialect, into, context }) {
      const value = readPlaces(node, places[dialect], context)
      if (value !== undefined) into[name] = value
    },
    write({ node, dialect, entry, before }) {
      const value = entry[name]
      if (before === undefined ? value === undefined : sameValue(value, before[name])) return node
      return writePlaces(node, places[dialect], value ?? undefined)
    },
  }
}

function readPlaces<Value>(node: JsonObjectNode, places: readonly Place<Value>[], context: ReadContext): Value | undefined {
  for (const { path, codec } of places) {
    const [first, second] = path
    const found = second === undefined ? member(node, first) : member(member(node, first), second)
    if (found === undefined || isNull(found)) continue
    const value = codec.decode(found, { ...context, path: path.reduce(joinPath, context.path) })
    if (value !== undefined) return value
  }
  return undefined
}

function writePlaces<Value>(node: JsonObjectNode, places: readonly Place<Value>[], value: Value | undefined): JsonObjectNode {
  return places.reduce((result, { path, codec }) => {
    const written = value === undefined ? undefined : codec.encode(value)
    return writeAt(result, path, written)
  }, node)
}

function writeAt(node: JsonObjectNode, [first, second]: Path, value: JsonNode | undefined): JsonObjectNode {
  if (second === undefined) return withMember(node, first, value)
  const inner = memberObject(node, first)
  if (inner === undefined && value === undefined) return node
  return withMember(node, first, withMember(inner ?? emptyObject, second, value))
}

/** A field that cards keep as a member of the entry. */
function direct<Value>(codec: Codec<Value>, card: string, world: string): Places<Value> {
  return { character_book: [{ path: [card], codec }], world_info: [{ path: [world], codec }] }
}

/** A field that cards keep in the entry's `extensions`, as SillyTavern writes them. */
function extension<Value>(codec: Codec<Value>, card: string, world: string): Places<Value> {
  return { character_book: [{ path: ['extensions', card], codec }], world_info: [{ path: [world], codec }] }
}

const characterFilter: Codec<LoreCharacterFilter> = {
  decode(node, context) {
    if (node.kind !== 'object') {
      context.report.add(context.path, 'wrong_type', 'Expected an object with names and tags: kept in the file, not used')
      return undefined
    }
    const list = (key: string): string[] => readPlaces(node, [{ path: [key], codec: keyList }], context) ?? []
    return { names: list('names'), tags: list('tags'), exclude: readPlaces(node, [{ path: ['isExclude'], codec: flag }], context) ?? false }
  },
  encode: ({ names, tags, exclude }) => fromPlain({ isExclude: exclude, names, tags }),
}

/** Cards can only say before or after in the specification's own field; the exact place stands in `extensions.position`. */
const roughPosition: Codec<LorePosition> = {
  decode: (node, context) => choice(lorePositions).decode(node, context),
  encode: (value) => fromPlain(value === 'before_char' ? value : 'after_char'),
}

/** Content and its decorator lines are one text in the file. */
const contentField: LoreField = (() => {
  const places = direct(text, 'content', 'content')
  const parts = ({ content, decorators }: LoreEntry): { content: string; decorators: LoreDecorator[] } => ({ content, decorators })
  return {
    places,
    read({ node, dialect, into, context }) {
      const value = readPlaces(node, places[dialect], context)
      if (value !== undefined) Object.assign(into, splitDecorators(value))
    },
    write({ node, dialect, entry, before }) {
      if (before !== undefined && sameValue(parts(entry), parts(before))) return node
      return writePlaces(node, places[dialect], joinDecorators(entry))
    },
  }
})()

const isTimed = ({ sticky = 0, cooldown = 0, delay = 0 }: LoreEntry): boolean => sticky > 0 || cooldown > 0 || delay > 0

/**
 * Files of others count messages, so that needs no saying; an entry of ours that says nothing counts rounds. Written last: what a reader
 * would take for granted depends on the fields that are counted.
 */
const timeUnitField: LoreField = (() => {
  const codec = choice(loreTimeUnits, true)
  const path = ['extensions', 'lingtai_time_unit'] as const
  const places: Places<LoreTimeUnit> = { character_book: [{ path, codec }], world_info: [{ path, codec }] }
  const unitOf = (node: JsonObjectNode, dialect: LoreDialect, entry: LoreEntry, context: ReadContext): LoreTimeUnit | undefined =>
    readPlaces(node, places[dialect], context) ?? (isTimed(entry) ? 'message' : undefined)
  return {
    places,
    read({ node, dialect, into, context }) {
      const value = unitOf(node, dialect, into, context)
      if (value !== undefined) into.timeUnit = value
    },
    write({ node, dialect, entry }) {
      const value = entry.timeUnit ?? (isTimed(entry) ? 'round' : undefined)
      const found = unitOf(node, dialect, entry, { path: '', report: new Report() })
      return value === found ? node : writePlaces(node, places[dialect], value)
    },
  }
})()

/** All fields of an entry, in the order in which a new entry is written. */
export const loreFields: readonly LoreField[] = [
  field('id', direct(identifier, 'id', 'uid')),
  field('keys', direct(keyList, 'keys', 'key')),
  field('secondaryKeys', direct(keyList, 'secondary_keys', 'keysecondary')),
  field('comment', direct(text, 'comment', 'comment')),
  field('name', direct(text, 'name', 'name')),
  contentField,
  field('constant', direct(flag, 'constant', 'constant')),
  field('selective', direct(flag, 'selective', 'selective')),
  field('order', direct(number, 'insertion_order', 'order')),
  field('priority', direct(number, 'priority', 'priority')),
  field('enabled', {
    character_book: [{ path: ['enabled'], codec: flag }],
    world_info: [{ path: ['disable'], codec: inverseFlag }],
  }),
  field('position', {
    character_book: [
      { path: ['extensions', 'position'], codec: choice(lorePositions) },
      { path: ['position'], codec: roughPosition },
    ],
    world_info: [{ path: ['position'], codec: choice(lorePositions) }],
  }),
  field('caseSensitive', {
    character_book: [
      { path: ['extensions', 'case_sensitive'], codec: flag },
      { path: ['case_sensitive'], codec: flag },
    ],
    world_info: [{ path: ['caseSensitive'], codec: flag }],
  }),
  field('logic', extension(choice(loreLogics), 'selectiveLogic', 'selectiveLogic')),
  field('vectorized', extension(flag, 'vectorized', 'vectorized')),
  field('depth', extension(count, 'depth', 'depth')),
  field('role', extension(choice(loreRoles), 'role', 'role')),
  field('outlet', extension(text, 'outlet_name', 'outletName')),
  field('probability', extension(count, 'probability', 'probability')),
  field('useProbability', extension(flag, 'useProbability', 'useProbability')),
  field('sticky', extension(count, 'sticky', 'sticky')),
  field('cooldown', extension(count, 'cooldown', 'cooldown')),
  field('delay', extension(count, 'delay', 'delay')),
  field('scanDepth', extension(count, 'scan_depth', 'scanDepth')),
  field('wholeWords', extension(flag, 'match_whole_words', 'matchWholeWords')),
  field('excludeRecursion', extension(flag, 'exclude_recursion', 'excludeRecursion')),
  field('preventRecursion', extension(flag, 'prevent_recursion', 'preventRecursion')),
  field('delayUntilRecursion', extension(level, 'delay_until_recursion', 'delayUntilRecursion')),
  field('group', extension(text, 'group', 'group')),
  field('groupOverride', extension(flag, 'group_override', 'groupOverride')),
  field('groupWeight', extension(count, 'group_weight', 'groupWeight')),
  field('useGroupScoring', extension(flag, 'use_group_scoring', 'useGroupScoring')),
  field('ignoreBudget', extension(flag, 'ignore_budget', 'ignoreBudget')),
  field('triggers', extension(keyList, 'triggers', 'triggers')),
  field('characterFilter', extension(characterFilter, 'character_filter', 'characterFilter')),
  field('matchPersonaDescription', extension(flag, 'match_persona_description', 'matchPersonaDescription')),
  field('matchCharacterDescription', extension(flag, 'match_character_description', 'matchCharacterDescription')),
  field('matchCharacterPersonality', extension(flag, 'match_character_personality', 'matchCharacterPersonality')),
  field('matchCharacterDepthPrompt', extension(flag, 'match_character_depth_prompt', 'matchCharacterDepthPrompt')),
  field('matchScenario', extension(flag, 'match_scenario', 'matchScenario')),
  field('matchCreatorNotes', extension(flag, 'match_creator_notes', 'matchCreatorNotes')),
  field('displayIndex', extension(number, 'display_index', 'displayIndex')),
  field('automationId', extension(text, 'automation_id', 'automationId')),
  timeUnitField,
]

/** The names a dialect gives to known fields: as members of the entry, and inside its `extensions`. */
export const knownNames: Readonly<Record<LoreDialect, { members: ReadonlySet<string>; extensions: ReadonlySet<string> }>> = {
  character_book: namesOf('character_book'),
  world_info: namesOf('world_info'),
}

function namesOf(dialect: LoreDialect): { members: ReadonlySet<string>; extensions: ReadonlySet<string> } {
  const paths = loreFields.flatMap(({ places }) => places[dialect].map(({ path }) => path))
  return {
    members: new Set(['extensions', ...paths.filter((path) => path.length === 1).map(([name]) => name)]),
    extensions: new Set(paths.flatMap(([, inner]) => (inner === undefined ? [] : [inner]))),
  }
}
