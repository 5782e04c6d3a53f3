import type { RunAction, RunEvent } from './actions.ts'
import type { RunCommand } from './commands.ts'
import { goOn, observe, suspend, withCall } from './reduce-actions.ts'
import type { RunLoopState, RunPhase, ToolCall } from './state.ts'
import { unchanged, vetoEvents } from './transitions.ts'
import type { Reduction } from './transitions.ts'

/**
 * What becomes of actions that are out, and of runs that wait for them: settled, asked after, handed over, taken up again (K3, spec/2 "Run loop
 * with actions", `003…` §4). Pure.
 */

type Settled = Extract<RunCommand, { tag: 'effect_settled' }>

/** Where a run stands when another process can take it on: between words, whatever it did (`003…` §4). */
const handedOver: ReadonlySet<RunPhase> = new Set<RunPhase>(['projecting', 'retrying', 'acting', 'suspended'])

/**
 * Another process takes the run on from a checkpoint; null where nobody can, or where words are coming in, which nobody can take over. An
 * action that is out is looked at by whoever resumes.
 */
export function handOver(state: RunLoopState, checkpointId: string | null): Reduction | null {
  if (checkpointId === null || !handedOver.has(state.phase)) return null
  return suspend({ ...state, effect: null }, { reason: 'waiting_for_effect', checkpointId, first: [], approval: null })
}

/** What came of an effect that was sent, or was kept back at the last moment. */
export function settleEffect(state: RunLoopState, command: Settled): Reduction {
  const call = state.calls.find(({ effect_id: id, phase }) => id === command.effect_id && phase === 'dispatched')
  if (!call || state.phase !== 'acting') return unchanged(state)
  if (command.outcome === 'pending') return lookAgain(state, call, command)
  const isTakenBack = command.outcome === 'denied' && command.code === 'cancelled'
  const spent = {
    ...state,
    spent_micros: state.spent_micros + command.cost_micros,
    // Whoever kept it back knows of a cancel that the loop has not heard of yet.
    ending: isTakenBack && (state.ending === null || state.ending.checkpoint_id !== null) ? cancelled : state.ending,
  }
  const settled: RunEvent = {
    type: 'budget.settled',
    payload: { effect_id: command.effect_id, tokens: 0, cost_micros: command.cost_micros, estimated: command.cost_estimated },
  }
  const code = command.code ?? 'other'
  const { observation, withheld } = acceptedOf(command)
  switch (command.outcome) {
    case 'done':
      return observe(spent, call, {
        status: 'done',
        reason: command.veto ? 'vetoed' : null,
        observation,
        first: [
          { type: 'tool.done', payload: { effect_id: command.effect_id, content_id: observation?.content_id ?? null } },
          settled,
          ...withheld,
        ],
      })
    case 'denied':
    case 'failed':
      return observe(spent, call, {
        status: command.outcome,
        reason: code,
        observation,
        first: [{ type: 'effect.failed', payload: { effect_id: command.effect_id, code } }, settled, ...withheld],
      })
    case 'unknown':
      return unknownOutcome(spent, call, command, [{ type: 'effect.unknown', payload: { effect_id: command.effect_id, code } }, settled])
  }
}

/** How often a run waits for one look at a target, ever more seldom (`003…` §3). */
const LOOKS_MAX = 40

/**
 * Nothing was sent, since nobody could tell whether it happened already: it waits, and is looked at again. That has an end: what was never sent
 * is given up, and the model told; what somebody else may have sent is unknown.
 */
function lookAgain(state: RunLoopState, call: ToolCall, command: Settled): Reduction {
  const looks = (call.looks ?? 0) + 1
  if (looks < LOOKS_MAX) {
    return suspend(withCall(state, call.action_id, { looks }), {
      reason: 'waiting_for_effect',
      checkpointId: command.checkpoint_id,
      first: [],
      approval: null,
    })
  }
  if (command.code !== 'claimed_elsewhere') return settleEffect(state, { ...command, outcome: 'failed' })
  return settleEffect(state, { ...command, outcome: 'unknown', cost_micros: call.reserved_micros, cost_estimated: true })
}

const cancelled: NonNullable<RunLoopState['ending']> = { reason: 'cancelled', which: null, limit: 0, needed: 0, checkpoint_id: null }

/** What of an outcome the model gets to see. The action happened all the same: that alone it is told where a listener says no. */
function acceptedOf({ observation, veto }: Pick<Settled, 'observation' | 'veto'>): {
  observation: Settled['observation']
  withheld: RunEvent[]
} {
  return { observation: veto ? null : observation, withheld: vetoEvents('result.pre_accept', veto) }
}

