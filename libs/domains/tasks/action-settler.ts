import { toSlug } from '#contracts'
import type { Trust } from '#contracts'
import { nextEffectState } from '#kernel/effects/effect'
import type { EffectEvent, EffectState } from '#kernel/effects/effect'
import type { ActionRow, TaskRow } from '#kernel/ports/task-store'
import type { SeenObservation } from '#kernel/reducer/commands'
import { isSettledAction, nextActionState } from '#kernel/tasks/action-state'
import type { ActionEvent } from '#kernel/tasks/action-state'
import { chargeOf, refundAction, settleAction } from '#kernel/tasks/task-budget'
import type { PendingContent } from '#runtime/turn/ports'
import type { TaskDeps } from './deps.ts'
import { lockPlaced } from './placed-action.ts'
import type { Placed } from './placed-action.ts'
import { appendTaskEvents, settledEvent } from './task-stream.ts'

/** How an action goes on: what happened, what it is charged, what was seen. */
export type Settlement = {
  event: Extract<ActionEvent, 'committed' | 'failed' | 'denied' | 'cancelled' | 'lost' | 'abandoned'>
  reason: string | null
  by: 'kernel' | 'target' | 'person'
  cost: number
  estimated: boolean
  seen: SeenObservation | null
  contents: readonly PendingContent[]
}

/** Ends of actions, by conditional writes: the ledger, the action, the budget and the record say the same (K6). */
export class ActionSettler {
  readonly #deps: TaskDeps

  constructor(deps: TaskDeps) {
    this.#deps = deps
  }

  /** Ledger, action, budget and record in one transaction; a late word changes nothing (case E16). */
  async settle(placed: Placed, settlement: Settlement): Promise<void> {
    const { store, unitOfWork, contents, clock, actions } = this.#deps
    const version = (await actions.catalogue.find(placed.task.owner_id, placed.action.tool))?.contract.version ?? null
    await unitOfWork.run(async () => {
      const fresh = await lockPlaced(this.#deps, placed)
      if (!fresh || fresh.action.effect_id === null) return
      const { task, action } = fresh
      const to = nextActionState(action.state, settlement.event)
      const effect = await actions.ledger.get(fresh.action.effect_id)
      const steps = effect === null ? null : ledgerSteps(effect.state, settlement.event)
      if (to === null || effect === null || steps === null) return
      for (const content of settlement.contents) await contents.put(content)
      await this.#moveLedger(effect.id, steps, settlement)
      const wasLost = action.state === 'unknown'
      const charged = wasLost
        ? to === 'failed'
          ? 0
          : (action.charged_micros ?? 0)
        : chargeOf(task, { reserved: action.reserved_micros, cost: settlement.cost })
      const budget = wasLost
        ? refundAction(task, (action.charged_micros ?? 0) - charged)
        : settleAction(task, { reserved: action.reserved_micros, charged })
      const reason = settlement.reason === null ? null : toSlug(settlement.reason)
      await store.changeAction(action.id, action.state, {
        state: to,
        reason,
        reserved_micros: 0,
        charged_micros: charged,
        settled_at: isSettledAction(to) ? clock.now() : null,
      })
      await store.change(task.id, { spent_micros: budget.spent_micros, reserved_micros: budget.reserved_micros })
      await this.#observe(action, { status: to, reason, seen: settlement.seen, version })
      const told = {
        to,
        reason,
        by: settlement.by,
        charged_micros: charged,
        estimated: settlement.estimated,
        content_id: settlement.seen?.content_id ?? null,
      }
      await appendTaskEvents(this.#deps, task, [settledEvent(action, told, settlement.seen?.digest ?? null)], {
        actor: 'kernel',
        tag: 'settle',
      })
    })
  }

  async #moveLedger(effectId: string, steps: readonly LedgerStep[], { event, reason, seen, cost }: Settlement): Promise<void> {
    for (const step of steps) {
      const moved = await this.#deps.actions.ledger.settle(effectId, step, {
        code: reason === null ? null : toSlug(reason),
        outcomeContentId: seen?.content_id ?? null,
        costMicros: event === 'lost' || event === 'abandoned' ? null : cost,
      })
      // A person spoke between the look and this write: nothing of this transaction may stand.
      if (!moved) throw new Error(`effect ${effectId} moved on while it was being settled`)
    }
  }

  /** Ends an action that was never bound to an effect. */
  async close(
    task: TaskRow,
    action: ActionRow,
    event: Extract<ActionEvent, 'denied' | 'unaffordable' | 'cancelled'>,
    reason: string,
  ): Promise<'again'> {
    const to = nextActionState(action.state, event)
    if (to === null) return 'again'
    const at = this.#deps.clock.now()
    await this.change(action, { state: to, reason: toSlug(reason), settled_at: at, charged_micros: 0 })
    await this.#observe(action, { status: to, reason: toSlug(reason), seen: null, version: null })
    await appendTaskEvents(
      this.#deps,
      task,
      [settledEvent(action, { to, reason: toSlug(reason), by: 'kernel', charged_micros: 0, estimated: false, content_id: null })],
      { actor: 'kernel', tag: 'settle' },
    )
    return 'again'
  }

  /** Ends what is not bound yet of a cancelled attempt. Inside a unit of work that holds the task. */
  async cancelOpen(task: TaskRow, attemptId: string): Promise<void> {
    for (const action of await this.#deps.store.actions(attemptId)) {
      if (action.state === 'proposed' || action.state === 'waiting') await this.close(task, action, 'cancelled', 'cancelled')
    }
  }

  /** Moves an action on whose task is locked. */
  async change(action: ActionRow, change: Parameters<TaskDeps['store']['changeAction']>[2]): Promise<void> {
    const moved = await this.#deps.store.changeAction(action.id, action.state, change)
    if (!moved) throw new Error(`action ${action.id} moved on while its task was locked`)
  }

  async #observe(
    action: ActionRow,
    seen: { status: ActionRow['state']; reason: string | null; seen: SeenObservation | null; version: string | null },
  ): Promise<void> {
    const { store, ids, clock } = this.#deps
    await store.insertObservation({
      id: ids.next(),
      owner_id: action.owner_id,
      action_id: action.id,
      status: seen.status,
      content_id: seen.seen?.content_id ?? null,
      artifact_refs: [],
      diagnostics: seen.reason,
      environment_revision: seen.version,
      // A refusal is our own word.
      trust: seen.seen?.trust ?? ('workspace' satisfies Trust),
      at: clock.now(),
    })
  }
}

type LedgerStep = Exclude<EffectEvent, 'claimed'>

/** How the ledger follows; empty where it knows already in the same sense, null where this word is late (case E16). */
function ledgerSteps(state: EffectState, event: Settlement['event']): readonly LedgerStep[] | null {
  const tried: Record<Settlement['event'], readonly LedgerStep[]> = {
    committed: ['done', 'proved_done'],
    failed: ['failed', 'proved_failed'],
    denied: ['denied'],
    cancelled: ['denied'],
    lost: ['unknown'],
    abandoned: ['unknown'],
  }
  const step = tried[event].find((candidate) => nextEffectState(state, candidate) !== null)
  if (step !== undefined) return event === 'abandoned' ? [step, 'abandoned'] : [step]
  const agreeing: Record<Settlement['event'], readonly EffectState[]> = {
    committed: ['done', 'reconciled_done'],
    failed: ['failed', 'reconciled_failed'],
    denied: ['denied'],
    cancelled: ['denied'],
    lost: ['unknown'],
    abandoned: ['abandoned'],
  }
  return agreeing[event].includes(state) ? [] : null
}
