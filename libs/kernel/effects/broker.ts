import type { EffectLedger, EffectRow } from '../ports/effect-ledger.ts'
import type { EffectCall, EffectOutcome, EffectTarget, Observation, ToolContract } from '../ports/effect-target.ts'

/**
 * - `done`, `failed`, `unknown`: as the target says, or as the ledger already knew;
 * - `denied`: taken back before it was sent;
 * - `pending`: somebody else has it in hand, or the target cannot be asked whether it happened already. Nothing was sent.
 */
export type Dispatched =
  | { type: 'done'; observation: Observation | null; costMicros: number | null }
  | { type: 'failed'; code: string; observation: Observation | null }
  | { type: 'unknown'; code: string }
  | { type: 'denied'; code: string }
  | { type: 'pending'; code: 'claimed_elsewhere' | 'look_up_unavailable' }

export type BrokerDeps = {
  ledger: EffectLedger
  /** Names this process in claims. */
  holder: string
  report(error: unknown, effectId: string): void
}

/** Asked after the look-up and immediately before dispatch; a slug says why not (`003…` §3). */
export type StillAllowed = () => Promise<true | string>

/**
 * The only way out for actions (K3, `003…` §3): intent first, claim, look up, ask once more, send once, and never send again what may have
 * happened. It decides nothing about permission and settles nothing by itself: the caller records the answer together with its event.
 */
export class EffectBroker {
  readonly #deps: BrokerDeps

  constructor(deps: BrokerDeps) {
    this.#deps = deps
  }

  /** The intent must be durable. Never throws for a target's fault. */
  async dispatch(input: {
    effect: EffectRow
    contract: ToolContract
    target: EffectTarget
    call: EffectCall
    stillAllowed: StillAllowed
    /** Nobody but the caller may have the effect in hand: a claim that is there still is of an owner before it. */
    alone?: boolean
  }): Promise<Dispatched> {
    const { ledger, holder } = this.#deps
    const { effect, contract, target, call, stillAllowed, alone = false } = input
    if (effect.constraints.some((constraint) => !target.enforces(contract).has(constraint))) {
      return { type: 'denied', code: 'constraint_unavailable' }
    }
    const claim = await ledger.claim(effect.id, holder, { takesOver: alone })
    if (!claim) return this.#asRecorded(effect.id)
    const known = await this.#lookUp(target, call)
    if (known?.type === 'unavailable') {
      await ledger.release(effect.id, claim.fence)
      return { type: 'pending', code: 'look_up_unavailable' }
    }
    if (known?.type === 'committed' && known.argumentsHash !== null && known.argumentsHash !== call.argumentsHash) {
      return { type: 'denied', code: 'bound_to_other_arguments' }
    }
    if (known?.type === 'committed') return { type: 'done', observation: known.observation, costMicros: null }
    const allowed = call.signal.aborted ? 'cancelled' : await stillAllowed()
    if (allowed !== true) return { type: 'denied', code: allowed }
    if (!(await ledger.markExecuting(effect.id, claim.fence))) return this.#asRecorded(effect.id)
    return this.#execute(target, call)
  }

  async #execute(target: EffectTarget, call: EffectCall): Promise<EffectOutcome> {
    try {
      return await target.execute(call)
    } catch (error) {
      this.#deps.report(error, call.effectId)
      return { type: 'unknown', code: 'executor_failed' }
    }
  }

  async #lookUp(target: EffectTarget, call: EffectCall) {
    try {
      return await target.lookUp(call)
    } catch (error) {
      this.#deps.report(error, call.effectId)
      return { type: 'unavailable' as const }
    }
  }

  /** What the ledger says of an effect that is not ours to send. */
  async #asRecorded(effectId: string): Promise<Dispatched> {
    const effect = await this.#deps.ledger.get(effectId)
    switch (effect?.state) {
      case 'done':
      case 'reconciled_done':
        return { type: 'done', observation: null, costMicros: effect.cost_micros }
      case 'failed':
      case 'reconciled_failed':
        return { type: 'failed', code: effect.code ?? 'other', observation: null }
      case 'denied':
        return { type: 'denied', code: effect.code ?? 'other' }
      case 'unknown':
      case 'abandoned':
        return { type: 'unknown', code: effect.code ?? 'other' }
      case 'intent':
      case 'executing':
      case undefined:
        return { type: 'pending', code: 'claimed_elsewhere' }
    }
  }

  /**
   * What became of an effect that was sent and never answered: the target's proof, or null where there is none. Absence proves nothing
   * (cases E8, E9).
   */
  async readBack(input: { target: EffectTarget; call: Omit<EffectCall, 'signal'> }): Promise<{ observation: Observation | null } | null> {
    try {
      const known = await input.target.lookUp(input.call)
      if (known?.type !== 'committed') return null
      if (known.argumentsHash !== null && known.argumentsHash !== input.call.argumentsHash) return null
      return { observation: known.observation }
    } catch (error) {
      this.#deps.report(error, input.call.effectId)
      return null
    }
  }
}
