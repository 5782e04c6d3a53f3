import type { ContentDigest, SuspendReason } from '#contracts'
import { admit } from '../admission/admit.ts'
import type { RunAction, RunEvent } from './actions.ts'
import type { RunCommand, SeenObservation } from './commands.ts'
import { spentMicros } from './state.ts'
import type { RunLoopState, RunPhase, ToolCall } from './state.ts'
import { exhausted, interrupt, nextTurn, unchanged, vetoEvents } from './transitions.ts'
import type { Reduction } from './transitions.ts'

/**
 * The acting half of the loop: what the model proposed is judged one by one, in its order, and done only after its intent is durable; nothing
 * that comes after an unfinished action passes it (spec/2 "Run loop with actions", `003…` §2). Pure.
 */

type Assessed = Extract<RunCommand, { tag: 'call_assessed' }>
type Settled = Extract<RunCommand, { tag: 'effect_settled' }>

/** The turn's proposals go on trial. `first`: what the turn itself still has to record. */
export function beginActing(state: RunLoopState, first: RunEvent[]): Reduction {
  return goOn({ ...state, phase: 'acting' }, first)
}

/** The next proposal, or the next turn where none is left. */
function goOn(state: RunLoopState, first: RunEvent[]): Reduction {
  const next = state.calls.find((call) => call.phase === 'proposed' || call.phase === 'waiting')
  const record: RunAction[] = first.length > 0 ? [{ type: 'record', events: first }] : []
  if (next && state.ending === null) {
    return { state, actions: [...record, { type: 'assess_call', action_id: next.action_id }] }
  }
  if (state.ending !== null) return endAsMeant(state, first)
  const errors = state.limits.max_consecutive_tool_errors
  if (state.tool_errors > 0 && state.tool_errors >= errors) {
    return exhausted(state, {
      which: 'max_consecutive_tool_errors',
      limit: errors,
      needed: state.tool_errors + 1,
      first,
    })
  }
  return nextTurn(state, first)
}

/** Where a run stands when another process can take it on: between words, whatever it did (`003…` §4). */
const handedOver: ReadonlySet<RunPhase> = new Set<RunPhase>(['projecting', 'retrying', 'acting', 'suspended'])

/**
 * Another process takes the run on from a checkpoint; null where nobody can, or where words are coming in, which nobody can take over. An
 * action that is out is looked at by whoever resumes.
 */
export function handOver(state: RunLoopState, checkpointId: string | null): Reduction | null {
  if (checkpointId === null || !handedOver.has(state.phase)) return null
  // An end that was this very handing over has come.
  const ending = state.ending?.checkpoint_id === null ? state.ending : null
  return suspend({ ...state, effect: null, ending }, { reason: 'waiting_for_effect', checkpointId, first: [], approval: null })
}

/** Somebody wanted the run to end while an action was out: it ends now that nothing is. */
function endAsMeant(state: RunLoopState, first: RunEvent[]): Reduction {
  if (state.ending === null) return unchanged(state)
  const { reason, which, limit, needed, checkpoint_id: checkpointId } = state.ending
  if (checkpointId !== null) {
    return suspend({ ...state, ending: null }, { reason: 'waiting_for_effect', checkpointId, first, approval: null })
  }
  if (which !== null) return exhausted(state, { which, limit, needed, first })
  return interrupt(state, { reason, first })
}

/** What the loop knows of a call, with one change. */
function withCall(state: RunLoopState, actionId: string, change: Partial<ToolCall>): RunLoopState {
  return { ...state, calls: state.calls.map((call) => (call.action_id === actionId ? { ...call, ...change } : call)) }
}

