import { LingtaiError } from '#contracts'
import { admit } from '#kernel/admission/admit'
import { EffectConflictError } from '#kernel/ports/effect-ledger'
import type { EffectRow } from '#kernel/ports/effect-ledger'
import type { ActionRow, TaskRow } from '#kernel/ports/task-store'
import { blockerOf, isSettledAction } from '#kernel/tasks/action-state'
import { decodeDecision, encodeDecision, stricterDecision } from '#kernel/tasks/policy-decision'
import { priceOf, reserveAction } from '#kernel/tasks/task-budget'
import { isCancelledTask } from '#kernel/tasks/task-state'
import type { ActionSettler } from './action-settler.ts'
import type { TaskDeps } from './deps.ts'
import { actsOf, callOf, conflict, lockPlaced, placedOf } from './placed-action.ts'
import type { Placed } from './placed-action.ts'
import { appendTaskEvents } from './task-stream.ts'

/** Verdicts on actions, each with the facts of its moment, and what follows from them in the same transaction: asked, ended or bound. */
export class ActionJudge {
  readonly #deps: TaskDeps
  readonly #settler: ActionSettler

  constructor(deps: TaskDeps, settler: ActionSettler) {
    this.#deps = deps
    this.#settler = settler
  }

  /** One verdict with the facts of now, recorded, and what follows from it in the same transaction. */
  async judge(placed: Placed): Promise<'stays' | 'again'> {
    const { store, actions, unitOfWork, clock } = this.#deps
    const { action } = placed
    if (blockerOf(placedOf(action), (await store.actions(action.attempt_id)).map(placedOf))) return this.#unlessCancelled(placed)
    // What a verifier wants to see, nobody is asked about: its verdict may come when whoever could act on an answer is gone.
    const mayAsk = action.actor !== 'verifier'
    if (mayAsk && action.state === 'waiting' && action.approval_id !== null) {
      const approval = await actions.approvals.find(action.owner_id, action.approval_id)
      // Who was asked is waited for, whatever the rules say meanwhile (case E2).
      if (approval?.state === 'pending' && approval.expires_at > clock.now()) return this.#unlessCancelled(placed)
    }
    const acts = actsOf(this.#deps, placed)
    const call = callOf(action, (await actions.catalogue.find(action.owner_id, action.tool))?.contract.version ?? null)
    const assessed = await acts.assess(call, action.trust)
    const admission = admit(assessed.facts)
    const decided = stricterDecision(
      decodeDecision(action.id, encodeDecision(action.id, admission)),
      decodeDecision(action.id, await this.#deps.policy.evaluate(action.id, assessed.facts)),
    )
    const question = acts.facts.question(
      { ...call, capability: admission.capability },
      {
        approvalId: assessed.approval_id,
        reason: decided.reason_code,
        policyVersion: decided.policy_version,
        expiresAt: new Date(assessed.expires_at),
      },
    )
    return unitOfWork.run(async () => {
      const fresh = await lockPlaced(this.#deps, placed)
      if (fresh === null) return 'again'
      const { task, action: now } = fresh
      if (now.state !== action.state) return 'again'
      if (isCancelledTask(task.status)) return this.#settler.close(task, now, 'cancelled', 'cancelled')
      if (task.status !== 'open' && now.actor !== 'verifier') return 'stays'
      if (blockerOf(placedOf(now), (await store.actions(now.attempt_id)).map(placedOf))) return 'stays'
      const isAsked = mayAsk && decided.decision === 'REQUIRE_APPROVAL' && now.approval_id === null
      if (isAsked) await actions.approvals.ask(question)
      await this.#recordDecision(task, now, {
        ...decided,
        facts: assessed.facts,
        approvalId: isAsked ? assessed.approval_id : now.approval_id,
      })
      const capability = admission.capability
      if (decided.decision === 'DENY' || capability === null) return this.#settler.close(task, now, 'denied', decided.reason_code)
      if (decided.decision === 'REQUIRE_APPROVAL') {
        if (!mayAsk) {
          const { approval_id: asked } = now
          if (asked !== null) await actions.approvals.move(asked, { from: 'pending', to: 'revoked', by: null, at: clock.now() })
          return this.#settler.close(task, now, 'denied', 'approval_required')
        }
        if (isAsked) {
          await this.#settler.change(now, { state: 'waiting', approval_id: assessed.approval_id, side_effect_class: capability })
        }
        return 'stays'
      }
      const price = priceOf(now.cost_micros, assessed.price_micros)
      const isGivenAway = task.used_actions + (await store.givenActions(task.id)) >= task.max_actions
      const reservation = isGivenAway ? null : reserveAction(task, price)
      if (!reservation) return this.#settler.close(task, now, 'unaffordable', price === null ? 'price_unknown' : 'budget_exhausted')
      await this.#bind(task, now, {
        effectId: assessed.effect_id,
        toolVersion: call.tool_version,
        capability,
        consequence: assessed.consequence,
        constraints: [...decided.constraints],
        reserved: reservation.reserved,
        usesApproval: decided.reason_code === 'approved',
      })
      await store.change(task.id, { reserved_micros: reservation.budget.reserved_micros, used_actions: reservation.budget.used_actions })
      return 'again'
    })
  }

  /** What waits still hears of a cancellation. */
  async #unlessCancelled(placed: Placed): Promise<'stays' | 'again'> {
    if (!isCancelledTask(placed.task.status)) return 'stays'
    return this.#deps.unitOfWork.run(async () => {
      const fresh = await lockPlaced(this.#deps, placed)
      if (!fresh || isSettledAction(fresh.action.state)) return 'again'
      return this.#settler.close(fresh.task, fresh.action, 'cancelled', 'cancelled')
    })
  }

  async #recordDecision(
    task: TaskRow,
    action: ActionRow,
    decided: ReturnType<typeof decodeDecision> & { facts: Parameters<typeof admit>[0]; approvalId: string | null },
  ): Promise<void> {
    const { store, ids, clock } = this.#deps
    const { decision, constraints, reason_code, policy_version, facts, approvalId } = decided
    await store.insertDecision({
      id: ids.next(),
      owner_id: task.owner_id,
      action_id: action.id,
      decision,
      constraints,
      policy_version,
      reason_code,
      approval_request_id: approvalId,
      facts,
      at: clock.now(),
    })
    const payload = {
      action_id: action.id,
      decision,
      constraints: [...constraints],
      reason_code,
      policy_version,
      approval_id: approvalId,
      facts,
    }
    await appendTaskEvents(this.#deps, task, [{ type: 'action.decided', payload }], { actor: 'kernel', tag: 'judge' })
  }

  /** Write-ahead: the intent is bound to its key, a yes is used up, and only then may it be sent. */
  async #bind(
    task: TaskRow,
    action: ActionRow,
    bound: {
      effectId: string
      toolVersion: string | null
      capability: NonNullable<ActionRow['side_effect_class']>
      consequence: EffectRow['consequence']
      constraints: EffectRow['constraints']
      reserved: number
      usesApproval: boolean
    },
  ): Promise<void> {
    const { actions, clock } = this.#deps
    try {
      await actions.ledger.bind({
        id: bound.effectId,
        owner_id: task.owner_id,
        character_id: task.character_id,
        run_id: action.attempt_id,
        action_id: action.id,
        tool: action.tool,
        tool_version: bound.toolVersion,
        capability: bound.capability,
        consequence: bound.consequence,
        constraints: bound.constraints,
        resource: action.resource,
        idempotency_key: action.idempotency_key,
        arguments_content_id: action.arguments_content_id,
        arguments_hash: action.arguments_hash,
        reserved_micros: bound.reserved,
      })
    } catch (error) {
      if (error instanceof EffectConflictError) throw conflict(action.id)
      throw error
    }
    if (bound.usesApproval && action.approval_id !== null) {
      const used = await actions.approvals.move(action.approval_id, { from: 'approved', to: 'used', by: null, at: clock.now() })
      // Revoked between the verdict and this write: the yes is no longer there to be used.
      if (!used) throw new LingtaiError('wrong_state', 'The approval is no longer there.')
    }
    await this.#settler.change(action, {
      state: 'dispatched',
      effect_id: bound.effectId,
      side_effect_class: bound.capability,
      reserved_micros: bound.reserved,
    })
    const payload = {
      action_id: action.id,
      effect_id: bound.effectId,
      capability: bound.capability,
      constraints: [...bound.constraints],
      approval_id: bound.usesApproval ? action.approval_id : null,
      reserved_micros: bound.reserved,
    }
    await appendTaskEvents(this.#deps, task, [{ type: 'action.dispatched', payload }], { actor: 'kernel', tag: 'dispatch' })
  }
}
