import { knownDecorators } from './decorators.ts'
import { loreRoles } from './lore-types.ts'
import type { LoreCharacterFilter, LoreEntry, LoreLogic, LorePosition, LoreRole, LoreTimeUnit } from './lore-types.ts'

/** An entry in which nothing is left open but what the book or the settings decide: there `null` means inherit. */
export interface ResolvedLoreEntry {
  keys: string[]
  /** Empty where the entry is not selective; blank keys never count. */
  secondaryKeys: string[]
  logic: LoreLogic
  content: string
  comment: string
  /** What a decorator says regardless of keys: `@@activate` beats `@@dont_activate`. */
  activation: 'by_keys' | 'always' | 'never'
  constant: boolean
  vectorized: boolean
  enabled: boolean
  order: number
  priority: number
  position: LorePosition
  depth: number
  role: LoreRole
  outlet: string
  probability: number
  useProbability: boolean
  /** 0 = none, for all three. */
  sticky: number
  cooldown: number
  delay: number
  timeUnit: LoreTimeUnit
  scanDepth: number | null
  caseSensitive: boolean | null
  wholeWords: boolean | null
  useGroupScoring: boolean | null
  excludeRecursion: boolean
  preventRecursion: boolean
  delayUntilRecursion: false | number
  groups: string[]
  groupOverride: boolean
  groupWeight: number
  ignoreBudget: boolean
  triggers: string[]
  characterFilter: LoreCharacterFilter
  matchPersonaDescription: boolean
  matchCharacterDescription: boolean
  matchCharacterPersonality: boolean
  matchCharacterDepthPrompt: boolean
  matchScenario: boolean
  matchCreatorNotes: boolean
}

const decoratedPositions: Readonly<Record<string, LorePosition>> = { before_desc: 'before_char', after_desc: 'after_char' }

/** Fills in the defaults of spec/4 and lets the decorators that we know overrule the fields. */
export function withLoreDefaults(entry: LoreEntry): ResolvedLoreEntry {
  const said = knownDecorators(entry.decorators)
  const decoratedDepth = numberOf(said.get('depth'))
  const decoratedPosition = decoratedPositions[said.get('position') ?? ''] ?? (decoratedDepth === undefined ? undefined : 'at_depth')
  return {
    keys: [...entry.keys],
    secondaryKeys: entry.selective ? entry.secondaryKeys.filter((key) => key.trim() !== '') : [],
    logic: entry.logic ?? 'and_any',
    content: entry.content,
    comment: entry.comment ?? entry.name ?? '',
    activation: said.has('activate') ? 'always' : said.has('dont_activate') ? 'never' : 'by_keys',
    constant: entry.constant,
    vectorized: entry.vectorized ?? false,
    enabled: entry.enabled,
    order: entry.order,
    priority: entry.priority ?? entry.order,
    position: decoratedPosition ?? entry.position ?? 'before_char',
    depth: decoratedDepth ?? entry.depth ?? 4,
    role: loreRoles.find((role) => role === said.get('role')) ?? entry.role ?? 'system',
    outlet: entry.outlet ?? '',
    probability: Math.min(entry.probability ?? 100, 100),
    useProbability: entry.useProbability ?? true,
    sticky: entry.sticky ?? 0,
    cooldown: entry.cooldown ?? 0,
    delay: entry.delay ?? 0,
    timeUnit: entry.timeUnit ?? 'round',
    scanDepth: numberOf(said.get('scan_depth')) ?? entry.scanDepth ?? null,
    caseSensitive: entry.caseSensitive ?? null,
    wholeWords: entry.wholeWords ?? null,
    useGroupScoring: entry.useGroupScoring ?? null,
    excludeRecursion: entry.excludeRecursion ?? false,
    preventRecursion: entry.preventRecursion ?? false,
    delayUntilRecursion: entry.delayUntilRecursion ?? false,
    groups: (entry.group ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
    groupOverride: entry.groupOverride ?? false,
    groupWeight: entry.groupWeight ?? 100,
    ignoreBudget: entry.ignoreBudget ?? false,
    triggers: [...(entry.triggers ?? [])],
    characterFilter: entry.characterFilter ?? { names: [], tags: [], exclude: false },
    matchPersonaDescription: entry.matchPersonaDescription ?? false,
    matchCharacterDescription: entry.matchCharacterDescription ?? false,
    matchCharacterPersonality: entry.matchCharacterPersonality ?? false,
    matchCharacterDepthPrompt: entry.matchCharacterDepthPrompt ?? false,
    matchScenario: entry.matchScenario ?? false,
    matchCreatorNotes: entry.matchCreatorNotes ?? false,
  }
}

/** A whole number of 0 or more, as decorators write it; anything else is no value. */
const numberOf = (value: string | undefined): number | undefined =>
  value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) : undefined
