import type { EventPayload, EventRecord } from '#contracts'
import { initialState } from './state.ts'
import type { RunLoopState } from './state.ts'

/**
 * The loop's state as its record shows it, for whoever takes a run over (Recoverable). Enough to end it honestly: an open effect is known,
 * what was said is counted.
 */
export function recoverState(candidateId: string | null, records: readonly EventRecord[]): RunLoopState {
  let state = initialState(candidateId)
  for (const record of records) state = apply(state, record)
  return state
}

function apply(state: RunLoopState, record: EventRecord): RunLoopState {
  switch (record.type) {
    case 'run.started':
      return { ...state, phase: 'projecting' }
    case 'turn.started':
      return { ...state, phase: 'projecting', turn: state.turn + 1, effect: null }
    case 'llm.requested': {
      const payload = record.payload as EventPayload<'llm.requested'>
      const effect = {
        id: payload.effect_id,
        reserved_tokens: payload.reserved_tokens,
        request_digest: payload.request_digest,
        purpose: payload.purpose,
      }
      return { ...state, phase: 'streaming', tries: payload.try, effect }
    }
    case 'llm.delta': {
      const payload = record.payload as EventPayload<'llm.delta'>
      return { ...state, segments: payload.first_segment + payload.segments, deltas: state.deltas + 1 }
    }
    case 'llm.completed':
    case 'llm.unknown':
      return { ...state, phase: 'accepting', effect: null }
    case 'llm.failed':
      return { ...state, phase: 'retrying' }
    case 'run.finished':
    case 'run.interrupted':
    case 'run.failed':
      return { ...state, phase: 'ended' }
    default:
      return state
  }
}
