import { LingtaiError, meetTrust, toSlug } from '#contracts'
import type { SubmitAction, Trust } from '#contracts'
import { admit } from '#kernel/admission/admit'
import { nextEffectState } from '#kernel/effects/effect'
import type { EffectEvent, EffectState } from '#kernel/effects/effect'
import { EffectConflictError } from '#kernel/ports/effect-ledger'
import type { EffectRow } from '#kernel/ports/effect-ledger'
import type { JsonObject } from '#kernel/ports/model-gateway'
import type { RunRow } from '#kernel/ports/run-store'
import type { ActionRow, AttemptRow, TaskRow } from '#kernel/ports/task-store'
import { canonicalJson } from '#kernel/record/canonical-json'
import { saltedDigest } from '#kernel/record/chain'
import type { SeenObservation } from '#kernel/reducer/commands'
import type { ToolCall } from '#kernel/reducer/state'
import { blockerOf, isSettledAction, nextActionState } from '#kernel/tasks/action-state'
import type { ActionEvent } from '#kernel/tasks/action-state'
import { decodeDecision, encodeDecision, stricterDecision } from '#kernel/tasks/policy-decision'
import { chargeOf, priceOf, refundAction, reserveAction, settleAction } from '#kernel/tasks/task-budget'
import { isCancelledTask, isLiveAttempt } from '#kernel/tasks/task-state'
import type { PendingContent } from '#runtime/turn/ports'
import { RunActions } from '#runtime/turn/run-actions'
import type { TaskDeps } from './deps.ts'
import { NarrowedGrants } from './narrowed-grants.ts'
import { appendTaskEvents, settledEvent } from './task-stream.ts'
import type { TaskEvent } from './task-stream.ts'

/** How long a submitter waits for somebody else who has the same action in hand, and how often it looks. Milliseconds. */
const WAIT_MS = 5_000
const LOOK_EVERY_MS = 40

/** An action among its surroundings. */
type Placed = { task: TaskRow; attempt: AttemptRow; run: RunRow; action: ActionRow }

/** How an action goes on: what happened, what it is charged, what was seen. */
type Settlement = {
  event: Extract<ActionEvent, 'committed' | 'failed' | 'denied' | 'cancelled' | 'lost' | 'abandoned'>
  reason: string | null
  by: 'kernel' | 'target' | 'person'
  cost: number
  estimated: boolean
  seen: SeenObservation | null
  contents: readonly PendingContent[]
}

/**
 * The way of one action of an attempt that others drive: proposed, judged with facts of the moment, reserved and bound, sent once through
 * the broker, settled by conditional writes (`003…` §2, §3). Everything may run on any number of processes at once.
 */
export class ActionPlane {
  readonly #deps: TaskDeps
  readonly #inHand = new Map<string, { acts: RunActions; attemptId: string; done: Promise<void> }>()

  constructor(deps: TaskDeps) {
    this.#deps = deps
  }

  // ------------------------------------------------------------ proposed

  /**
   * Records an action, or finds the one that has its name. The same name for anything else is a conflict (cases E4, E5). Throws not_found,
   * wrong_state, conflict.
   */
  async record(ownerId: string, taskId: string, input: Omit<SubmitAction, 'actor'> & { actor: ActionRow['actor'] }): Promise<ActionRow> {
    const { unitOfWork, store } = this.#deps
    return unitOfWork.run(async () => {
      const task = await this.#ownTask(ownerId, taskId)
      const given = { ...input, resource: input.resource ?? input.tool }
      const known = await this.#known(task, given)
      if (known) return known
      const attempts = await store.attempts(taskId)
      const attempt = attempts.at(-1)
      if (!attempt || (!isCancelledTask(task.status) && (task.status !== 'open' || !isLiveAttempt(attempt.status)))) {
        throw new LingtaiError('wrong_state', 'The task has no attempt that could act.', { data: { status: task.status } })
      }
      if (attempt.runtime !== 'external' && given.actor !== 'verifier') {
        throw new LingtaiError('wrong_state', 'The attempt is driven by a runtime of its own.', { data: { runtime: attempt.runtime } })
      }
      return this.#insert(task, attempt, given)
    })
  }

