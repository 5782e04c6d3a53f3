import type { Id, Slug, Trust } from '#contracts'
import type { RequestRole } from '../projection/layout-1.ts'
import { HISTORY_RANK } from './entity.ts'
import type { PromptEntity, PromptReadings } from './entity.ts'
import { exampleEntities } from './example-entities.ts'
import { expandMacros } from './macros.ts'
import type { MacroName, MacroValue, MacroValues } from './macros.ts'
import { applyOverrides } from './overrides.ts'
import type { Overridden } from './overrides.ts'
import { systemContractEntity } from './system-contract.ts'

/** What of a character card goes into prompts. Empty texts are absent ones; an empty prompt text overrides nothing. */
export type PersonaCard = {
  name: string
  /** Stands for {{char}} in place of the name. */
  nickname?: string
  description: string
  personality: string
  scenario: string
  exampleMessages: string
  systemPrompt: string
  postHistoryInstructions: string
  firstMessage?: string
  creatorNotes?: string
  characterVersion?: string
  /** A note that the card wants inside the chat. */
  depthPrompt?: { text: string; depth: number; role: RequestRole }
}

/** A persona version: `contentId` is the stored card. Trust: untrusted until its owner accepted it, then workspace (K1). */
export type PersonaSource = { versionId: Id; contentId: Id; trust: Trust; card: PersonaCard }

/** The user's own persona as the tree pins it; `contentId` is the stored description. */
export type UserPersonaSource = { versionId: Id | null; contentId: Id | null; trust: Trust; name: string; description: string }

/** Texts of the platform that a card may override. */
export type PromptSet = { versionId: Id; main: string; postHistory: string }

export const DEFAULT_PROMPT_SET: PromptSet = {
  versionId: '01935f00-0000-7000-8000-000000000002',
  main: "Write {{char}}'s next message to {{user}}. Stay in the scene, answer what was said, and write in the language that {{user}} uses.",
  postHistory: '',
}

/**
 * Where the usual entities stand among the relative ones, in the order that card authors know: what changes least first. World lore takes
 * the two places named for it.
 */
export const RANKS = {
  contract: 0,
  main: 100,
  worldBefore: 200,
  userPersona: 300,
  description: 400,
  personality: 500,
  scenario: 600,
  worldAfter: 700,
  examples: 800,
  postHistory: HISTORY_RANK + 100,
} as const

export type PersonaEntities = {
  entities: PromptEntity[]
  examples: PromptEntity[]
  values: MacroValues
  /** Attempts to replace what only a release replaces. */
  refused: { identifier: Slug; by: Slug }[]
}

type Sources = { persona: PersonaSource; user: UserPersonaSource; promptSet: PromptSet }

function cardEntity(
  persona: PersonaSource,
  fields: Pick<PromptEntity, 'identifier' | 'text' | 'position' | 'priority'> & { role?: RequestRole },
): PromptEntity {
  return {
    role: 'system',
    source: 'persona_anchor',
    expand: true,
    sourceId: persona.versionId,
    // A field of the card, not the stored card itself.
    contentRef: null,
    derivedFrom: [persona.contentId],
    trust: persona.trust,
    forbidOverride: false,
    reason: 'card',
    ...fields,
  }
}

function overridable({ persona, promptSet }: Sources, which: 'main' | 'post_history'): Overridden {
  const isMain = which === 'main'
  const base: PromptEntity = {
    identifier: which,
    role: 'system',
    source: 'persona_anchor',
    position: { at: 'relative', rank: isMain ? RANKS.main : RANKS.postHistory },
    text: isMain ? promptSet.main : promptSet.postHistory,
    expand: true,
    sourceId: promptSet.versionId,
    contentRef: null,
    derivedFrom: [],
    trust: 'trusted',
    priority: isMain ? 900 : 850,
    forbidOverride: false,
    reason: 'preset',
  }
  const text = isMain ? persona.card.systemPrompt : persona.card.postHistoryInstructions
  const by = isMain ? 'card.system_prompt' : 'card.post_history_instructions'
  return applyOverrides(base, [
    {
      by,
      text: text === '' ? null : text,
      sourceId: persona.versionId,
      contentRef: null,
      derivedFrom: [persona.contentId],
      trust: persona.trust,
    },
  ])
}

