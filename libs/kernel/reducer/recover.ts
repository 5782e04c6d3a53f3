import type { EventPayload, EventRecord } from '#contracts'
import { initialState } from './state.ts'
import type { RunLoopState, ToolCall } from './state.ts'

/**
 * The loop's state as its record shows it, for whoever takes a run over (Recoverable). Enough to end it honestly: an open effect is known,
 * what was said is counted.
 */
export function recoverState(candidateId: string | null, records: readonly EventRecord[]): RunLoopState {
  let state: Recovering = { ...initialState(candidateId), reserved_micros: 0 }
  for (const record of records) state = apply(state, record)
  const { reserved_micros: _, ...recovered } = state
  return recovered
}

/** `reserved_micros`: of the newest reservation, which its intent follows. */
type Recovering = RunLoopState & { reserved_micros: number }

function apply(state: Recovering, record: EventRecord): Recovering {
  switch (record.type) {
    case 'run.started': {
      const { inherited } = record.payload as EventPayload<'run.started'>
      return { ...state, ...inherited, phase: 'projecting' }
    }
    case 'turn.started':
      return { ...state, phase: 'projecting', turn: state.turn + 1, effect: null }
    case 'llm.requested': {
      const payload = record.payload as EventPayload<'llm.requested'>
      const effect = {
        id: payload.effect_id,
        reserved_tokens: payload.reserved_tokens,
        reserved_micros: state.reserved_micros,
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
    case 'command.accepted': {
      const { command_id } = record.payload as EventPayload<'command.accepted'>
      const [content] = record.content_digests
      const steer = content && command_id !== null ? [{ command_id, content_id: content.content_id, digest: content.digest }] : []
      return { ...state, steers: [...state.steers, ...steer] }
    }
    case 'steer.received': {
      const { command_id: commandId } = record.payload as EventPayload<'steer.received'>
      return { ...state, steers: state.steers.filter((steer) => steer.command_id !== commandId) }
    }
    case 'effect.intent': {
      const {
        effect_id,
        action_id,
        tool,
        tool_version = null,
        capability,
        consequence,
        constraints,
        content_id,
        arguments_hash,
      } = record.payload as EventPayload<'effect.intent'>
      const call: ToolCall = {
        action_id,
        tool,
        tool_version,
        content_id,
        digest: arguments_hash,
        phase: 'dispatched',
        effect_id,
        approval_id: null,
        capability,
        consequence,
        constraints,
        reserved_micros: state.reserved_micros,
      }
      return { ...state, phase: 'acting', calls: [...state.calls, call] }
    }
    case 'budget.reserved': {
      const { cost_micros = 0 } = record.payload as EventPayload<'budget.reserved'>
      return { ...state, reserved_micros: cost_micros }
    }
    case 'tool.executed': {
      const { action_id: actionId } = record.payload as EventPayload<'tool.executed'>
      return { ...state, phase: 'acting', calls: state.calls.filter((call) => call.action_id !== actionId) }
    }
    case 'effect.unknown': {
      const { effect_id: effectId } = record.payload as EventPayload<'effect.unknown'>
      return { ...state, calls: state.calls.filter((call) => call.effect_id !== effectId) }
    }
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
