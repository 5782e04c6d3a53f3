import type { EventPayload, Trust } from '#contracts'
import { meetTrust } from '#contracts'
import type { RequestMessage } from '../projection/layout-1.ts'
import { CURRENT_LAYOUT, layoutOf } from '../projection/layouts.ts'
import { claimBudget, droppedEntity } from './claim-budget.ts'
import type { Dropped } from './claim-budget.ts'
import { conversationUnits, questionIndex } from './conversation-units.ts'
import type { ConversationUnit } from './conversation-units.ts'
import type { ContinuationMessage, ConversationMessage, CountTokens, PromptEntity, PromptReadings } from './entity.ts'
import { fitContinuation } from './fit-continuation.ts'
import type { MacroValue, MacroValues } from './macros.ts'
import { place } from './place.ts'
import { prepareEntities } from './prepare-entities.ts'
import { MissingUserMessageError } from './prompt-errors.ts'
import { recordSent } from './record.ts'
import type { AssembledEntity, AssembledPiece, DerivedText } from './record.ts'

export type AssembleInput = {
  entities: readonly PromptEntity[]
  /** Example dialogues, one entity each, in order; relative positions. They claim what history leaves. */
  examples?: readonly PromptEntity[]
  /** The path, oldest to newest, ending with the question; deleted nodes included, since they keep the line of ancestors whole. */
  conversation: readonly ConversationMessage[]
  /** Earlier turns of this run: said and interjected after the question. */
  continuation?: readonly ContinuationMessage[]
  /** Tokens: the model's window, what is kept for the reply, what the tool schemas take. */
  window: number
  reserve: number
  toolTokens: number
  countTokens: CountTokens
  readings: PromptReadings
  /** The tree's id: {{pick}} is stable in it. */
  chatKey: string
  /** What {{char}}, {{user}} and the card's fields stand for; the lastMessage family is filled in from the conversation. */
  values: MacroValues
  /** Kind of run, matched with an entity's triggers; default `normal`. */
  trigger?: string
}

/** A request's messages and what they were made of. `pieces` map onto `messages` one to one, in order; a path piece covers those of its nodes. */
export type Assembly = {
  layoutVersion: number
  messages: RequestMessage[]
  pieces: AssembledPiece[]
  entities: AssembledEntity[]
  /** Texts to store before the projection is recorded (decision 14). */
  derived: DerivedText[]
  dropped: Dropped[]
  tokens: EventPayload<'context.projected'>['tokens']
  /** The meet of all that is sent: the trust of what the model makes of it (K1). */
  trust: Trust
}

const saidText = (unit: ConversationUnit): string => unit.messages.map(({ content }) => content).join('\n\n')

function messageValue(unit: ConversationUnit | undefined): MacroValue {
  if (!unit) return { text: '', trust: 'trusted', contentIds: [] }
  if (unit.kind === 'node') return { text: saidText(unit), trust: unit.node.trust, contentIds: [unit.node.content_id] }
  const { contentRef, derivedFrom, trust } = unit.said
  return { text: saidText(unit), trust, contentIds: contentRef ? [contentRef.content_id] : derivedFrom }
}

function conversationValues(units: readonly ConversationUnit[]): Pick<MacroValues, 'lastmessage' | 'lastusermessage' | 'lastcharmessage'> {
  return {
    lastmessage: messageValue(units.at(-1)),
    lastusermessage: messageValue(units.findLast((unit) => unit.messages.at(-1)?.role === 'user')),
    lastcharmessage: messageValue(units.findLast((unit) => unit.messages.at(-1)?.role === 'assistant')),
  }
}

/** Without a conversation (extraction, summary, a delegated task) an entity in the user's role is what the model is asked. */
function mandatoryStart(units: readonly ConversationUnit[], entities: readonly PromptEntity[]): number {
  if (units.some(({ kind }) => kind === 'node')) return questionIndex(units)
  if (!entities.some((entity) => entity.role === 'user' && entity.forbidOverride)) throw new MissingUserMessageError()
  return 0
}

/**
 * The prompt of one model call: expand, claim the budget, order, record (spec/3). Pure: the same input gives the same output, for the
 * request, the preview and the second check alike. A partial is sent as the text that it is; only its record says so. What the run did and
 * saw is cut to fit, and stored as it is sent.
 *
 * Throws ContextOverflowError, MissingUserMessageError, NotAncestorsError, UnreferencedTextError.
 */
export function assemble(input: AssembleInput): Assembly {
  const layout = layoutOf(CURRENT_LAYOUT)
  const { conversation, continuation = [], countTokens, window, reserve, toolTokens, trigger = 'normal' } = input
  const whole = conversationUnits({ conversation, continuation, layout, countTokens })
  const mandatoryFrom = mandatoryStart(whole, input.entities)

  const macros = { readings: input.readings, chatKey: input.chatKey, values: { ...input.values, ...conversationValues(whole) } }
  const entities = prepareEntities({ entities: input.entities, macros, trigger, countTokens })
  const examples = prepareEntities({ entities: input.examples ?? [], macros, trigger, countTokens })

  const available = window - reserve - toolTokens
  const { units, dropped: leftOut } = fitContinuation({ available, entities: entities.prepared, units: whole, mandatoryFrom, countTokens })
  const claimed = claimBudget({ available, entities: entities.prepared, examples: examples.prepared, units, mandatoryFrom })
  const sent = units.slice(claimed.firstUnit)
  const record = recordSent(place(claimed.entities, sent), units[mandatoryFrom])

  const excluded = [...entities.excluded, ...examples.excluded].map(({ entity, reason }) => droppedEntity({ entity, tokens: 0 }, reason))
  return {
    layoutVersion: CURRENT_LAYOUT,
    ...record,
    dropped: [...excluded, ...leftOut, ...claimed.dropped],
    tokens: { window, reserve, tools: toolTokens, used: claimed.used, history: sent.reduce((sum, unit) => sum + unit.tokens, 0) },
    trust: meetTrust(record.entities.map(({ recorded }) => recorded.trust)),
  }
}
