import type { Scheduler } from '../ports/clock.ts'
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

/**
 * How long a target may take to answer, to say what it knows of a key, and to let go once it was told to stop, in ms. Each has limits of its
 * own below these (the longest: a script that waits behind others for a thread); these are for one that does not keep them.
 */
export const ANSWER_LIMIT_MS = 180_000
export const LOOK_UP_LIMIT_MS = 30_000
export const LETTING_GO_MS = 10_000

export type BrokerDeps = {
  ledger: EffectLedger
  scheduler: Scheduler
  /** Names this process in claims. */
  holder: string
  report(error: unknown, effectId: string): void
}

/** Asked after the look-up and immediately before dispatch; a slug says why not (`003…` §3). */
export type StillAllowed = () => Promise<true | string>

const overtime = Symbol('overtime')

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
    return this.#execute(target, contract, call)
  }

  async #execute(target: EffectTarget, contract: ToolContract, call: EffectCall): Promise<EffectOutcome> {
    const late = new AbortController()
    const signal = AbortSignal.any([call.signal, late.signal])
    try {
      const outcome = await this.#inTime(target.execute({ ...call, signal }), ANSWER_LIMIT_MS, call.signal)
      if (outcome !== overtime) return outcome
      late.abort()
      const code = 'no_answer_in_time'
      return contract.consequence === 'none' ? { type: 'failed', code, observation: null } : { type: 'unknown', code }
    } catch (error) {
      this.#deps.report(error, call.effectId)
      return { type: 'unknown', code: 'executor_failed' }
    }
  }

  async #lookUp(target: EffectTarget, call: EffectCall) {
    try {
      const known = await this.#inTime(target.lookUp(call), LOOK_UP_LIMIT_MS)
      return known === overtime ? { type: 'unavailable' as const } : known
    } catch (error) {
      this.#deps.report(error, call.effectId)
      return { type: 'unavailable' as const }
    }
  }

  /** What a target answers, unless it takes longer, or goes on for long after the signal told it to stop: nobody waits for ever. */
  async #inTime<Answer>(answer: Promise<Answer>, limitMs: number, signal?: AbortSignal): Promise<Answer | typeof overtime> {
    const { scheduler } = this.#deps
    const over = Promise.withResolvers<typeof overtime>()
    const cancels = [scheduler.after(limitMs, () => over.resolve(overtime))]
    const onAbort = (): void => void cancels.push(scheduler.after(LETTING_GO_MS, () => over.resolve(overtime)))
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      return await Promise.race([answer, over.promise])
    } finally {
      signal?.removeEventListener('abort', onAbort)
      for (const cancel of cancels) cancel()
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
      const known = await this.#inTime(input.target.lookUp(input.call), LOOK_UP_LIMIT_MS)
      if (known === overtime || known?.type !== 'committed') return null
      if (known.argumentsHash !== null && known.argumentsHash !== input.call.argumentsHash) return null
      return { observation: known.observation }
    } catch (error) {
      this.#deps.report(error, input.call.effectId)
      return null
    }
  }
}
