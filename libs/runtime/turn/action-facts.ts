import type { AdmissionFacts, ApprovalFacts, Arbitration, Trust } from '#contracts'
import type { EffectBroker } from '#kernel/effects/broker'
import { grantLayer } from '#kernel/ports/approval-store'
import type { ApprovalStore, CheckpointStore, GrantLayerRow, GrantStore, NewApproval } from '#kernel/ports/approval-store'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EffectLedger } from '#kernel/ports/effect-ledger'
import type { ToolCatalogue } from '#kernel/ports/effect-target'
import type { JsonObject } from '#kernel/ports/model-gateway'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { ToolCall } from '#kernel/reducer/state'
import type { Guards } from '../bus/guards.ts'
import { parsedArguments } from './action-contents.ts'

/** Everything that acting needs from outside. */
export type ActionDeps = {
  catalogue: ToolCatalogue
  grants: GrantStore
  approvals: ApprovalStore
  checkpoints: CheckpointStore
  ledger: EffectLedger
  broker: EffectBroker
  /** Masks secrets in what goes out and what comes back (decision 37). */
  scrub(text: string): string
  /** Whether arguments fit a JSON schema. */
  fits(schema: JsonObject, value: JsonObject): boolean
  /** Who listens under a bundle; null: under the active one. */
  guards(bundle: string | null): Promise<Guards>
}

/** Nobody judged stricter: the resident judge (司命) is a plugin that tightens this. */
const unmoved: Arbitration = { capability: 'autonomous', data: 'autonomous', consequence: 'autonomous', situation: 'autonomous' }

export type ActionFactsDeps = ActionDeps & { contents: ContentStore; runs: RunStore; ids: Ids; clock: Clock }

/** Gathers what verdicts on one run's actions read, and the questions that they lead to. Decides nothing (K2, K9). */
export class ActionFacts {
  readonly #run: RunRow
  readonly #deps: ActionFactsDeps
  readonly #profileHash: () => string

  constructor({ run, deps, profileHash }: { run: RunRow; deps: ActionFactsDeps; profileHash: () => string }) {
    this.#run = run
    this.#deps = deps
    this.#profileHash = profileHash
  }

  /** What the verdict on a call is a function of (K2), and what it was found by. */
  async of(call: ToolCall, contextTrust: Trust, approval: ApprovalFacts | null) {
    const { catalogue, grants, runs, contents, fits } = this.#deps
    const run = this.#run
    const [known, layers, killed, stored] = await Promise.all([
      catalogue.find(run.owner_id, call.tool),
      grants.layers({ ownerId: run.owner_id, characterId: run.character_id, treeId: run.tree_id }),
      runs.isKilled(run),
      contents.get([call.content_id]),
    ])
    // What the model was not shown, or was shown otherwise, is no tool of this call, whatever it is called.
    const found = known !== null && known.contract.version === call.tool_version ? known : null
    const contract = found?.contract ?? null
    const body = stored.get(call.content_id)?.body ?? null
    const given = parsedArguments(body)
    const facts: AdmissionFacts = {
      tool: call.tool,
      capability: contract?.capability ?? null,
      argument_capability: null,
      egress: contract?.egress ?? 'free',
      undoable: contract?.undoable ?? false,
      arguments_valid: contract !== null && given !== null && fits(contract.parameters, given),
      run_kind: run.kind,
      mode: modeOf(layers),
      grants: layers.map(grantLayer),
      class_rules: layers.flatMap(({ class_rules: rules }) => rules),
      context_trust: contextTrust,
      arbitration: unmoved,
      listeners: [],
      killed,
      approval,
    }
    return { facts, contract, found, given, argumentsText: body ?? '', isChanged: known !== null && found === null }
  }

  /**
   * The question about a call, as the verdict reads it; null where nobody was asked. `isBound`: its intent is there, so that a yes that was used
   * up was used up by it. No answer outlives the question's time, a yes as little as silence.
   */
  async approvalOf(call: ToolCall, { isBound = false } = {}): Promise<ApprovalFacts | null> {
    if (call.approval_id === null) return null
    const { approvals, clock } = this.#deps
    const row = await approvals.ofAction(this.#run.id, call.action_id)
    if (!row || row.id !== call.approval_id) return null
    const state = isBound && row.state === 'used' ? 'approved' : row.state
    return {
      state: (state === 'pending' || state === 'approved') && row.expires_at <= clock.now() ? 'expired' : state,
      same_action: row.action_id === call.action_id && row.tool === call.tool,
      same_arguments: row.arguments_content_id === call.content_id && row.arguments_hash === call.digest,
      same_versions: row.profile_hash === this.#profileHash() && row.tool_version === call.tool_version,
      by_owner: row.decided_by === this.#run.owner_id,
    }
  }

  /** The question that goes to the owner with a suspension. */
  question(call: ToolCall, asked: { approvalId: string; reason: string; policyVersion: number; expiresAt: Date }): NewApproval {
    return {
      id: asked.approvalId,
      owner_id: this.#run.owner_id,
      character_id: this.#run.character_id,
      run_id: this.#run.id,
      action_id: call.action_id,
      tool: call.tool,
      tool_version: call.tool_version ?? '',
      capability: call.capability ?? 'irreversible_external',
      reason: asked.reason,
      arguments_content_id: call.content_id,
      arguments_hash: call.digest,
      profile_hash: this.#profileHash(),
      policy_version: asked.policyVersion,
      expires_at: asked.expiresAt,
    }
  }
}

/** The strictest mode of all layers; without a grant of the owner there is none, which forbids. */
function modeOf(layers: readonly GrantLayerRow[]): AdmissionFacts['mode'] {
  if (!layers.some(({ scope }) => scope === 'owner')) return null
  if (layers.some(({ mode }) => mode === 'plan')) return 'plan'
  return layers.every(({ mode }) => mode === 'auto') ? 'auto' : 'default'
}
