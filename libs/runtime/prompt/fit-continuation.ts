import type { EntitySource } from '#contracts'
import { byPriority, headingsOf, mandatoryEntities } from './claim-budget.ts'
import type { Dropped } from './claim-budget.ts'
import type { ConversationUnit } from './conversation-units.ts'
import { cutOf } from './cut-message.ts'
import type { Cut } from './cut-message.ts'
import type { ContinuationMessage, CountTokens } from './entity.ts'
import { MESSAGE_TOKENS, REQUEST_TOKENS } from './prepare-entities.ts'
import type { PreparedEntity } from './prepare-entities.ts'

type Fit = {
  /** Tokens for everything that is sent: window − reserve − tool schemas. */
  available: number
  entities: readonly PreparedEntity[]
  units: readonly ConversationUnit[]
  /** First mandatory unit. */
  mandatoryFrom: number
  countTokens: CountTokens
}

type SaidUnit = Extract<ConversationUnit, { kind: 'said' }>
type Cuttable = { unit: SaidUnit; cut: Cut }

/** Who the character is and what it was asked comes before what its tools brought; recollections and lore only where they weigh more. */
const beforeResults: ReadonlySet<EntitySource> = new Set<EntitySource>([
  'system_contract',
  'persona_anchor',
  'regulation',
  'owner_instruction',
  'guidance',
  'citation',
])

/** What is left of a result that gives way to newer ones, in tokens. */
const GLIMPSE_TOKENS = 256
/** Units that one token stands for at most, in what the search for a cut tries first. */
const UNITS_PER_TOKEN = 8

/** What gives way, in this order, and how much of each stays in tokens. `share`: of the room for all. */
const passes: readonly { gives(said: ContinuationMessage): boolean; floor: number; share: number }[] = [
  { gives: ({ kind, recalled }) => kind === 'observed' && !recalled, floor: GLIMPSE_TOKENS, share: 0.5 },
  { gives: ({ kind, recalled }) => kind === 'observed' && !recalled, floor: GLIMPSE_TOKENS, share: 0 },
  { gives: ({ recalled }) => recalled === true, floor: GLIMPSE_TOKENS, share: 0 },
  { gives: ({ kind }) => kind === 'observed', floor: 0, share: 0 },
  { gives: ({ kind }) => kind === 'acted', floor: 0, share: 0 },
  { gives: ({ kind }) => kind === 'said', floor: 0, share: 0 },
]

/**
 * Makes what a run said, did and saw so far fit what the window leaves beside its fixed part (case K5): results are shown in part, one that
 * takes more than half the room first, then from the oldest on, the newest last; word for word recollections after all others (case K8);
 * and only when that is not enough, the run's own calls and words. What is cut here is whole in the record. Pure.
 */
export function fitContinuation(fit: Fit): { units: readonly ConversationUnit[]; dropped: Dropped[] } {
  const mandatory = fit.units.slice(fit.mandatoryFrom)
  const said = mandatory.filter((unit) => unit.kind === 'said')
  const free = fit.available - REQUEST_TOKENS - sum(mandatoryEntities(fit.entities)) - (sum(mandatory) - sum(said))
  const kept = keptBefore(fit.entities)
  if (sum(said) <= free - sum(kept)) return { units: fit.units, dropped: [] }
  const cuttable = said.map((unit) => ({ unit, cut: cutOf(unit.said) }))
  const room = free - heldBeside(kept, free - sum(cuttable.map((one) => cutTo(one, 0, fit.countTokens))))
  const cuts = cutToFit(cuttable, room, fit.countTokens)
  return {
    units: fit.units.map((unit) => (unit.kind === 'said' ? (cuts.get(unit) ?? unit) : unit)),
    dropped: said.flatMap((unit, index): Dropped[] => {
      const cut = cuts.get(unit)
      if (!cut) return []
      const tokens = unit.tokens - cut.tokens
      return [{ identifier: `continuation.${index + 1}`, source: 'conversation', source_id: null, tokens, reason: 'cut_to_fit' }]
    }),
  }
}

function sum(parts: readonly { tokens: number }[]): number {
  return parts.reduce((total, { tokens }) => total + tokens, 0)
}

/** Those that claim their share before results do, weightiest first: what is as weighty claims before the lightest of them anyway. */
function keptBefore(entities: readonly PreparedEntity[]): PreparedEntity[] {
  const claiming = entities.filter(({ entity }) => !entity.forbidOverride && !entity.heading).sort(byPriority)
  const kept = claiming.slice(0, claiming.findLastIndex(({ entity }) => beforeResults.has(entity.source)) + 1)
  const groups = new Set(kept.map(({ entity }) => entity.group))
  return [...[...headingsOf(entities)].flatMap(([group, heading]) => (groups.has(group) ? [heading] : [])), ...kept]
}

/** Tokens of those that find room beside the least that could be said: what could not be sent anyway keeps no room. */
function heldBeside(entities: readonly PreparedEntity[], free: number): number {
  let held = 0
  for (const { tokens } of entities) if (held + tokens <= free) held += tokens
  return held
}

function cutToFit(said: readonly Cuttable[], room: number, countTokens: CountTokens): Map<SaidUnit, SaidUnit> {
  const cuts = new Map<SaidUnit, SaidUnit>()
  let excess = sum(said.map(({ unit }) => unit)) - room
  for (const { gives, floor, share } of passes) {
    const least = Math.max(floor, Math.floor(room * share))
    for (const one of said) {
      const { unit } = one
      const shown = cuts.get(unit) ?? unit
      if (excess <= 0) return cuts
      if (!gives(unit.said) || shown.tokens <= least) continue
      const cut = cutTo(one, Math.max(least, shown.tokens - excess), countTokens)
      if (cut.tokens >= shown.tokens) continue
      excess -= shown.tokens - cut.tokens
      cuts.set(unit, cut)
    }
  }
  return cuts
}

/** The most of a message that takes so many tokens, or the least that can be shown of it. */
function cutTo({ unit, cut }: Cuttable, tokens: number, countTokens: CountTokens): SaidUnit {
  const cutAt = (units: number): SaidUnit => {
    const text = cut(units)
    const messages = unit.messages.map((message) => ({ ...message, content: text }))
    const said: ContinuationMessage = { ...unit.said, text, contentRef: null, cut: true }
    return text === unit.said.text ? unit : { ...unit, said, messages, tokens: MESSAGE_TOKENS + countTokens(text) }
  }
  let best = cutAt(0)
  let least = 0
  let most = Math.min(unit.said.text.length, tokens * UNITS_PER_TOKEN)
  while (least < most) {
    const middle = Math.ceil((least + most) / 2)
    const tried = cutAt(middle)
    if (tried.tokens > tokens) {
      most = middle - 1
      continue
    }
    best = tried
    least = middle
  }
  return best
}