/** The verdict on one proposal, from the facts alone (K2), and what follows from it. */
export function judgeCall(state: RunLoopState, command: Assessed): Reduction {
  const call = state.calls.find(({ action_id: id }) => id === command.action_id)
  if (!call || (call.phase !== 'proposed' && call.phase !== 'waiting')) return unchanged(state)
  const decision = admit(command.facts)
  const proposed: RunEvent[] = call.phase === 'waiting' ? [] : [preExecute(state, call)]
  const judged: RunEvent[] = [
    ...proposed,
    ...vetoEvents('tool.pre_execute', command.veto),
    {
      type: 'policy.decided',
      payload: {
        gate: 'admission',
        verdict: decision.verdict,
        rule: decision.reason === 'egress_under_untrusted' ? 'egress_under_untrusted' : null,
        policy_version: decision.policy_version,
        action_id: call.action_id,
        reason: decision.reason,
        facts: command.facts,
      },
    },
  ]
  const placed = call.phase === 'waiting' ? state : { ...state, parts: state.parts + 1, part_kind: null }
  if (decision.verdict === 'forbidden' || decision.capability === null) {
    return observe(placed, call, { status: 'denied', reason: decision.reason, first: judged })
  }
  if (decision.verdict === 'ask') return ask(placed, call, command, judged, decision.capability)
  const refusal = budgetRefusal(placed, command)
  if (refusal) return exhausted(placed, { ...refusal, first: judged })
  const reserved = command.price_micros ?? 0
  const dispatched = withCall(placed, call.action_id, {
    phase: 'dispatched',
    effect_id: command.effect_id,
    consequence: command.consequence,
    capability: decision.capability,
    reserved_micros: reserved,
    constraints: decision.constraints,
  })
  return {
    state: dispatched,
    actions: [
      {
        type: 'record',
        events: [
          ...judged,
          { type: 'budget.reserved', payload: { effect_id: command.effect_id, tokens: 0, cost_micros: reserved } },
          {
            type: 'effect.intent',
            payload: {
              effect_id: command.effect_id,
              action_id: call.action_id,
              tool: call.tool,
              capability: decision.capability,
              consequence: command.consequence,
              constraints: decision.constraints,
              approval_id: decision.reason === 'approved' ? call.approval_id : null,
              content_id: call.content_id,
              arguments_hash: call.digest,
            },
            content_digests: [{ content_id: call.content_id, digest: call.digest }],
          },
        ],
      },
      { type: 'dispatch_effect', effect_id: command.effect_id, action_id: call.action_id, constraints: decision.constraints },
    ],
  }
}

function preExecute(state: RunLoopState, call: ToolCall): RunEvent {
  return {
    type: 'tool.pre_execute',
    payload: {
      action_id: call.action_id,
      tool: call.tool,
      turn: state.turn,
      content_id: call.content_id,
      after_segments: state.segments,
    },
    content_digests: [{ content_id: call.content_id, digest: call.digest }],
  }
}

/** A bound on cost without a known price fails closed (K6). */
function budgetRefusal(state: RunLoopState, { price_micros: price }: Assessed) {
  const limit = state.limits.max_cost_micros
  if (limit === null) return null
  const needed = spentMicros(state) + (price ?? limit + 1)
  return needed > limit ? ({ which: 'max_cost_micros', limit, needed } as const) : null
}

/** The owner is asked: the run waits without its seat, and so does everything after this action. */
function ask(
  state: RunLoopState,
  call: ToolCall,
  command: Assessed,
  first: RunEvent[],
  capability: NonNullable<ToolCall['capability']>,
): Reduction {
  const waiting = withCall(state, call.action_id, { phase: 'waiting', approval_id: command.approval_id, capability })
  const requested: RunEvent[] =
    command.facts.approval === null
      ? [
          {
            type: 'approval.requested',
            payload: {
              approval_id: command.approval_id,
              action_id: call.action_id,
              tool: call.tool,
              capability,
              expires_at: command.expires_at,
            },
          },
        ]
      : []
  return suspend(waiting, {
    reason: 'waiting_for_approval',
    checkpointId: command.checkpoint_id,
    first: [...first, ...requested],
    approval: command.facts.approval === null ? { approval_id: command.approval_id, action_id: call.action_id } : null,
  })
}