/** Unknown is never sent again: without a consequence it is given up and charged, else the target is asked, or a person (K3, decision 20). */
function unknownOutcome(state: RunLoopState, call: ToolCall, command: Settled, first: RunEvent[]): Reduction {
  if (call.consequence === 'none') {
    return observe(state, call, {
      status: 'unknown',
      reason: command.code ?? 'other',
      first: [...first, { type: 'effect.reconciled', payload: { effect_id: command.effect_id, as: 'abandoned', by: 'kernel' } }],
    })
  }
  return {
    state: withCall(state, call.action_id, { phase: 'unknown' }),
    actions: [
      { type: 'record', events: first },
      { type: 'reconcile_effect', effect_id: command.effect_id, action_id: call.action_id },
    ],
  }
}

/** The run has its seat back: what it waited for is looked at anew. */
export function resume(state: RunLoopState, command: Extract<RunCommand, { tag: 'resume' }>): Reduction {
  if (state.phase !== 'suspended' || state.waits_for === null) return unchanged(state)
  const resumed: RunEvent = {
    type: 'run.resumed',
    payload: { fence: command.fence, checkpoint_id: state.waits_for.checkpoint_id },
  }
  const acting: RunLoopState = { ...state, phase: 'acting', waits_for: null }
  const out = acting.calls.find(isOut)
  if (acting.calls.length === 0) {
    // Handed over before the turn's request was sent.
    return {
      state: { ...acting, phase: 'projecting', tries: 0 },
      actions: [
        { type: 'record', events: [resumed] },
        { type: 'project_context', turn: acting.turn },
      ],
    }
  }
  if (!out || out.effect_id === null) return goOn(acting, [resumed])
  const { effect_id, action_id, constraints } = out
  // What was said to be unknown is only asked after. Of anything else the ledger knows whether it was ever sent.
  const next: RunAction =
    out.phase === 'dispatched'
      ? { type: 'dispatch_effect', effect_id, action_id, constraints }
      : { type: 'reconcile_effect', effect_id, action_id }
  return { state: acting, actions: [{ type: 'record', events: [resumed] }, next] }
}

/** The truth about an unknown effect, from the target or from a person. */
export function reconcileEffect(state: RunLoopState, command: Extract<RunCommand, { tag: 'effect_reconciled' }>): Reduction {
  const call = state.calls.find(({ effect_id: id, phase }) => id === command.effect_id && phase === 'unknown')
  if (!call || state.phase !== 'acting') return unchanged(state)
  if (command.as === 'unknown') {
    return suspend(state, { reason: 'reconcile_required', checkpointId: command.checkpoint_id, first: [], approval: null })
  }
  const { observation, withheld } = acceptedOf(command)
  const told = command.veto ? 'vetoed' : null
  return observe(state, call, {
    status: command.as === 'done' ? 'done' : 'failed',
    reason: command.as === 'done' ? told : 'reconciled_failed',
    observation,
    first: [{ type: 'effect.reconciled', payload: { effect_id: command.effect_id, as: command.as, by: command.by } }, ...withheld],
  })
}

function isOut({ phase }: ToolCall): boolean {
  return phase === 'dispatched' || phase === 'unknown'
}

/** An action is out and its run waits without an owner. */
export function isOutUnheld(state: RunLoopState): boolean {
  return state.phase === 'suspended' && state.calls.some(isOut)
}

/**
 * An end that was asked for while an action is out: it waits for what becomes of that, since nobody can call it back. Whoever only hands the
 * run over has no reason to break the action off.
 */
export function endAfterAction(state: RunLoopState, tag: RunCommand['tag'], ending: NonNullable<RunLoopState['ending']>): Reduction | null {
  if (state.phase !== 'acting' || !state.calls.some(isOut)) return null
  const accepted: RunEvent = { type: 'command.accepted', payload: { tag, command_id: null } }
  const abort: RunAction[] = ending.checkpoint_id === null ? [{ type: 'abort_effect' }] : []
  // Who wants it to end is heard over who only leaves.
  const isStronger = state.ending === null || (state.ending.checkpoint_id !== null && ending.checkpoint_id === null)
  return {
    state: { ...state, ending: isStronger ? ending : state.ending },
    actions: [{ type: 'record', events: [accepted] }, ...abort],
  }
}

/** The end of a run that nobody takes on while an action is out: nobody knows what became of it, which is said and charged once. */
export function abandonAction(state: RunLoopState, code: string): RunEvent[] {
  if (state.phase !== 'acting' && state.phase !== 'suspended') return []
  return state.calls.flatMap((call): RunEvent[] => {
    if (call.phase !== 'dispatched' || call.effect_id === null) return []
    const unknown: RunEvent[] = [
      { type: 'effect.unknown', payload: { effect_id: call.effect_id, code } },
      {
        type: 'budget.settled',
        payload: { effect_id: call.effect_id, tokens: 0, cost_micros: call.reserved_micros, estimated: true },
      },
    ]
    if (call.consequence !== 'none') return unknown
    // What left nothing behind waits for nobody (decision 20).
    return [...unknown, { type: 'effect.reconciled', payload: { effect_id: call.effect_id, as: 'abandoned', by: 'kernel' } }]
  })
}