function userEntity(user: UserPersonaSource): PromptEntity {
  return {
    identifier: 'user_persona',
    role: 'system',
    source: 'persona_anchor',
    position: { at: 'relative', rank: RANKS.userPersona },
    text: user.description,
    expand: true,
    sourceId: user.versionId,
    contentRef: null,
    derivedFrom: user.contentId === null ? [] : [user.contentId],
    trust: user.trust,
    priority: 650,
    forbidOverride: false,
    reason: 'user_persona',
  }
}

/**
 * What macros stand for with this card. A field is expanded once here, with names, dates and draws but no other field, so that it can be
 * put into another text as it is.
 */
export function personaValues(input: Pick<Sources, 'persona' | 'user'> & { readings: PromptReadings; chatKey: string }): MacroValues {
  const { persona, user, readings, chatKey } = input
  const { card } = persona
  const own = (text: string): MacroValue => ({ text, trust: persona.trust, contentIds: [persona.contentId] })
  const users = (text: string): MacroValue => ({ text, trust: user.trust, contentIds: user.contentId === null ? [] : [user.contentId] })
  const names: MacroValues = {
    char: own(card.nickname === undefined || card.nickname.trim() === '' ? card.name : card.nickname),
    user: users(user.name),
  }
  const fields: Partial<Record<MacroName, MacroValue>> = {
    description: own(card.description),
    personality: own(card.personality),
    scenario: own(card.scenario),
    persona: users(user.description),
    mesexamples: own(card.exampleMessages),
    charprompt: own(card.systemPrompt),
    charinstruction: own(card.postHistoryInstructions),
    charversion: own(card.characterVersion ?? ''),
    creatornotes: own(card.creatorNotes ?? ''),
    greeting: own(card.firstMessage ?? ''),
  }
  const expanded = Object.entries(fields).map(([name, value]) => {
    const { text, used } = expandMacros(value.text, { scope: `value.${name}`, readings, chatKey, values: names })
    const contentIds = [...new Set([...value.contentIds, ...used.flatMap((one) => one.contentIds)])]
    return [name, { text, trust: value.trust, contentIds }] as const
  })
  return { ...names, ...Object.fromEntries(expanded) }
}

/**
 * The standing entities of a character: system contract, main prompt, user persona, description, personality, scenario, the card's note at
 * depth, post-history instructions (after the last message, as card authors expect), and its example dialogues. Absent card fields are
 * left out.
 */
export function personaEntities(input: {
  persona: PersonaSource
  user: UserPersonaSource
  readings: PromptReadings
  chatKey: string
  promptSet?: PromptSet
}): PersonaEntities {
  const { persona, user } = input
  const sources: Sources = { persona, user, promptSet: input.promptSet ?? DEFAULT_PROMPT_SET }
  const { card } = persona
  const main = overridable(sources, 'main')
  const postHistory = overridable(sources, 'post_history')
  const relative = (rank: number): PromptEntity['position'] => ({ at: 'relative', rank })
  const optional = [
    userEntity(user),
    cardEntity(persona, { identifier: 'description', text: card.description, position: relative(RANKS.description), priority: 800 }),
    cardEntity(persona, { identifier: 'personality', text: card.personality, position: relative(RANKS.personality), priority: 700 }),
    cardEntity(persona, { identifier: 'scenario', text: card.scenario, position: relative(RANKS.scenario), priority: 600 }),
  ]
  if (card.depthPrompt) {
    const { text, depth, role } = card.depthPrompt
    optional.push(
      cardEntity(persona, { identifier: 'depth_prompt', text, role, position: { at: 'in_chat', depth, order: 100 }, priority: 550 }),
    )
  }
  optional.push(postHistory.entity)
  const refused = [main, postHistory].flatMap(({ entity, refused: by }) => by.map((one) => ({ identifier: entity.identifier, by: one })))
  return {
    entities: [systemContractEntity, main.entity, ...optional.filter((entity) => entity.text.trim() !== '')],
    examples: exampleEntities(card.exampleMessages, (identifier, text) =>
      cardEntity(persona, { identifier, text, position: relative(RANKS.examples), priority: 100 }),
    ),
    values: personaValues(input),
    refused,
  }
}
