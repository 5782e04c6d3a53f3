import type { JsonObject } from './json-node.ts'
import type { LoreBook } from './lore-types.ts'

export type CardSpec = 'v1' | 'v2' | 'v3'

/** A picture or sound that a card names. `uri` may be `ccdefault:` (the card's own picture), `embeded://…`, a data URL or an address. */
export interface CardAsset {
  type: string
  uri: string
  name: string
  ext: string
}

/** What a card says, whatever its version. A text that the card lacks is empty, a list too; an empty prompt text overrides nothing. */
export interface NormalisedCard {
  /** Exactly as written (case C5); never blank. */
  name: string
  /** Stands for {{char}} in place of the name. */
  nickname?: string
  description: string
  personality: string
  scenario: string
  firstMessage: string
  alternateGreetings: string[]
  groupOnlyGreetings: string[]
  exampleMessages: string
  systemPrompt: string
  postHistoryInstructions: string
  creatorNotes: string
  /** By language code. */
  creatorNotesMultilingual?: Record<string, string>
  tags: string[]
  creator: string
  characterVersion: string
  book?: LoreBook
  assets?: CardAsset[]
  /** Where the card comes from: ids or addresses. */
  source: string[]
  /** To look at; prototype keys are left out, numbers past a double are strings. Export takes what did not change from the source text. */
  extensions: JsonObject
}

/** Fields to put in place of the source's own. `null` takes an optional field away; a field that is not named stays. */
export type CardEdits = {
  [Field in keyof NormalisedCard]?: NormalisedCard[Field] | (undefined extends NormalisedCard[Field] ? null : never)
}