  async #ownTask(ownerId: string, taskId: string): Promise<TaskRow> {
    const { store } = this.#deps
    if (!(await store.find(ownerId, taskId))) throw new LingtaiError('not_found')
    const task = await store.lock(taskId)
    if (!task) throw new LingtaiError('not_found')
    return task
  }

  async #known(
    task: TaskRow,
    given: Omit<SubmitAction, 'actor'> & { resource: string; actor: ActionRow['actor'] },
  ): Promise<ActionRow | null> {
    const { store, contents } = this.#deps
    const byId = given.action_id === undefined ? null : await store.findAction(task.owner_id, given.action_id)
    const byKey = await store.actionsByKey(task.owner_id, { taskId: task.id, resource: given.resource, key: given.key })
    const [first, ...others] = [...(byId ? [byId] : []), ...byKey]
    if (!first) {
      if (given.action_id !== undefined) throw new LingtaiError('not_found')
      return null
    }
    const content = (await contents.get([first.arguments_content_id])).get(first.arguments_content_id)
    const isSame =
      others.every(({ id }) => id === first.id) &&
      first.task_id === task.id &&
      (given.action_id === undefined || given.action_id === first.id) &&
      given.key === first.idempotency_key &&
      first.tool === given.tool &&
      first.resource === given.resource &&
      first.cost_micros === (given.cost_micros ?? null) &&
      // Arguments that were erased can be compared with nothing.
      content?.body === this.#argumentsText(given.arguments)
    if (!isSame) throw conflict(first.id)
    return first
  }

  #argumentsText(given: JsonObject): string {
    return this.#deps.actions.scrub(canonicalJson(given))
  }

  async #insert(
    task: TaskRow,
    attempt: AttemptRow,
    given: Omit<SubmitAction, 'actor'> & { resource: string; actor: ActionRow['actor'] },
  ): Promise<ActionRow> {
    const { store, contents, ids, clock } = this.#deps
    const salt = ids.bytes(32)
    const text = this.#argumentsText(given.arguments)
    const content = await contents.put({ owner_id: task.owner_id, media_type: 'application/json', content: text, salt })
    const earlier = await store.actions(attempt.id)
    const seen = await store.observations(task.id)
    const at = clock.now()
    const row = {
      id: ids.next(),
      owner_id: task.owner_id,
      task_id: task.id,
      attempt_id: attempt.id,
      ordinal: earlier.length + 1,
      actor: given.actor,
      tool: given.tool,
      resource: given.resource,
      idempotency_key: given.key,
      arguments_content_id: content.id,
      arguments_hash: hex(saltedDigest(salt, text)),
      cost_micros: given.cost_micros ?? null,
      // Whoever drives the attempt has seen what came before, and nothing makes that more to be believed (K1).
      trust: meetTrust([task.trust, given.trust, ...seen.map(({ trust }) => trust)]),
      independent: given.independent,
      created_at: at,
    }
    await store.insertAction(row)
    const submitted: TaskEvent = {
      type: 'action.submitted',
      payload: {
        action_id: row.id,
        attempt_id: row.attempt_id,
        ordinal: row.ordinal,
        actor: row.actor,
        tool: row.tool,
        resource: row.resource,
        key: row.idempotency_key,
        content_id: row.arguments_content_id,
        arguments_hash: row.arguments_hash,
        cost_micros: row.cost_micros,
        trust: row.trust,
        independent: row.independent,
      },
      content_digests: [{ content_id: row.arguments_content_id, digest: row.arguments_hash }],
    }
    await appendTaskEvents(this.#deps, task, [submitted], { actor: given.actor === 'owner' ? 'owner' : 'agent', tag: 'submit' })
    const inserted = await store.action(row.id)
    if (!inserted) throw new Error(`action ${row.id} was not stored`)
    if (isCancelledTask(task.status)) await this.#close(task, inserted, 'cancelled', 'cancelled')
    return inserted
  }

  // ------------------------------------------------------------ judged

  /** Takes an action as far as it can go now. Not inside a unit of work. */
  async advance(actionId: string): Promise<void> {
    // Each round ends in a later state, and there are few of them.
    for (let round = 0; round < 6; round++) {
      const placed = await this.#place(actionId)
      if (!placed || isSettledAction(placed.action.state)) return
      if (placed.action.state === 'dispatched' || placed.action.state === 'unknown') {
        await this.#follow(placed)
        return
      }
      const next = await this.#judge(placed)
      if (next === 'stays') return
    }
  }

  async #place(actionId: string): Promise<Placed | null> {
    const { store, runs } = this.#deps
    const action = await store.action(actionId)
    if (!action) return null
    const [task, attempt, run] = await Promise.all([
      store.find(action.owner_id, action.task_id),
      store.attempt(action.attempt_id),
      runs.get(action.attempt_id),
    ])
    return task && attempt && run ? { task, attempt, run, action } : null
  }

  #actsOf({ task, attempt, run }: Pick<Placed, 'task' | 'attempt' | 'run'>): RunActions {
    const { actions, contents, runs, ids, clock } = this.#deps
    const grants = new NarrowedGrants(actions.grants, task)
    return new RunActions({ run, deps: { ...actions, grants, contents, runs, ids, clock }, profileHash: () => attempt.harness_profile })
  }

  /** One verdict with the facts of now, recorded, and what follows from it in the same transaction. */
  async #judge(placed: Placed): Promise<'stays' | 'again'> {
    const { store, actions, unitOfWork, clock } = this.#deps
    const { action } = placed
    if (blockerOf(placedOf(action), (await store.actions(action.attempt_id)).map(placedOf))) return this.#unlessCancelled(placed)
    if (action.state === 'waiting' && action.approval_id !== null) {
      const approval = await actions.approvals.find(action.owner_id, action.approval_id)
      // Who was asked is waited for, whatever the rules say meanwhile (case E2).
      if (approval?.state === 'pending' && approval.expires_at > clock.now()) return this.#unlessCancelled(placed)
    }
    const acts = this.#actsOf(placed)
    const assessed = await acts.assess(callOf(action), action.trust)
    const admission = admit(assessed.facts)
    const decided = stricterDecision(
      decodeDecision(action.id, encodeDecision(action.id, admission)),
      decodeDecision(action.id, await this.#deps.policy.evaluate(action.id, assessed.facts)),
    )
    const question = await acts.question(
      { ...callOf(action), capability: admission.capability },
      {
        approvalId: assessed.approval_id,
        reason: decided.reason_code,
        policyVersion: decided.policy_version,
        expiresAt: new Date(assessed.expires_at),
      },
    )
    return unitOfWork.run(async () => {
      const fresh = await this.#fresh(placed)
      if (fresh === null) return 'again'
      const { task, action: now } = fresh
      if (now.state !== action.state) return 'again'
      if (isCancelledTask(task.status)) return this.#close(task, now, 'cancelled', 'cancelled')
      if (task.status !== 'open' && now.actor !== 'verifier') return 'stays'
      if (blockerOf(placedOf(now), (await store.actions(now.attempt_id)).map(placedOf))) return 'stays'
      const isAsked = decided.decision === 'REQUIRE_APPROVAL' && now.approval_id === null
      if (isAsked) await actions.approvals.ask(question)
      await this.#recordDecision(task, now, {
        ...decided,
        facts: assessed.facts,
        approvalId: isAsked ? assessed.approval_id : now.approval_id,
      })
      const capability = admission.capability
      if (decided.decision === 'DENY' || capability === null) return this.#close(task, now, 'denied', decided.reason_code)
      if (decided.decision === 'REQUIRE_APPROVAL') {
        if (isAsked) {
          await this.#change(now, { state: 'waiting', approval_id: assessed.approval_id, side_effect_class: capability })
        }
        return 'stays'
      }
      const price = priceOf(now.cost_micros, assessed.price_micros)
      const reservation = reserveAction(task, price)
      if (!reservation) return this.#close(task, now, 'unaffordable', price === null ? 'price_unknown' : 'budget_exhausted')
      await this.#bind(task, now, {
        effectId: assessed.effect_id,
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
      const fresh = await this.#fresh(placed)
      if (!fresh || isSettledAction(fresh.action.state)) return 'again'
      return this.#close(fresh.task, fresh.action, 'cancelled', 'cancelled')
    })
  }

  /** With the task's row locked: what is read now stands until the transaction ends. */
  async #fresh({ task, action }: Placed): Promise<{ task: TaskRow; action: ActionRow } | null> {
    const locked = await this.#deps.store.lock(task.id)
    const now = await this.#deps.store.action(action.id)
    return locked && now ? { task: locked, action: now } : null
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
    await this.#change(action, {
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

  async #change(action: ActionRow, change: Parameters<TaskDeps['store']['changeAction']>[2]): Promise<void> {
    const moved = await this.#deps.store.changeAction(action.id, action.state, change)
    if (!moved) throw new Error(`action ${action.id} moved on while its task was locked`)
  }

  /** Ends an action that was never bound to an effect. */
  async #close(
    task: TaskRow,
    action: ActionRow,
    event: Extract<ActionEvent, 'denied' | 'unaffordable' | 'cancelled'>,
    reason: string,
  ): Promise<'again'> {
    const to = nextActionState(action.state, event)
    if (to === null) return 'again'
    const at = this.#deps.clock.now()
    await this.#change(action, { state: to, reason: toSlug(reason), settled_at: at, charged_micros: 0 })
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
      if (action.state === 'proposed' || action.state === 'waiting') await this.#close(task, action, 'cancelled', 'cancelled')
    }
  }

  // ------------------------------------------------------------ sent

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
    const acts = this.#actsOf(placed)
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
        call: callOf(action),
        effectId,
        constraints: effect?.constraints ?? [],
        contextTrust: action.trust,
      })
      if (command.outcome === 'pending') {
        // Nothing was sent by us: whoever has it in hand settles it, or a later look does.
        isSettled = true
        return
      }
      const isLost = command.outcome === 'unknown'
      await this.#settle(placed, {
        event: eventOf(command.outcome, { code: command.code, consequence: effect?.consequence ?? 'lasting' }),
        reason: command.outcome === 'done' ? null : (command.code ?? 'other'),
        by: 'target',
        cost: isLost ? action.reserved_micros : command.cost_micros,
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

  // ------------------------------------------------------------ read back

  /** An action that is out, or was lost: waited for, read back, or sent where it never was (`003…` §3; cases E6–E10). */
  async #follow(placed: Placed): Promise<void> {
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
        this.#place(placed.action.id),
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
    return this.#settle(placed, {
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
    const { command, contents } = await this.#actsOf(placed).reconcile(callOf(action), effect.id)
    const isDone = command.as === 'done'
    if (isDone || command.as === 'failed' || hasEnded(effect)) {
      await this.#settle(placed, {
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
    await this.#settle(placed, {
      event: effect.consequence === 'none' ? 'abandoned' : 'lost',
      reason: effect.code ?? 'owner_lost',
      by: 'kernel',
      cost: action.reserved_micros,
      estimated: true,
      seen: null,
      contents: [],
    })
  }

  // ------------------------------------------------------------ settled

  /** Ledger, action, budget and record in one transaction; a late word changes nothing (case E16). */
  async #settle(placed: Placed, settlement: Settlement): Promise<void> {
    const { store, unitOfWork, contents, clock, actions } = this.#deps
    const version = (await actions.catalogue.find(placed.task.owner_id, placed.action.tool))?.contract.version ?? null
    await unitOfWork.run(async () => {
      const fresh = await this.#fresh(placed)
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

/** The action as the loop's own code knows calls. */
function callOf(action: ActionRow): ToolCall {
  return {
    action_id: action.id,
    tool: action.tool,
    content_id: action.arguments_content_id,
    digest: action.arguments_hash,
    phase: 'proposed',
    effect_id: action.effect_id,
    approval_id: action.approval_id,
    capability: action.side_effect_class,
    consequence: null,
    constraints: [],
    reserved_micros: action.reserved_micros,
  }
}

function placedOf({ id, ordinal, independent, state }: ActionRow) {
  return { action_id: id, ordinal, independent, state }
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

function conflict(actionId: string): LingtaiError {
  return new LingtaiError('conflict', 'This name is bound to another action.', {
    errors: [{ path: 'key', message: 'is bound to other arguments, another target, cost, key or action' }],
    data: { action_id: actionId },
  })
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
