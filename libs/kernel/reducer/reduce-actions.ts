import type { ContentDigest, SuspendReason } from '#contracts'
import { admit } from '../admission/admit.ts'
import type { RunAction, RunEvent } from './actions.ts'
import type { RunCommand, SeenObservation } from './commands.ts'
import { spentMicros } from './state.ts'
import type { RunLoopState, ToolCall } from './state.ts'
import { exhausted, interrupt, nextTurn, unchanged, vetoEvents } from './transitions.ts'
import type { Reduction } from './transitions.ts'

/**
 * The acting half of the loop: what the model proposed is judged one by one, in its order, and done only after its intent is durable; nothing
 * that comes after an unfinished action passes it (spec/2 "Run loop with actions", `003…` §2). Pure.
 */

type Assessed = Extract<RunCommand, { tag: 'call_assessed' }>

/** The turn's proposals go on trial. `first`: what the turn itself still has to record. */
export function beginActing(state: RunLoopState, first: RunEvent[]): Reduction {
  return goOn({ ...state, phase: 'acting' }, first)
}

/** The next proposal, or the next turn where none is left. */
export function goOn(state: RunLoopState, first: RunEvent[]): Reduction {
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

/** Somebody wanted the run to end while an action was out: it ends now that nothing is. */
function endAsMeant(state: RunLoopState, first: RunEvent[]): Reduction {
  if (state.ending === null) return unchanged(state)
  const { reason, which, limit, needed, checkpoint_id: checkpointId } = state.ending
  if (checkpointId !== null) {
    return suspend(state, { reason: 'waiting_for_effect', checkpointId, first, approval: null })
  }
  if (which !== null) return exhausted(state, { which, limit, needed, first })
  return interrupt(state, { reason, first })
}

/** What the loop knows of a call, with one change. */
export function withCall(state: RunLoopState, actionId: string, change: Partial<ToolCall>): RunLoopState {
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
              ...(call.tool_version === null ? {} : { tool_version: call.tool_version }),
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

export function suspend(
  state: RunLoopState,
  waiting: {
    reason: SuspendReason
    checkpointId: string
    first: RunEvent[]
    approval: Extract<RunAction, { type: 'suspend' }>['approval']
  },
): Reduction {
  const { reason, checkpointId, first, approval } = waiting
  // An end that was only to hand the run over has come with this.
  const ending = state.ending?.checkpoint_id === null ? state.ending : null
  const next: RunLoopState = { ...state, phase: 'suspended', ending, waits_for: { reason, checkpoint_id: checkpointId } }
  const suspended: RunEvent = { type: 'run.suspended', payload: { reason, checkpoint_id: checkpointId } }
  return {
    state: next,
    actions: [{ type: 'suspend', reason, checkpoint_id: checkpointId, state: next, events: [...first, suspended], approval }],
  }
}

/** One observation, and on to the next proposal. */
export function observe(
  state: RunLoopState,
  call: ToolCall,
  seen: {
    status: 'done' | 'failed' | 'denied' | 'unknown'
    reason: string | null
    observation?: SeenObservation | null
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
