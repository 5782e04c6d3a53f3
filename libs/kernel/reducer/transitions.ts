import type { BudgetAxis, FailCode, ForbiddenRule, InterruptReason } from '#contracts'
import type { RunAction, RunEvent } from './actions.ts'
import type { ListenerVeto } from './commands.ts'
import type { RunLoopState } from './state.ts'

export type Reduction = { state: RunLoopState; actions: RunAction[] }

/** Ways in which a run goes on or ends, shared by the branches of the loop. All pure. */

export function unchanged(state: RunLoopState): Reduction {
  return { state, actions: [] }
}

/** Ends this turn and begins the next, in which the interjections take effect; or ends the run where no turn is left for them. */
export function nextTurn(state: RunLoopState, before: RunEvent[]): Reduction {
  if (state.turn >= state.limits.max_turns) {
    return exhausted(state, { which: 'max_turns', limit: state.limits.max_turns, needed: state.turn + 1, first: before })
  }
  const received = state.steers.map((steer) => steerEvent(steer, true, state.segments))
  const finished: RunEvent = { type: 'turn.finished', payload: { turn: state.turn } }
  return startTurn({ ...state, steers: [], parts: state.parts + received.length }, [...before, ...received, finished])
}

export function startTurn(state: RunLoopState, before: RunEvent[]): Reduction {
  const turn = state.turn + 1
  return {
    state: { ...state, phase: 'projecting', turn, tries: 0, part_kind: null, effect: null, calls: [] },
    actions: [
      { type: 'record', events: [...before, { type: 'turn.started', payload: { turn } }] },
      { type: 'project_context', turn },
    ],
  }
}

/** A budget that is used up: said which, and the run ends where it stands (K6). */
export function exhausted(
  state: RunLoopState,
  bound: { which: BudgetAxis; limit: number; needed: number; first: RunEvent[]; abort?: boolean },
): Reduction {
  const { which, limit, needed, first, abort } = bound
  const told: RunEvent = { type: 'budget.exhausted', payload: { which, limit, needed } }
  return interrupt(state, { reason: 'budget_exhausted', which, first: [...first, told], ...(abort ? { abort } : {}) })
}

/** A listener's no, on record; none for nobody's. */
export function vetoEvents(node: 'llm.pre_request' | 'tool.pre_execute' | 'result.pre_accept', veto: ListenerVeto | undefined): RunEvent[] {
  return veto === undefined ? [] : [{ type: 'veto', payload: { plugin: veto.plugin, node, reason: veto.reason } }]
}

export function steerEvent(steer: RunLoopState['steers'][number], used: boolean, afterSegments: number): RunEvent {
  return {
    type: 'steer.received',
    payload: { command_id: steer.command_id, content_id: steer.content_id, used, after_segments: afterSegments },
    content_digests: [{ content_id: steer.content_id, digest: steer.digest }],
  }
}

/** Ends that are nobody's fault and nobody's wish: what was done so far is kept for a run that goes on with it (K6, spec/2 "Events"). */
const leavesCheckpoint: ReadonlySet<InterruptReason> = new Set<InterruptReason>(['budget_exhausted', 'drained', 'length'])

export function interrupt(
  state: RunLoopState,
  ending: { reason: InterruptReason; which?: BudgetAxis; code?: string; abort?: boolean; first: RunEvent[] },
): Reduction {
  const checkpoint = leavesCheckpoint.has(ending.reason) ? state : null
  const events: RunEvent[] = [
    ...ending.first,
    ...unusedSteers(state),
    {
      type: 'run.interrupted',
      payload: {
        reason: ending.reason,
        which: ending.which ?? null,
        code: ending.code ?? null,
        ...(checkpoint === null ? {} : { checkpoint: true }),
        ...endOf(state),
      },
    },
  ]
  const said = state.deltas > 0
  const seal: RunAction = { type: 'seal', outcome: 'interrupted', partial: true, said, reason: ending.reason, checkpoint, events }
  return { state: ended(state), actions: ending.abort ? [{ type: 'abort_model' }, seal] : [seal] }
}

export function fail(state: RunLoopState, ending: { code: FailCode; rule: ForbiddenRule | null; first: RunEvent[] }): Reduction {
  const events: RunEvent[] = [
    ...ending.first,
    ...unusedSteers(state),
    { type: 'run.failed', payload: { code: ending.code, rule: ending.rule, ...endOf(state) } },
  ]
  return {
    state: ended(state),
    actions: [
      { type: 'abort_model' },
      { type: 'seal', outcome: 'failed', partial: true, said: state.deltas > 0, reason: ending.code, checkpoint: null, events },
    ],
  }
}

function ended(state: RunLoopState): RunLoopState {
  return { ...state, phase: 'ended', steers: [] }
}

function unusedSteers(state: RunLoopState): RunEvent[] {
  return state.steers.map((steer) => steerEvent(steer, false, state.segments))
}

/** A sprout without a delta never becomes a node: its end names no candidate (spec/2). */
export function endOf(state: RunLoopState) {
  return { candidate_id: state.deltas > 0 ? state.candidate_id : null, delta_count: state.deltas, turns: state.turn }
}
