import type { Constraint, Trust } from '#contracts'
import { toSlug } from '#contracts'
import { admit } from '#kernel/admission/admit'
import type { Dispatched } from '#kernel/effects/broker'
import type { EffectCall, Observation, ToolContract } from '#kernel/ports/effect-target'
import type { JsonObject } from '#kernel/ports/model-gateway'
import type { RunRow } from '#kernel/ports/run-store'
import { saltedDigest, sha256Hex } from '#kernel/record/chain'
import { canonicalJson } from '#kernel/record/canonical-json'
import type { ProposedCall, RunCommand } from '#kernel/reducer/commands'
import type { ToolCall } from '#kernel/reducer/state'
import { priceOfCall } from '#kernel/tools/price-of-call'
import { keptArguments, observationContent } from './action-contents.ts'
import { ActionFacts } from './action-facts.ts'
import type { ActionFactsDeps } from './action-facts.ts'
import { acceptResult, listenToAction } from './action-guards.ts'
import { shownName } from './granted-tools.ts'
import type { PendingContent } from './ports.ts'
import { shownRun } from './rewrite-request.ts'

/** How long the owner has to answer before silence counts as a no. Milliseconds. */
export const APPROVAL_TIMEOUT_MS = 24 * 60 * 60_000

type DispatchInput = {
  call: ToolCall
  effectId: string
  constraints: readonly Constraint[]
  contextTrust: Trust
  /** Nobody else may have it in hand. */
  alone?: boolean
}

/** What one run does beside speaking: proposals, dispatch through the broker, reading back. Decides nothing (K2, K3, K9). */
export class RunActions {
  readonly #run: RunRow
  readonly #deps: ActionFactsDeps
  readonly facts: ActionFacts
  readonly #bundle: () => string | null
  #abort = new AbortController()

  /** `bundle`: what the run is pinned to; nothing where it has none of its own. */
  constructor({
    run,
    deps,
    profileHash,
    bundle = () => null,
  }: {
    run: RunRow
    deps: ActionFactsDeps
    profileHash: () => string
    bundle?: () => string | null
  }) {
    this.#run = run
    this.#deps = deps
    this.facts = new ActionFacts({ run, deps, profileHash })
    this.#bundle = bundle
  }

  abort(): void {
    this.#abort.abort()
  }

