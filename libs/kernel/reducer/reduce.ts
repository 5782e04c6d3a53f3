import type { RunEvent } from './actions.ts'
import type { RunCommand } from './commands.ts'
import { REDUCER_VERSION } from './state.ts'
import { judgeCall } from './reduce-actions.ts'
import { abandonAction, endAfterAction, handOver, isOutUnheld, reconcileEffect, resume, settleEffect } from './reduce-effects.ts'
import { failTry, finishTurn, placeSegments, refuse, requestModel, retry, unknownEffect, vetoRequest } from './reduce-model.ts'
import type { RunLoopState } from './state.ts'
import { endOf, exhausted, fail, interrupt, startTurn, steerEvent, unchanged, vetoEvents } from './transitions.ts'
import type { Reduction } from './transitions.ts'

/**
 * The run loop (K4): pure; the same commands give the same states and actions, byte for byte. Every way a turn can end is an explicit
 * branch here. A command that the phase does not expect changes nothing: what is late is late.
 */
export function reduce(state: RunLoopState, command: RunCommand): Reduction {
  if (state.phase === 'ended') return unchanged(state)
  switch (command.tag) {
    case 'start':
      return state.phase === 'created' ? start(state, command) : unchanged(state)
    case 'context_projected':
      return state.phase === 'projecting' ? requestModel(state, command) : unchanged(state)
    case 'context_refused':
      return state.phase === 'projecting' ? refuse(state, command) : unchanged(state)
    case 'context_vetoed':
      return state.phase === 'projecting' ? vetoRequest(state, command) : unchanged(state)
    case 'segments':
      return state.phase === 'streaming' ? placeSegments(state, command) : unchanged(state)
    case 'model_finished':
      return state.phase === 'streaming' ? finishTurn(state, command) : unchanged(state)
    case 'model_failed':
      return state.phase === 'streaming' ? failTry(state, command) : unchanged(state)
    case 'retry_due':
      return state.phase === 'retrying' ? retry(state, command) : unchanged(state)
    case 'model_interrupted':
      if (state.phase !== 'streaming') return unchanged(state)
      return interrupt(state, {
        reason: command.reason,
        code: command.provider_code ?? command.code,
        first: unknownEffect(state, command.code, command.provider_code, command.settled_tokens),
      })
    case 'steer':
      return receiveSteer(state, command)
    case 'call_assessed':
      return state.phase === 'acting' ? judgeCall(state, command) : unchanged(state)
    case 'effect_settled':
      return settleEffect(state, command)
    case 'effect_reconciled':
      return reconcileEffect(state, command)
    case 'resume':
      return resume(state, command)
    case 'cancel':
      // An action that nobody has in hand is looked at first: its run ends when that is settled (case E12).
      if (isOutUnheld(state)) return unchanged(state)
      return (
        endAfterAction(state, command.tag, { reason: 'cancelled', which: null, limit: 0, needed: 0, checkpoint_id: null }) ??
        interrupt(state, { reason: 'cancelled', abort: true, first: unknownEffect(state, 'aborted', null, command.settled_tokens) })
      )
    case 'limit_reached': {
      const { which, limit, needed } = command
      const first = unknownEffect(state, 'aborted', null, command.settled_tokens)
      return (
        endAfterAction(state, command.tag, { reason: 'budget_exhausted', which, limit, needed, checkpoint_id: null }) ??
        exhausted(state, { which, limit, needed, first, abort: true })
      )
    }
    case 'drain':
      return (
        endAfterAction(state, command.tag, { reason: 'drained', which: null, limit: 0, needed: 0, checkpoint_id: command.checkpoint_id }) ??
        handOver(state, command.checkpoint_id) ??
        interrupt(state, { reason: 'drained', abort: true, first: unknownEffect(state, 'aborted', null, command.settled_tokens) })
      )
    case 'lease_expired':
      return (
        handOver(state, command.checkpoint_id) ??
        interrupt(state, {
          reason: 'lease_expired',
          first: [...unknownEffect(state, 'owner_lost', null, command.settled_tokens), ...abandonAction(state, 'owner_lost')],
        })
      )
    case 'queue_expired':
      return state.phase === 'created' ? interrupt(state, { reason: 'queue_expired', first: [] }) : unchanged(state)
    case 'fail':
      return fail(state, {
        code: command.code,
        rule: null,
        first: [...unknownEffect(state, 'aborted', null, state.effect?.reserved_tokens ?? 0), ...abandonAction(state, 'aborted')],
      })
    case 'unknown':
      return { state, actions: [{ type: 'record', events: [{ type: 'command.dropped', payload: {} }] }] }
    case 'accepted':
      return state.phase === 'accepting' ? finish(state, command) : unchanged(state)
    case 'vetoed':
      if (state.phase !== 'accepting') return unchanged(state)
      return interrupt(state, {
        reason: 'veto',
        code: command.plugin,
        first: vetoEvents('result.pre_accept', command),
      })
  }
}

function start(state: RunLoopState, command: Extract<RunCommand, { tag: 'start' }>): Reduction {
  const started: RunEvent = {
    type: 'run.started',
    payload: {
      fence: command.fence,
      persona_version_id: command.persona_version_id,
      profile_hash: command.profile_hash,
      reducer_version: REDUCER_VERSION,
      bundle: command.bundle,
      ...(command.inherited === null ? {} : { inherited: command.inherited }),
    },
  }
  return startTurn({ ...state, ...command.inherited, limits: command.limits }, [started])
}

function receiveSteer(state: RunLoopState, command: Extract<RunCommand, { tag: 'steer' }>): Reduction {
  const { command_id, content_id, digest } = command
  const steer = { command_id, content_id, digest }
  // Once the answer is being accepted no further turn starts: the interjection is recorded as unused, not lost (case Q6).
  if (state.phase === 'accepting') return { state, actions: [{ type: 'record', events: [steerEvent(steer, false, state.segments)] }] }
  const accepted: RunEvent = {
    type: 'command.accepted',
    payload: { tag: 'steer', command_id },
    content_digests: [{ content_id, digest }],
  }
  return { state: { ...state, steers: [...state.steers, steer] }, actions: [{ type: 'record', events: [accepted] }] }
}

function finish(state: RunLoopState, command: Extract<RunCommand, { tag: 'accepted' }>): Reduction {
  const events: RunEvent[] = [
    {
      type: 'result.pre_accept',
      payload: { content_id: command.content_id, digest: command.digest },
      content_digests: [{ content_id: command.content_id, digest: command.digest }],
    },
    { type: 'run.finished', payload: endOf(state) },
  ]
  return {
    state: { ...state, phase: 'ended' },
    actions: [{ type: 'seal', outcome: 'finished', partial: false, said: state.deltas > 0, reason: null, checkpoint: null, events }],
  }
}
