import type {
  BudgetAxis,
  ContentDigest,
  EventPayload,
  FailCode,
  FinishReason,
  ForbiddenRule,
  InterruptReason,
  ModelPurpose,
} from '#contracts'

/** Hard limits of a run (K6); null = honestly not promised. Only ever lowered. */
export type RunLimits = { max_turns: number; max_wall_ms: number; max_tokens: number | null; max_tries: number; max_steers: number }

export type Usage = { prompt_tokens: number; completion_tokens: number; estimated: boolean }

type Projection = EventPayload<'context.projected'>

/**
 * Everything that can happen to a run. Readings (time, ids, draws, digests) arrive here, so that the reducer needs none (K4).
 */
export type RunCommand =
  | { tag: 'start'; fence: number; persona_version_id: string | null; profile_hash: string; bundle: string; limits: RunLimits }
  | {
      tag: 'context_projected'
      projection: Projection
      content_digests: ContentDigest[]
      effect_id: string
      purpose: ModelPurpose
      request_digest: string
      model: string
      reserved_tokens: number
      policy_version: number
    }
  | { tag: 'context_refused'; code: FailCode; rule: ForbiddenRule | null; policy_version: number }
  | { tag: 'segments'; segments: { kind: 'text' | 'reasoning'; digest: string }[]; content_id: string }
  | { tag: 'model_finished'; finish_reason: FinishReason; usage: Usage }
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
  | { tag: 'drain'; settled_tokens: number }
  /** Found by whoever took the run over: its owner is gone (M7, case Q7). */
  | { tag: 'lease_expired'; settled_tokens: number }
  | { tag: 'queue_expired' }
  | { tag: 'accepted'; content_id: string; digest: string }
  | { tag: 'vetoed'; plugin: string; reason: string }

export type CommandTag = RunCommand['tag']
