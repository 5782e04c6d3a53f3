import type { EffectRow } from '#kernel/ports/effect-ledger'
import { isSettledAction } from '#kernel/tasks/action-state'
import { isCancelledTask } from '#kernel/tasks/task-state'
import type { RunActions } from '#runtime/turn/run-actions'
import type { ActionSettler, Settlement } from './action-settler.ts'
import type { TaskDeps } from './deps.ts'
import { actsOf, callOf, placeAction } from './placed-action.ts'
import type { Placed } from './placed-action.ts'

/** How long a submitter waits for somebody else who has the same action in hand, and how often it looks. Milliseconds. */
const WAIT_MS = 5_000
const LOOK_EVERY_MS = 40

/** Actions whose intent is bound: sent once through the broker, waited for, read back where whoever sent them is gone. */
export class ActionSender {
  readonly #deps: TaskDeps
  readonly #settler: ActionSettler
  readonly #inHand = new Map<string, { acts: RunActions; attemptId: string; done: Promise<void> }>()

  constructor(deps: TaskDeps, settler: ActionSettler) {
    this.#deps = deps
    this.#settler = settler
  }

  /** Asks what is out to stop; what becomes of it is settled as ever. */
  abort(attemptId: string): void {
    for (const held of this.#inHand.values()) if (held.attemptId === attemptId) held.acts.abort()
  }

  async #send(placed: Placed): Promise<void> {
    const { action } = placed
    if (action.state !== 'dispatched' || action.effect_id === null) return
    const effectId = action.effect_id
    const known = this.#inHand.get(effectId)
    if (known) return known.done
    const acts = actsOf(this.#deps, placed)
    const done = this.#dispatch(placed, acts, effectId).finally(() => this.#inHand.delete(effectId))
    this.#inHand.set(effectId, { acts, attemptId: action.attempt_id, done })
    return done
  }

  /** Whatever happens between the reservation and its settlement, the ledger says what is owed (K6, case E18). */
  async #dispatch(placed: Placed, acts: RunActions, effectId: string): Promise<void> {
    const { action } = placed
    let isSettled = false
    try {
      const effect = await this.#deps.actions.ledger.get(effectId)
      const { command, contents } = await acts.dispatch({
        call: callOf(action, effect?.tool_version ?? null),
        effectId,
        constraints: effect?.constraints ?? [],
        contextTrust: action.trust,
      })
      if (command.outcome === 'pending') {
        // Nothing was sent by us: whoever has it in hand settles it, or a later look does.
        isSettled = true
        return
      }
      await this.#settler.settle(placed, {
        event: eventOf(command.outcome, { code: command.code, consequence: effect?.consequence ?? 'lasting' }),
        reason: command.outcome === 'done' ? null : (command.code ?? 'other'),
        by: 'target',
        // Where the target names no cost of its own, all that was reserved is owed.
        cost: command.cost_estimated ? action.reserved_micros : command.cost_micros,
        estimated: command.cost_estimated,
        seen: command.observation,
        contents,
      })
      isSettled = true
    } finally {
      if (!isSettled) await this.#settleFromLedger(placed, effectId)
    }
  }

  /** The dispatch ended without a settlement: what the ledger shows counts. Never hides why. */
  async #settleFromLedger(placed: Placed, effectId: string): Promise<void> {
    try {
      const effect = await this.#deps.actions.ledger.get(effectId)
      if (effect && effect.state !== 'intent') await this.#readBack(placed, effect)
    } catch (error) {
      this.#deps.report(error, effectId)
    }
  }

  /** An action that is out, or was lost: waited for, read back, or sent where it never was (`003…` §3; cases E6–E10). */
  async follow(placed: Placed): Promise<void> {
    const { actions, store, scheduler, clock } = this.#deps
    const effectId = placed.action.effect_id
    if (effectId === null) return
    const until = clock.now().getTime() + WAIT_MS
    let hasTried = false
    for (;;) {
      const held = this.#inHand.get(effectId)
      if (held) return held.done
      const [effect, isElsewhere, now] = await Promise.all([
        actions.ledger.get(effectId),
        store.isInHand(effectId, this.#deps.process),
        placeAction(this.#deps, placed.action.id),
      ])
      if (!effect || !now || isSettledAction(now.action.state)) return
      const isOut = effect.state === 'intent' || effect.state === 'executing'
      if (isOut && isElsewhere) {
        if (clock.now().getTime() >= until) return
        await new Promise<void>((resolve) => void scheduler.after(LOOK_EVERY_MS, resolve))
        continue
      }
      if (effect.state !== 'intent') return this.#readBack(now, effect)
      if (isCancelledTask(now.task.status)) return this.#takeBack(now)
      // Tried, and still nobody's: the target cannot be asked now. It is tried again later.
      if (hasTried) return
      hasTried = true
      await this.#send(now)
    }
  }

  /** Never sent: it is not sent any more. */
  #takeBack(placed: Placed): Promise<void> {
    return this.#settler.settle(placed, {
      event: 'cancelled',
      reason: 'cancelled',
      by: 'kernel',
      cost: 0,
      estimated: false,
      seen: null,
      contents: [],
    })
  }

  /** Sent before, by somebody who is gone: only proof or a person says what became of it, and absence is no proof. */
  async #readBack(placed: Placed, effect: EffectRow): Promise<void> {
    const { action } = placed
    const { command, contents } = await actsOf(this.#deps, placed).reconcile(callOf(action, effect.tool_version), effect.id)
    const isDone = command.as === 'done'
    if (isDone || command.as === 'failed' || hasEnded(effect)) {
      await this.#settler.settle(placed, {
        event: isDone ? 'committed' : effect.state === 'denied' ? 'denied' : 'failed',
        reason: isDone ? null : (effect.code ?? 'reconciled_failed'),
        by: command.by,
        cost: isDone ? (effect.cost_micros ?? action.reserved_micros) : 0,
        estimated: isDone && effect.cost_micros === null,
        seen: command.observation,
        contents,
      })
      return
    }
    if (action.state === 'unknown') return
    await this.#settler.settle(placed, {
      event: effect.consequence === 'none' ? 'abandoned' : 'lost',
      reason: effect.code ?? 'owner_lost',
      by: 'kernel',
      cost: action.reserved_micros,
      estimated: true,
      seen: null,
      contents: [],
    })
  }
}

function eventOf(
  outcome: 'done' | 'failed' | 'denied' | 'unknown',
  { code, consequence }: { code: string | null; consequence: EffectRow['consequence'] },
): Settlement['event'] {
  if (outcome === 'done') return 'committed'
  if (outcome === 'unknown') return consequence === 'none' ? 'abandoned' : 'lost'
  if (outcome === 'denied') return code === 'cancelled' ? 'cancelled' : 'denied'
  return outcome
}

/** The ledger knows already, and it did not happen. */
function hasEnded({ state }: EffectRow): boolean {
  return state === 'failed' || state === 'reconciled_failed' || state === 'denied'
}
