import type { BudgetAxis, CapabilityClass, Consequence, Constraint, InterruptReason, ModelPurpose, SuspendReason } from '#contracts'
import type { RunLimits } from './commands.ts'

/** Part of REDUCER versions: a suspended run resumes only under a supported one (decision 15). */
export const REDUCER_VERSION = 1

export type RunPhase = 'created' | 'projecting' | 'streaming' | 'retrying' | 'acting' | 'suspended' | 'accepting' | 'ended'

/** One action that the model proposed in this turn; ids are ours (case E22). */
export type ToolCall = {
  action_id: string
  tool: string
  /** The version that the model was shown, and the only one that the call can go to; null: it was shown no such tool. */
  tool_version: string | null
  /** Its arguments, as content. */
  content_id: string
  digest: string
  /** `unknown`: said to be so, and now asked after. */
  phase: 'proposed' | 'waiting' | 'dispatched' | 'unknown' | 'settled'
  effect_id: string | null
  approval_id: string | null
  capability: CapabilityClass | null
  consequence: Consequence | null
  constraints: readonly Constraint[]
  reserved_micros: number
  /** How often its target could not be asked whether it happened already; absent for never. */
  looks?: number
}

/** The whole state of a run's loop; a value, rebuilt from its commands (K4). */
export type RunLoopState = {
  phase: RunPhase
  candidate_id: string | null
  turn: number
  /** Tries of the current model call. */
  tries: number
  /** Segments recorded so far. */
  segments: number
  /** Events of type llm.delta so far. */
  deltas: number
  /** The answer's parts so far; a new one begins where the kind changes or an interjection took effect. */
  parts: number
  part_kind: 'text' | 'reasoning' | null
  steers: { command_id: string; content_id: string; digest: string }[]
  spent_tokens: number
  effect: { id: string; reserved_tokens: number; reserved_micros: number; request_digest: string; purpose: ModelPurpose } | null
  limits: RunLimits
  /** The current turn's actions, in the order in which they were proposed. */
  calls: readonly ToolCall[]
  /** Actions in a row that brought nothing. */
  tool_errors: number
  spent_micros: number
  /** What the run's embeddings were charged besides, as last told; absent for nothing. */
  embedding_micros?: number
  waits_for: { reason: SuspendReason; checkpoint_id: string } | null
  /** An end that waits for an action that is out. */
  ending: { reason: InterruptReason; which: BudgetAxis | null; limit: number; needed: number; checkpoint_id: string | null } | null
}

export function initialState(candidateId: string | null): RunLoopState {
  return {
    phase: 'created',
    candidate_id: candidateId,
    turn: 0,
    tries: 0,
    segments: 0,
    deltas: 0,
    parts: 0,
    part_kind: null,
    steers: [],
    spent_tokens: 0,
    effect: null,
    limits: {
      max_turns: 1,
      max_wall_ms: 0,
      max_tokens: null,
      max_cost_micros: null,
      max_consecutive_tool_errors: 1,
      max_tries: 1,
      max_steers: 0,
    },
    calls: [],
    tool_errors: 0,
    spent_micros: 0,
    waits_for: null,
    ending: null,
  }
}

/** Everything that counts towards the run's bound on cost, in micro-units (K6). */
export function spentMicros({ spent_micros, embedding_micros = 0 }: RunLoopState): number {
  return spent_micros + embedding_micros
}
