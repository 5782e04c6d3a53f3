import type { Id, Slug, Trust } from '#contracts'
import { meetTrust } from '#contracts'
import { EXPANDABLE_SOURCES } from './entity.ts'
import type { ContentRef, CountTokens, PromptEntity } from './entity.ts'
import { expandMacros } from './macros.ts'
import type { MacroContext } from './macros.ts'

/** Tokens that each message takes beside its text (role and delimiters), stated high. */
export const MESSAGE_TOKENS = 4

/** Tokens that a request takes once, for the reply's own opening. */
export const REQUEST_TOKENS = 3

/** An entity as it would be sent. `tokens` include the message's envelope. */
export type PreparedEntity = {
  entity: PromptEntity
  /** Position in the caller's list: breaks ties. */
  index: number
  text: string
  contentRef: ContentRef | null
  derivedFrom: readonly Id[]
  trust: Trust
  tokens: number
}

/** An entity that is left out before any budget is asked. */
export type Excluded = { entity: PromptEntity; reason: Slug }

const blank = (text: string): boolean => text.trim() === ''

function render(entity: PromptEntity, macros: Omit<MacroContext, 'scope'>): Omit<PreparedEntity, 'index' | 'tokens'> {
  const asItIs = { entity, text: entity.text, contentRef: entity.contentRef, derivedFrom: entity.derivedFrom, trust: entity.trust }
  if (!entity.expand || !EXPANDABLE_SOURCES.has(entity.source)) return asItIs
  const { text, used } = expandMacros(entity.text, { ...macros, scope: entity.identifier })
  if (text === entity.text) return asItIs
  const own = entity.contentRef ? [entity.contentRef.content_id] : []
  return {
    entity,
    text,
    contentRef: null,
    derivedFrom: [...new Set([...own, ...entity.derivedFrom, ...used.flatMap((value) => value.contentIds)])],
    // What a macro brings in lowers the trust of what it is put in: lowest wins, never laundered (K1).
    trust: meetTrust([entity.trust, ...used.map((value) => value.trust)]),
  }
}

/** Expands, sifts out what is not meant for this run or has no text, and counts the rest. */
export function prepareEntities(input: {
  entities: readonly PromptEntity[]
  macros: Omit<MacroContext, 'scope'>
  trigger: string
  countTokens: CountTokens
}): { prepared: PreparedEntity[]; excluded: Excluded[] } {
  const prepared: PreparedEntity[] = []
  const excluded: Excluded[] = []
  for (const [index, entity] of input.entities.entries()) {
    if (entity.triggers && entity.triggers.length > 0 && !entity.triggers.includes(input.trigger)) {
      excluded.push({ entity, reason: 'trigger' })
      continue
    }
    const rendered = render(entity, input.macros)
    if (blank(rendered.text)) {
      excluded.push({ entity, reason: entity.overriddenBy === undefined ? 'empty' : 'removed_by_override' })
      continue
    }
    prepared.push({ ...rendered, index, tokens: MESSAGE_TOKENS + input.countTokens(rendered.text, rendered.contentRef?.digest) })
  }
  return { prepared, excluded }
}
