export { CardError } from './card-error.ts'
export type { CardErrorCode, Finding, FindingCode } from './card-error.ts'
export type { CardAsset, CardEdits, CardSpec, NormalisedCard } from './card-types.ts'
export { parseCard } from './parse-card.ts'
export type { ParsedCard } from './parse-card.ts'
export { exportCard } from './export-card.ts'
export type { CardExport, CardFormat } from './export-card.ts'
export { exportLorebook, parseLorebook } from './lorebook.ts'
export type { LorebookFormat, ParsedLorebook } from './lorebook.ts'
export { loreLogics, lorePositions, loreRoles, loreTimeUnits } from './lore-types.ts'
export type {
  LoreBook,
  LoreCharacterFilter,
  LoreDecorator,
  LoreDialect,
  LoreEntry,
  LoreLogic,
  LoreOrigin,
  LorePosition,
  LoreRole,
  LoreTimeUnit,
} from './lore-types.ts'
export { withLoreDefaults } from './lore-defaults.ts'
export type { ResolvedLoreEntry } from './lore-defaults.ts'
export { plainPng } from './png.ts'
export { limits as cardLimits } from './limits.ts'
export type { JsonObject, JsonValue } from './json-node.ts'