function suspend(
  state: RunLoopState,
  waiting: {
    reason: SuspendReason
    checkpointId: string
    first: RunEvent[]
    approval: Extract<RunAction, { type: 'suspend' }>['approval']
  },
): Reduction {
  const { reason, checkpointId, first, approval } = waiting
  const next: RunLoopState = { ...state, phase: 'suspended', waits_for: { reason, checkpoint_id: checkpointId } }
  const suspended: RunEvent = { type: 'run.suspended', payload: { reason, checkpoint_id: checkpointId } }
  return {
    state: next,
    actions: [{ type: 'suspend', reason, checkpoint_id: checkpointId, state: next, events: [...first, suspended], approval }],
  }
}

/** One observation, and on to the next proposal. */
function observe(
  state: RunLoopState,
  call: ToolCall,
  seen: {
    status: 'done' | 'failed' | 'denied' | 'unknown'
    reason: string | null
    observation?: Settled['observation']
    first: RunEvent[]
  },
): Reduction {
  const { status, reason, observation = null, first } = seen
  const executed: RunEvent = {
    type: 'tool.executed',
    payload: {
      action_id: call.action_id,
      tool: call.tool,
      status,
      reason,
      content_id: observation?.content_id ?? null,
      // A refusal is our own word.
      trust: observation?.trust ?? 'workspace',
      after_segments: state.segments,
    },
    content_digests: observation ? [observed(observation)] : [],
  }
  // What goes on into the run was looked at before, as the answer is (spec/2 "Events").
  const taken: RunEvent[] = observation
    ? [
        {
          type: 'result.pre_accept',
          payload: { content_id: observation.content_id, digest: observation.digest },
          content_digests: [observed(observation)],
        },
      ]
    : []
  const settled = withCall(state, call.action_id, { phase: 'settled' })
  const tool_errors = status === 'done' ? 0 : settled.tool_errors + 1
  return goOn({ ...settled, tool_errors, parts: settled.parts + 1, part_kind: null, phase: 'acting' }, [...first, executed, ...taken])
}

function observed({ content_id, digest }: SeenObservation): ContentDigest {
  return { content_id, digest }
}

/** What came of an effect that was sent, or was kept back at the last moment. */
export function settleEffect(state: RunLoopState, command: Settled): Reduction {
  const call = state.calls.find(({ effect_id: id, phase }) => id === command.effect_id && phase === 'dispatched')
  if (!call || state.phase !== 'acting') return unchanged(state)
  if (command.outcome === 'pending') {
    return suspend(state, { reason: 'waiting_for_effect', checkpointId: command.checkpoint_id, first: [], approval: null })
  }
  const spent = { ...state, spent_micros: state.spent_micros + command.cost_micros }
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

/** What of an outcome the model gets to see. The action happened all the same: that alone it is told where a listener says no. */
function acceptedOf({ observation, veto }: Pick<Settled, 'observation' | 'veto'>): {
  observation: Settled['observation']
  withheld: RunEvent[]
} {
  return { observation: veto ? null : observation, withheld: vetoEvents('result.pre_accept', veto) }
}

/** Unknown is never sent again: without a consequence it is given up and charged, else a person settles it (K3, decision 20). */
function unknownOutcome(state: RunLoopState, call: ToolCall, command: Settled, first: RunEvent[]): Reduction {
  if (call.consequence === 'none') {
    return observe(state, call, {
      status: 'unknown',
      reason: command.code ?? 'other',
      first: [...first, { type: 'effect.reconciled', payload: { effect_id: command.effect_id, as: 'abandoned', by: 'kernel' } }],
    })
  }
  const asked = withCall(state, call.action_id, { phase: 'unknown' })
  return suspend(asked, { reason: 'reconcile_required', checkpointId: command.checkpoint_id, first, approval: null })
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

/** An end that was asked for while an action is out: it waits for what becomes of that, since nobody can call it back. */
export function endAfterAction(state: RunLoopState, tag: RunCommand['tag'], ending: NonNullable<RunLoopState['ending']>): Reduction | null {
  if (state.phase !== 'acting' || !state.calls.some(isOut)) return null
  const accepted: RunEvent = { type: 'command.accepted', payload: { tag, command_id: null } }
  return {
    state: { ...state, ending: state.ending ?? ending },
    actions: [{ type: 'record', events: [accepted] }, { type: 'abort_effect' }],
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
