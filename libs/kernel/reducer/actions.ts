import type { Constraint, ContentDigest, EventPayload, EventType, SuspendReason } from '#contracts'
import type { RunLoopState } from './state.ts'

/** An event as the reducer decides it; the envelope is put on by whoever writes it. */
export type RunEvent<T extends EventType = EventType> = {
  [K in T]: { type: K; payload: EventPayload<K>; content_digests?: ContentDigest[] }
}[T]

/** Where a segment of a delta lies: its ordinal in the run and its part in the answer. */
export type PlacedSegment = { ordinal: number; part: number; kind: 'text' | 'reasoning' }

export type SealOutcome = 'finished' | 'interrupted' | 'failed'

/** What the driver is asked to do, in order. It decides nothing (K9). */
export type RunAction =
  /** Write events; `segments` places the texts that came with a `segments` command. */
  | { type: 'record'; events: RunEvent[]; segments?: PlacedSegment[] }
  | { type: 'project_context'; turn: number }
  | { type: 'request_model'; effect_id: string }
  | { type: 'abort_model' }
  | { type: 'wait_retry'; milliseconds: number }
  /** Gather the facts on one proposed action. */
  | { type: 'assess_call'; action_id: string }
  /** The intent is durable: send it, once. */
  | { type: 'dispatch_effect'; effect_id: string; action_id: string; constraints: readonly Constraint[] }
  /** Ask what became of an effect that nobody heard of again; never send it. */
  | { type: 'reconcile_effect'; effect_id: string; action_id: string }
  | { type: 'abort_effect' }
  /** Stop without an end: the events, the checkpoint and the question, if there is one, in one transaction; the seat is free. */
  | {
      type: 'suspend'
      reason: SuspendReason
      checkpoint_id: string
      state: RunLoopState
      events: RunEvent[]
      approval: { approval_id: string; action_id: string } | null
    }
  /** Fold the answer and let the guards look at it. */
  | { type: 'accept_answer' }
  /**
   * The end: fold and seal the candidate (if there is any text), write the last events, free the seat, all in one transaction. `checkpoint`:
   * where the loop stood, for a run that goes on with what this one had done; null where there is nothing to go on with.
   */
  | {
      type: 'seal'
      outcome: SealOutcome
      partial: boolean
      /** Whether this run said anything of its own. */
      said: boolean
      reason: string | null
      checkpoint: RunLoopState | null
      events: RunEvent[]
    }