  /**
   * Tool calls as the model made them, under ids of ours, with their arguments as content. `shown`: the tools of that request, and the contents
   * that it was made of: the arguments go with any of them, and with the answer (decision 13). A call of anything else is proposed too, and
   * refused by its verdict.
   */
  propose(
    calls: readonly { name: string; argumentsText: string }[],
    shown: { tools: readonly ToolContract[]; contents: readonly string[] },
  ): { calls: ProposedCall[]; contents: PendingContent[] } {
    const { ids, scrub } = this.#deps
    const contents: PendingContent[] = []
    const proposed = calls.map(({ name, argumentsText }): ProposedCall => {
      const contract = shown.tools.find((one) => shownName(one.name) === name)
      const salt = ids.bytes(32)
      const text = keptArguments(argumentsText, scrub)
      const content: PendingContent = {
        id: ids.next(),
        owner_id: this.#run.owner_id,
        media_type: 'application/json',
        content: text,
        salt,
        derived_from: [...(this.#run.candidate_id === null ? [] : [this.#run.candidate_id]), ...shown.contents],
      }
      contents.push(content)
      return {
        action_id: ids.next(),
        tool: contract?.name ?? toSlug(name),
        tool_version: contract?.version ?? null,
        content_id: content.id,
        digest: Buffer.from(saltedDigest(salt, text)).toString('hex'),
      }
    })
    return { calls: proposed, contents }
  }

  /** Gathers what the verdict on one action reads. */
  async assess(call: ToolCall, contextTrust: Trust): Promise<Extract<RunCommand, { tag: 'call_assessed' }>> {
    const { ids, clock } = this.#deps
    const { facts, contract, given, argumentsText } = await this.facts.of(call, contextTrust, await this.facts.approvalOf(call))
    const { listeners, veto } = await listenToAction(await this.#deps.guards(this.#bundle()), {
      run: shownRun(this.#run),
      action_id: call.action_id,
      tool: call.tool,
      capability: facts.capability,
      trust: contextTrust,
      arguments_text: argumentsText,
    })
    return {
      tag: 'call_assessed',
      action_id: call.action_id,
      facts: { ...facts, listeners },
      ...(veto ? { veto } : {}),
      consequence: contract?.consequence ?? 'lasting',
      price_micros: contract && priceOfCall(contract, given),
      effect_id: ids.next(),
      approval_id: call.approval_id ?? ids.next(),
      checkpoint_id: ids.next(),
      expires_at: new Date(clock.now().getTime() + APPROVAL_TIMEOUT_MS).toISOString(),
    }
  }

  /** Sends an effect whose intent is durable, and says what became of it. */
  async dispatch(input: DispatchInput): Promise<{ command: Extract<RunCommand, { tag: 'effect_settled' }>; contents: PendingContent[] }> {
    const { ledger, broker } = this.#deps
    const { call, effectId, constraints, contextTrust } = input
    this.#abort = new AbortController()
    const effect = await ledger.get(effectId)
    const { found, given, isChanged } = await this.facts.of(call, contextTrust, null)
    // Under the same name something else may stand by now: what was judged and asked about goes nowhere else (case E5).
    const gone = isChanged || effect?.tool_version !== call.tool_version ? 'tool_changed' : 'tool_gone'
    if (!effect || !found || given === null || gone === 'tool_changed') {
      return this.#settled(call, effectId, { type: 'denied', code: gone }, 0)
    }
    const outcome = await broker.dispatch({
      effect,
      contract: found.contract,
      target: found.target,
      call: { ...this.#effectCall(effectId, call, given, { constraints, trust: contextTrust }), signal: this.#abort.signal },
      stillAllowed: () => this.#stillAllowed(call, contextTrust),
      alone: input.alone ?? false,
    })
    return this.#settled(call, effectId, outcome, priceOfCall(found.contract, given) ?? 0)
  }

  /**
   * As `dispatch`, for the single owner of a run: what an owner before sent is only read back, never sent again; nothing new goes out of a run
   * that is about to end (spec/2 "Run loop", cases E9, E20).
   */
  async takeUp({ ending, ...input }: DispatchInput & { ending: boolean }): ReturnType<RunActions['dispatch']> {
    const { call, effectId, constraints, contextTrust } = input
    const effect = await this.#deps.ledger.get(effectId)
    if (effect?.state === 'intent' && (ending || (await this.#isCancelled())))
      return this.#settled(call, effectId, { type: 'denied', code: 'cancelled' }, 0)
    if (effect?.state !== 'executing') return this.dispatch({ ...input, alone: true })
    const { found, given } = await this.facts.of(call, contextTrust, null)
    if (!found || given === null) return this.#settled(call, effectId, ownerLost, effect.reserved_micros)
    const proof = await this.#deps.broker.readBack({
      target: found.target,
      call: this.#effectCall(effectId, call, given, { constraints, trust: contextTrust }),
    })
    return this.#settled(call, effectId, proof ? { type: 'done', costMicros: null, ...proof } : ownerLost, effect.reserved_micros)
  }

  #effectCall(
    effectId: string,
    call: ToolCall,
    given: JsonObject,
    { constraints, trust }: { constraints: readonly Constraint[]; trust: Trust },
  ): Omit<EffectCall, 'signal'> {
    const { id, owner_id: ownerId, character_id: characterId, tree_id: treeId } = this.#run
    return {
      effectId,
      ownerId,
      characterId,
      runId: id,
      treeId,
      tool: call.tool,
      arguments: given,
      idempotencyKey: call.action_id,
      argumentsHash: sha256Hex(canonicalJson(given)),
      argumentsContentId: call.content_id,
      trust,
      constraints,
    }
  }

  /**
   * Newest revocations win: grants, mode, kill switch, cancellation, the owner's yes and the tool's version, asked again right before the send
   * (`003…` §3, case E5).
   */
  async #stillAllowed(call: ToolCall, contextTrust: Trust): Promise<true | string> {
    if (await this.#isCancelled()) return 'cancelled'
    const { facts } = await this.facts.of(call, contextTrust, await this.facts.approvalOf(call, { isBound: true }))
    const decision = admit(facts)
    return decision.verdict === 'autonomous' || decision.verdict === 'rule_bound' ? true : decision.reason
  }

  /** Whether its owner wants the run to end, heard of or not. */
  async #isCancelled(): Promise<boolean> {
    return (await this.#deps.runs.openCommands(this.#run.id)).some(({ kind }) => kind === 'cancel')
  }

  async #settled(call: ToolCall, effectId: string, outcome: Dispatched, price: number) {
    const observation = 'observation' in outcome ? outcome.observation : null
    const { kept, veto } = await this.#accepted(call, observation)
    // What may have happened is charged as if it had (decision 39).
    const cost = outcome.type === 'done' ? (outcome.costMicros ?? price) : outcome.type === 'unknown' ? price : 0
    return {
      command: {
        tag: 'effect_settled' as const,
        effect_id: effectId,
        outcome: outcome.type,
        code: 'code' in outcome ? toSlug(outcome.code) : null,
        cost_micros: cost,
        cost_estimated: outcome.type === 'unknown' || (outcome.type === 'done' && outcome.costMicros === null),
        observation: kept?.seen ?? null,
        checkpoint_id: this.#deps.ids.next(),
        ...(veto ? { veto } : {}),
      },
      contents: kept ? [kept.content] : [],
    }
  }

  /** An observation that listeners let through, as content; one that they do not is not kept. */
  async #accepted(call: ToolCall, observation: Observation | null) {
    if (!observation) return { kept: null, veto: null }
    const { guards, ids, scrub } = this.#deps
    const veto = await acceptResult(await guards(this.#bundle()), {
      run: shownRun(this.#run),
      kind: 'observation',
      tool: call.tool,
      trust: observation.trust,
      text: scrub(observation.text),
    })
    const derivedFrom = [call.content_id, ...(observation.derivedFrom ?? [])]
    const place = { ownerId: this.#run.owner_id, derivedFrom, ids, scrub }
    return { kept: veto ? null : observationContent(observation, place), veto }
  }

  /** What became of an effect that was sent and never answered: a person's word, the target's proof, or still nobody knows. */
  async reconcile(
    call: ToolCall,
    effectId: string,
  ): Promise<{ command: Extract<RunCommand, { tag: 'effect_reconciled' }>; contents: PendingContent[] }> {
    const { ledger, broker, ids } = this.#deps
    const command = { tag: 'effect_reconciled' as const, effect_id: effectId, observation: null, checkpoint_id: ids.next() }
    const effect = await ledger.get(effectId)
    if (effect?.state === 'reconciled_done' || effect?.state === 'done')
      return { command: { ...command, as: 'done', by: 'person' }, contents: [] }
    if (effect?.state === 'reconciled_failed' || effect?.state === 'failed')
      return { command: { ...command, as: 'failed', by: 'person' }, contents: [] }
    const { found, given } = await this.facts.of(call, 'untrusted', null)
    if (!effect || !found || given === null) return { command: { ...command, as: 'unknown', by: 'target' }, contents: [] }
    const proof = await broker.readBack({
      target: found.target,
      call: this.#effectCall(effectId, call, given, { constraints: effect.constraints, trust: 'untrusted' }),
    })
    if (!proof) return { command: { ...command, as: 'unknown', by: 'target' }, contents: [] }
    const { kept, veto } = await this.#accepted(call, proof.observation)
    return {
      command: { ...command, as: 'done', by: 'target', observation: kept?.seen ?? null, ...(veto ? { veto } : {}) },
      contents: kept ? [kept.content] : [],
    }
  }
}

const ownerLost: Dispatched = { type: 'unknown', code: 'owner_lost' }
