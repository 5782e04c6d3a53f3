import type { JsonObject } from './json-node.ts'

/** How secondary keys join the primary ones; the position in this list is SillyTavern's number. */
export const loreLogics = ['and_any', 'not_all', 'not_any', 'and_all'] as const
export type LoreLogic = (typeof loreLogics)[number]

/** Where an entry goes; the position in this list is SillyTavern's number. */
export const lorePositions = [
  'before_char',
  'after_char',
  'note_top',
  'note_bottom',
  'at_depth',
  'before_examples',
  'after_examples',
  'outlet',
] as const
export type LorePosition = (typeof lorePositions)[number]

/** Role of an entry at a depth; the position in this list is SillyTavern's number. */
export const loreRoles = ['system', 'user', 'assistant'] as const
export type LoreRole = (typeof loreRoles)[number]

/** What sticky, cooldown and delay count: rounds on the path, or messages as SillyTavern does (spec/4, timed effects). */
export const loreTimeUnits = ['round', 'message'] as const
export type LoreTimeUnit = (typeof loreTimeUnits)[number]

/** Which characters an entry is for, or with `exclude` not for. */
export interface LoreCharacterFilter {
  names: string[]
  tags: string[]
  exclude: boolean
}

/** A line `@@name value` at the head of an entry's content; fallbacks (`@@@name value`) stand in where the name is not known. */
export interface LoreDecorator {
  name: string
  value: string
  fallbacks: { name: string; value: string }[]
}

/** `character_book`: the spelling inside cards and in `lorebook_v3` files. `world_info`: SillyTavern's own files. */
export type LoreDialect = 'character_book' | 'world_info'

/** The JSON text an entry or book was read from; export starts from it, so that what we do not know survives (case C4). */
export interface LoreOrigin {
  dialect: LoreDialect
  text: string
  /** Of a book only: what stood around it in a `lorebook_v3` file. */
  wrapper?: string
}

/**
 * One entry as spec/4 "Entry fields" has it. An optional field that is absent was absent (or null) in the file and means "inherit, or
 * the default": never 0, never off (cases C2, C3). `withLoreDefaults` fills in the defaults.
 */
export interface LoreEntry {
  id?: number | string
  name?: string
  comment?: string
  /** Kept as written, blank ones too: a blank key matches nothing and is reported (case L4). */
  keys: string[]
  secondaryKeys: string[]
  /** Off: the secondary keys do not count. */
  selective: boolean
  logic?: LoreLogic
  /** Text without its decorator lines. */
  content: string
  decorators: LoreDecorator[]
  enabled: boolean
  constant: boolean
  vectorized?: boolean
  /** Insertion order, 100 where the file has none. */
  order: number
  /** What goes first when the budget is short, where the file tells it apart from `order` (higher stays). */
  priority?: number
  position?: LorePosition
  depth?: number
  role?: LoreRole
  outlet?: string
  /** Percent, 0–100. */
  probability?: number
  useProbability?: boolean
  sticky?: number
  cooldown?: number
  delay?: number
  timeUnit?: LoreTimeUnit
  scanDepth?: number
  caseSensitive?: boolean
  wholeWords?: boolean
  excludeRecursion?: boolean
  preventRecursion?: boolean
  /** false, or the level at which it opens (1 for a plain `true`). */
  delayUntilRecursion?: false | number
  /** Comma list. */
  group?: string
  groupOverride?: boolean
  groupWeight?: number
  useGroupScoring?: boolean
  ignoreBudget?: boolean
  triggers?: string[]
  characterFilter?: LoreCharacterFilter
  matchPersonaDescription?: boolean
  matchCharacterDescription?: boolean
  matchCharacterPersonality?: boolean
  matchCharacterDepthPrompt?: boolean
  matchScenario?: boolean
  matchCreatorNotes?: boolean
  /** Kept for SillyTavern; means nothing here. */
  displayIndex?: number
  automationId?: string
  /** Unknown members of the entry's `extensions`, to look at: export takes them from `origin`. */
  extensions: JsonObject
  origin?: LoreOrigin
}

/** A lorebook. Absent settings inherit (case C3). */
export interface LoreBook {
  name?: string
  description?: string
  scanDepth?: number
  /** Tokens. */
  tokenBudget?: number
  recursive?: boolean
  entries: LoreEntry[]
  extensions: JsonObject
  /** The book's own text, its entries left out. */
  origin?: LoreOrigin
}
