import type {
  AdmissionFacts,
  BudgetAxis,
  Consequence,
  ContentDigest,
  EventPayload,
  FailCode,
  FinishReason,
  ForbiddenRule,
  InterruptReason,
  ModelPurpose,
  Trust,
} from '#contracts'

/** Hard limits of a run (K6); null = honestly not promised. Only ever lowered. */
export type RunLimits = {
  max_turns: number
  max_wall_ms: number
  max_tokens: number | null
  max_cost_micros: number | null
  max_consecutive_tool_errors: number
  max_tries: number
  max_steers: number
}

/**
 * A tool call as the model made it, under an id of ours; its arguments are content already (case E22). `tool_version`: of the tool that this
 * very request showed; null: it showed none of that name.
 */
export type ProposedCall = { action_id: string; tool: string; tool_version: string | null; content_id: string; digest: string }

/** What an action brought, as content: attested and scrubbed. */
export type SeenObservation = { content_id: string; digest: string; trust: Trust }

export type Usage = { prompt_tokens: number; completion_tokens: number; estimated: boolean }

type Projection = EventPayload<'context.projected'>

/** A listener's rewrite of a request: its patch, as content. */
export type Rewrite = { plugin: string; plugin_version: string; reference: string | null; patch_content_id: string; digest: string }

/** A listener's no. */
export type ListenerVeto = { plugin: string; reason: string }

/**
 * Everything that can happen to a run. Readings (time, ids, draws, digests) arrive here, so that the reducer needs none (K4).
 */
export type RunCommand =
  /** `inherited`: what the run that this one goes on with had said; null for a run that begins with nothing. */
  | {
      tag: 'start'
      fence: number
      persona_version_id: string | null
      profile_hash: string
      bundle: string
      limits: RunLimits
      inherited: { segments: number; parts: number } | null
    }
  | {
      tag: 'context_projected'
      projection: Projection
      content_digests: ContentDigest[]
      effect_id: string
      purpose: ModelPurpose
      request_digest: string
      model: string
      reserved_tokens: number
      /** What the call is charged at most, in micro-units; null where the model has no price card. */
      reserved_micros: number | null
      /** What the run's embeddings were charged until now, all of them, in micro-units; absent where they cost nothing. */
      embedding_micros?: number
      policy_version: number
      /** In the order in which they were made; absent for none. */
      rewrites?: readonly Rewrite[]
    }
  /** A listener does not let the request out. */
  | {
      tag: 'context_vetoed'
      projection: Projection
      content_digests: ContentDigest[]
      rewrites?: readonly Rewrite[]
      veto: ListenerVeto
    }
  | { tag: 'context_refused'; code: FailCode; rule: ForbiddenRule | null; policy_version: number }
  | { tag: 'segments'; segments: { kind: 'text' | 'reasoning'; digest: string }[]; content_id: string }
  | { tag: 'model_finished'; finish_reason: FinishReason; usage: Usage; cost_micros: number; calls: readonly ProposedCall[] }
  /** Everything that the verdict on one action reads, and ids for whatever follows from it. */
  | {
      tag: 'call_assessed'
      action_id: string
      facts: AdmissionFacts
      consequence: Consequence
      /** What the action is charged at most; null where nobody knows. */
      price_micros: number | null
      effect_id: string
      approval_id: string
      checkpoint_id: string
      expires_at: string
      /** Stands among the facts as a verdict too; absent for none. */
      veto?: ListenerVeto
    }
  | {
      tag: 'effect_settled'
      effect_id: string
      outcome: 'done' | 'failed' | 'denied' | 'unknown' | 'pending'
      code: string | null
      cost_micros: number
      cost_estimated: boolean
      observation: SeenObservation | null
      checkpoint_id: string
      /** A listener keeps what it brought from the model; absent for none. */
      veto?: ListenerVeto
    }
  | {
      tag: 'effect_reconciled'
      effect_id: string
      as: 'done' | 'failed' | 'unknown'
      by: 'target' | 'person'
      observation: SeenObservation | null
      checkpoint_id: string
      veto?: ListenerVeto
    }
  | { tag: 'resume'; fence: number }
  /** `rebuild`: the endpoint refused how it was asked; the next try is a request built anew (decision 39). */
  | {
      tag: 'model_failed'
      code: string
      provider_code: string | null
      status: number | null
      retry_in_ms: number | null
      rebuild: boolean
    }
  | { tag: 'retry_due'; effect_id: string; model: string }
  | { tag: 'model_interrupted'; reason: InterruptReason; code: string; provider_code: string | null; settled_tokens: number }
  | { tag: 'steer'; command_id: string; content_id: string; digest: string }
  | { tag: 'cancel'; settled_tokens: number }
  | { tag: 'limit_reached'; which: BudgetAxis; limit: number; needed: number; settled_tokens: number }
  | { tag: 'fail'; code: FailCode }
  /** The process leaves: what can be handed over is, the rest ends. `checkpoint_id`: null where nobody could take the run on. */
  | { tag: 'drain'; settled_tokens: number; checkpoint_id: string | null }
  /** Found by whoever took the run over: its owner is gone (M7, case Q7). `checkpoint_id`: as for `drain`. */
  | { tag: 'lease_expired'; settled_tokens: number; checkpoint_id: string | null }
  | { tag: 'queue_expired' }
  | { tag: 'accepted'; content_id: string; digest: string }
  | { tag: 'vetoed'; plugin: string; reason: string }
  /** Stands for one whose tag nobody here knows. */
  | { tag: 'unknown' }

export type CommandTag = RunCommand['tag']

/** Every tag of this protocol version. */
const tags: Readonly<Record<CommandTag, true>> = Object.freeze({
  start: true,
  context_projected: true,
  context_refused: true,
  context_vetoed: true,
  segments: true,
  model_finished: true,
  call_assessed: true,
  effect_settled: true,
  effect_reconciled: true,
  resume: true,
  model_failed: true,
  retry_due: true,
  model_interrupted: true,
  steer: true,
  cancel: true,
  limit_reached: true,
  fail: true,
  drain: true,
  lease_expired: true,
  queue_expired: true,
  accepted: true,
  vetoed: true,
  unknown: true,
})

/** A command as it may be taken in: one with a tag that nobody here knows is dropped whole, nothing of it stays (K7). */
export function knownCommand(command: RunCommand): RunCommand {
  return Object.hasOwn(tags, command.tag) ? command : { tag: 'unknown' }
}
