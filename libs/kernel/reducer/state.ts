import type { ModelPurpose } from '#contracts'
import type { RunLimits } from './commands.ts'

/** Part of REDUCER versions: a suspended run resumes only under a supported one (decision 15). */
export const REDUCER_VERSION = 1

export type RunPhase = 'created' | 'projecting' | 'streaming' | 'retrying' | 'accepting' | 'ended'

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
  effect: { id: string; reserved_tokens: number; request_digest: string; purpose: ModelPurpose } | null
  limits: RunLimits
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
    limits: { max_turns: 1, max_wall_ms: 0, max_tokens: null, max_tries: 1, max_steers: 0 },
  }
}
