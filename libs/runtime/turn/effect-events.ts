import type { EventPayload, EventType } from '#contracts'
import { hasHappened } from '#kernel/effects/effect'
import type { EffectEvent, EffectState } from '#kernel/effects/effect'
import type { ApprovalStore } from '#kernel/ports/approval-store'
import type { EffectLedger } from '#kernel/ports/effect-ledger'
import type { RunRow } from '#kernel/ports/run-store'
import type { RunEvent } from '#kernel/reducer/actions'

const effectEvents: ReadonlySet<EventType> = new Set<EventType>([
  'effect.intent',
  'tool.done',
  'effect.failed',
  'effect.unknown',
  'effect.reconciled',
])

/** Whether events tell of effects, so that the ledger moves with them (M9). */
export function tellsOfEffects(events: readonly RunEvent[]): boolean {
  return events.some(({ type }) => effectEvents.has(type))
}

/** The ledger knows an effect in another state than the run that recorded it: nothing of this transaction may stand. */
export class EffectStateError extends Error {
  constructor(effectId: string, state: EffectState | undefined, event: string) {
    super(`effect ${effectId} is ${state ?? 'not there'}; ${event} does not follow`)
    this.name = 'EffectStateError'
  }
}

/** Moves the ledger as the events of a run tell, inside the unit of work that writes them. Throws EffectStateError. */
export async function applyEffectEvents(
  run: RunRow,
  events: readonly RunEvent[],
  deps: { ledger: EffectLedger; approvals: ApprovalStore; now: Date },
): Promise<void> {
  for (const event of events) await apply(run, event, { ...deps, charged: (effectId, type) => chargeOf(events, effectId, type) })
}

/** What the same events reserve for an effect, or settle it at; null where they say nothing of it. Micro-units. */
function chargeOf(events: readonly RunEvent[], effectId: string, type: 'budget.reserved' | 'budget.settled'): number | null {
  for (const event of events) {
    if (event.type === type && event.payload.effect_id === effectId) return event.payload.cost_micros ?? null
  }
  return null
}

type EffectDeps = {
  ledger: EffectLedger
  approvals: ApprovalStore
  now: Date
  charged(effectId: string, type: 'budget.reserved' | 'budget.settled'): number | null
}

async function apply(run: RunRow, event: RunEvent, deps: EffectDeps): Promise<void> {
  const { ledger, charged } = deps
  switch (event.type) {
    case 'effect.intent':
      return bind(run, event.payload, deps)
    case 'tool.done': {
      const { effect_id, content_id } = event.payload
      return settle(ledger, effect_id, ['done', 'proved_done'], {
        code: null,
        outcomeContentId: content_id,
        costMicros: charged(effect_id, 'budget.settled'),
      })
    }
    case 'effect.failed': {
      const { effect_id, code } = event.payload
      return settle(ledger, effect_id, ['failed'], { code, outcomeContentId: null, costMicros: 0 })
    }
    case 'effect.unknown': {
      const { effect_id, code } = event.payload
      return markUnknown(ledger, effect_id, { code, costMicros: charged(effect_id, 'budget.settled') })
    }
    case 'effect.reconciled': {
      const { effect_id, as } = event.payload
      const by: Record<typeof as, EffectEvent> = { done: 'proved_done', failed: 'proved_failed', abandoned: 'abandoned' }
      return settle(ledger, effect_id, [by[as]], { code: null, outcomeContentId: null, costMicros: null }, as === 'done')
    }
    default:
      return
  }
}

async function bind(run: RunRow, intent: EventPayload<'effect.intent'>, { ledger, approvals, now, charged }: EffectDeps): Promise<void> {
  await ledger.bind({
    id: intent.effect_id,
    owner_id: run.owner_id,
    character_id: run.character_id,
    run_id: run.id,
    action_id: intent.action_id,
    tool: intent.tool,
    tool_version: intent.tool_version ?? null,
    capability: intent.capability,
    consequence: intent.consequence,
    constraints: intent.constraints,
    resource: intent.tool,
    idempotency_key: intent.action_id,
    arguments_content_id: intent.content_id,
    arguments_hash: intent.arguments_hash,
    reserved_micros: charged(intent.effect_id, 'budget.reserved') ?? 0,
  })
  if (intent.approval_id === null) return
  const used = await approvals.move(intent.approval_id, { from: 'approved', to: 'used', by: null, at: now })
  // Revoked between the verdict and this write: the yes is no longer there to be used.
  if (!used) throw new EffectStateError(intent.effect_id, undefined, 'an approval that is not there')
}

/** An intent that nobody sent before its owner was gone has not happened: no unknown is made of it. */
async function markUnknown(
  ledger: EffectLedger,
  effectId: string,
  { code, costMicros }: { code: string; costMicros: number | null },
): Promise<void> {
  const effect = await ledger.get(effectId)
  if (effect?.state === 'intent') {
    await settle(ledger, effectId, ['denied'], { code, outcomeContentId: null, costMicros: 0 })
    return
  }
  await settle(ledger, effectId, ['unknown'], { code, outcomeContentId: null, costMicros })
}

async function settle(
  ledger: EffectLedger,
  effectId: string,
  events: readonly EffectEvent[],
  settlement: Parameters<EffectLedger['settle']>[2],
  happened?: boolean,
): Promise<void> {
  for (const event of events) {
    if (event !== 'claimed' && (await ledger.settle(effectId, event, settlement))) return
  }
  const effect = await ledger.get(effectId)
  // Settled before by a person, in the same sense: the run only records what it learned of it.
  if (happened !== undefined && effect && effect.settled_at !== null && hasHappened(effect.state) === happened) return
  throw new EffectStateError(effectId, effect?.state, events.join(' or '))
}
