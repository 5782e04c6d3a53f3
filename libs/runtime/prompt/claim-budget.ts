import type { EventPayload, Slug } from '#contracts'
import type { ConversationUnit } from './conversation-units.ts'
import type { PreparedEntity } from './prepare-entities.ts'
import { REQUEST_TOKENS } from './prepare-entities.ts'
import { ContextOverflowError } from './prompt-errors.ts'

/** Something that is not sent, as recorded. */
export type Dropped = EventPayload<'context.projected'>['dropped'][number]

export type Claimed = {
  entities: PreparedEntity[]
  /** The sent end of the conversation: units from here on. */
  firstUnit: number
  dropped: Dropped[]
  used: number
}

type Claim = {
  /** Tokens for everything that is sent: window − reserve − tool schemas. */
  available: number
  entities: readonly PreparedEntity[]
  examples: readonly PreparedEntity[]
  units: readonly ConversationUnit[]
  /** First mandatory unit; units.length where there is no conversation. */
  mandatoryFrom: number
}

export function droppedEntity({ entity, tokens }: Pick<PreparedEntity, 'entity' | 'tokens'>, reason: Slug): Dropped {
  return { identifier: entity.identifier, source: entity.source, source_id: entity.sourceId, tokens, reason }
}

/** The tokens that are left, and who holds a share of them. */
class Purse {
  left: number
  readonly held = new Set<PreparedEntity>()

  constructor(tokens: number) {
    this.left = tokens
  }

  take(tokens: number): boolean {
    if (tokens > this.left) return false
    this.left -= tokens
    return true
  }

  hold(prepared: readonly PreparedEntity[]): boolean {
    const missing = prepared.filter((one) => !this.held.has(one))
    const fits = this.take(missing.reduce((sum, { tokens }) => sum + tokens, 0))
    if (fits) for (const one of missing) this.held.add(one)
    return fits
  }
}

function unitName(unit: ConversationUnit, ordinal: number): string {
  if (unit.kind === 'said') return unit.said.kind
  return ordinal === 0 ? 'question' : 'conversation'
}

/** The line above each group. */
export function headingsOf(entities: readonly PreparedEntity[]): Map<string, PreparedEntity> {
  const headings = new Map<string, PreparedEntity>()
  for (const one of entities) if (one.entity.heading && one.entity.group !== undefined) headings.set(one.entity.group, one)
  return headings
}

/** The entities without which nothing is sent: those that only a release replaces, with their headings. */
export function mandatoryEntities(all: readonly PreparedEntity[]): PreparedEntity[] {
  const headings = headingsOf(all)
  const entities = all.filter(({ entity }) => entity.forbidOverride)
  const named = entities.flatMap((one) => {
    const heading = one.entity.group === undefined ? undefined : headings.get(one.entity.group)
    return heading && !entities.includes(heading) ? [heading, one] : [one]
  })
  return [...new Set(named)]
}

/** Weightiest first, ties by list position. */
export function byPriority(left: PreparedEntity, right: PreparedEntity): number {
  return right.entity.priority - left.entity.priority || left.index - right.index
}

function claimMandatory(claim: Claim): Purse {
  const units = claim.units.slice(claim.mandatoryFrom)
  const mandatory = mandatoryEntities(claim.entities)
  const needed = [
    ...mandatory.map(({ entity, tokens }) => ({ identifier: entity.identifier, tokens })),
    ...units.map((unit, ordinal) => ({ identifier: unitName(unit, ordinal), tokens: unit.tokens })),
    { identifier: 'request', tokens: REQUEST_TOKENS },
  ]
  const sum = needed.reduce((total, { tokens }) => total + tokens, 0)
  if (sum > claim.available) throw new ContextOverflowError({ available: claim.available, tokensPerEntity: needed })
  const purse = new Purse(claim.available - sum)
  for (const one of mandatory) purse.held.add(one)
  return purse
}

/** Newest to oldest, up to the first message that does not fit: that one and all older ones are left out, never one in between. */
function claimHistory(claim: Claim, purse: Purse, dropped: Dropped[]): number {
  let first = claim.mandatoryFrom
  for (; first > 0; first--) {
    const unit = claim.units[first - 1]
    if (!unit || !purse.take(unit.tokens)) break
  }
  const stopped = claim.units[first - 1]
  if (!stopped) return first
  const sourceOf = (unit: ConversationUnit): string | null => (unit.kind === 'node' ? unit.node.node_id : null)
  const record = { identifier: 'history', source: 'conversation' } as const
  // Larger than the whole window leaves: only compaction can bring what is older back into view.
  const reason = stopped.tokens > claim.available ? 'message_too_large' : 'budget'
  dropped.push({ ...record, source_id: sourceOf(stopped), tokens: stopped.tokens, reason, nodes: 1 })
  const older = claim.units.slice(0, first - 1)
  const newest = older.at(-1)
  if (newest) {
    const tokens = older.reduce((sum, unit) => sum + unit.tokens, 0)
    dropped.push({ ...record, source_id: sourceOf(newest), tokens, reason: 'older_than_dropped', nodes: older.length })
  }
  return first
}

/**
 * Shares the budget out in the order of spec/3: forbid_override and the user's last message; relative and in-chat entities by priority, ties
 * by list position; history from newest to oldest; examples. Throws ContextOverflowError where the mandatory part alone is too large.
 */
export function claimBudget(claim: Claim): Claimed {
  const headings = headingsOf(claim.entities)
  const purse = claimMandatory(claim)
  const dropped: Dropped[] = []

  for (const one of claim.entities.filter(({ entity }) => !entity.forbidOverride && !entity.heading).sort(byPriority)) {
    const heading = one.entity.group === undefined ? undefined : headings.get(one.entity.group)
    if (!purse.hold(heading ? [heading, one] : [one])) dropped.push(droppedEntity(one, 'budget'))
  }
  for (const heading of claim.entities) {
    if (heading.entity.heading && !purse.held.has(heading)) dropped.push(droppedEntity(heading, 'heading_without_members'))
  }

  const firstUnit = claimHistory(claim, purse, dropped)

  let full = false
  for (const example of claim.examples) {
    full ||= !purse.hold([example])
    if (full) dropped.push(droppedEntity(example, 'budget'))
  }

  const entities = [...claim.entities, ...claim.examples].filter((one) => purse.held.has(one))
  return { entities, firstUnit, dropped, used: claim.available - purse.left }
}
