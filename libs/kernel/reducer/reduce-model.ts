import type { PlacedSegment, RunEvent } from './actions.ts'
import type { ProposedCall, RunCommand } from './commands.ts'
import { beginActing } from './reduce-actions.ts'
import { spentMicros } from './state.ts'
import type { RunLoopState } from './state.ts'
import { exhausted, fail, interrupt, nextTurn, unchanged, vetoEvents } from './transitions.ts'
import type { Reduction } from './transitions.ts'

/**
 * The speaking half of the loop: one model call of a turn, from its built request to its last word, its failure or its unknown end (K3, K6,
 * spec/2 "Events"). Pure.
 */

/** Most actions that one turn may propose; what the model proposes beyond is not taken up. */
const CALLS_MAX = 16

/** The request is built: reserved, its intent recorded, then sent; or the run ends where a bound does not let it (K3, K6). */
export function requestModel(before: RunLoopState, command: Extract<RunCommand, { tag: 'context_projected' }>): Reduction {
  const embedding_micros = Math.max(before.embedding_micros ?? 0, command.embedding_micros ?? 0)
  const state = embedding_micros > 0 ? { ...before, embedding_micros } : before
  const projected = projectedEvents(command)
  const needed = state.spent_tokens + command.reserved_tokens
  if (state.limits.max_tokens !== null && needed > state.limits.max_tokens) {
    return exhausted(state, { which: 'max_tokens', limit: state.limits.max_tokens, needed, first: projected })
  }
  const bound = state.limits.max_cost_micros
  if (bound !== null) {
    // A bound on cost without a known price fails closed (K6).
    const cost = spentMicros(state) + (command.reserved_micros ?? bound + 1)
    if (cost > bound) return exhausted(state, { which: 'max_cost_micros', limit: bound, needed: cost, first: projected })
  }
  const effect = {
    id: command.effect_id,
    reserved_tokens: command.reserved_tokens,
    reserved_micros: command.reserved_micros ?? 0,
    request_digest: command.request_digest,
    purpose: command.purpose,
  }
  // More than the first one where an earlier try of this call was refused and its request built anew.
  const tries = state.tries + 1
  return {
    state: { ...state, phase: 'streaming', tries, effect },
    actions: [
      {
        type: 'record',
        events: [
          ...projected,
          {
            type: 'policy.decided',
            payload: { gate: 'forbidden', verdict: 'autonomous', rule: null, policy_version: command.policy_version },
          },
          ...intent({ ...state, effect, tries }, command.model),
        ],
      },
      { type: 'request_model', effect_id: command.effect_id },
    ],
  }
}

/** What was to be sent, by reference, and how listeners rewrote it, in their order (spec/2 "Rewrites and the rebuild assertion"). */
function projectedEvents(command: Extract<RunCommand, { tag: 'context_projected' | 'context_vetoed' }>): RunEvent[] {
  const { projection, content_digests, rewrites = [] } = command
  return [
    { type: 'context.projected', payload: projection, content_digests },
    ...rewrites.map(({ plugin, plugin_version, reference, patch_content_id, digest }): RunEvent => ({
      type: 'rewrite',
      payload: { plugin, plugin_version, reference, patch_content_id },
      content_digests: [{ content_id: patch_content_id, digest }],
    })),
  ]
}

/** Nothing is sent: the run ends by the name of whoever said no. */
export function vetoRequest(state: RunLoopState, command: Extract<RunCommand, { tag: 'context_vetoed' }>): Reduction {
  return interrupt(state, {
    reason: 'veto',
    code: command.veto.plugin,
    first: [...projectedEvents(command), ...vetoEvents('llm.pre_request', command.veto)],
  })
}

/** Write-ahead: the reservation and the intent of a model request, before it is dispatched (K3, K6). */
function intent(state: RunLoopState, model: string): RunEvent[] {
  const { effect } = state
  if (!effect) return []
  return [
    {
      type: 'budget.reserved',
      payload: { effect_id: effect.id, tokens: effect.reserved_tokens, cost_micros: effect.reserved_micros },
    },
    {
      type: 'llm.requested',
      payload: {
        effect_id: effect.id,
        turn: state.turn,
        try: state.tries,
        purpose: effect.purpose,
        model,
        request_digest: effect.request_digest,
        reserved_tokens: effect.reserved_tokens,
      },
    },
  ]
}

export function refuse(state: RunLoopState, command: Extract<RunCommand, { tag: 'context_refused' }>): Reduction {
  const first: RunEvent[] = command.rule
    ? [
        {
          type: 'policy.decided',
          payload: { gate: 'forbidden', verdict: 'forbidden', rule: command.rule, policy_version: command.policy_version },
        },
      ]
    : []
  return fail(state, { code: command.code, rule: command.rule, first })
}

export function placeSegments(state: RunLoopState, command: Extract<RunCommand, { tag: 'segments' }>): Reduction {
  const placed: PlacedSegment[] = []
  let { parts, part_kind: partKind } = state
  for (const segment of command.segments) {
    if (segment.kind !== partKind) {
      parts += 1
      partKind = segment.kind
    }
    placed.push({ ordinal: state.segments + placed.length, part: parts - 1, kind: segment.kind })
  }
  return {
    state: { ...state, segments: state.segments + placed.length, deltas: state.deltas + 1, parts, part_kind: partKind },
    actions: [
      {
        type: 'record',
        segments: placed,
        events: [
          {
            type: 'llm.delta',
            payload: { first_segment: state.segments, segments: placed.length },
            content_digests: command.segments.map((segment, index) => ({
              content_id: command.content_id,
              digest: segment.digest,
              segment: state.segments + index,
            })),
          },
        ],
      },
    ],
  }
}

function settle(state: RunLoopState, spent: { tokens: number; micros: number; estimated: boolean }): RunEvent[] {
  const { tokens, micros, estimated } = spent
  return state.effect ? [{ type: 'budget.settled', payload: { effect_id: state.effect.id, tokens, cost_micros: micros, estimated } }] : []
}

/** A request whose outcome nobody knows: recorded, charged conservatively, never sent again (K3). */
export function unknownEffect(state: RunLoopState, code: string, providerCode: string | null, settledTokens: number): RunEvent[] {
  if (!state.effect || state.phase !== 'streaming') return []
  return [
    { type: 'llm.unknown', payload: { effect_id: state.effect.id, code, provider_code: providerCode, settled_tokens: settledTokens } },
    // Nobody knows what it will be charged: all that was reserved is.
    ...settle(state, { tokens: settledTokens, micros: state.effect.reserved_micros, estimated: true }),
  ]
}

export function finishTurn(state: RunLoopState, command: Extract<RunCommand, { tag: 'model_finished' }>): Reduction {
  // Only who answers acts: a job's model has nothing to propose (K2).
  const proposed = state.effect?.purpose === 'answer' ? command.calls.slice(0, CALLS_MAX) : []
  const completed = completedEvents(state, command)
  const spent = {
    ...state,
    spent_tokens: state.spent_tokens + command.usage.prompt_tokens + command.usage.completion_tokens,
    spent_micros: state.spent_micros + command.cost_micros,
    effect: null,
  }
  if (proposed.length > 0) {
    const calls = proposed.map((call) => ({
      ...call,
      phase: 'proposed' as const,
      effect_id: null,
      approval_id: null,
      capability: null,
      consequence: null,
      constraints: [],
      reserved_micros: 0,
    }))
    return beginActing({ ...spent, calls }, completed)
  }
  const finished: RunEvent = { type: 'turn.finished', payload: { turn: state.turn } }
  if (spent.steers.length > 0) {
    return nextTurn(spent, completed)
  }
  if (spent.deltas === 0) {
    return interrupt(spent, { reason: 'provider_error', code: 'empty_answer', first: [...completed, finished] })
  }
  // It broke off where the reply's tokens ended: half a sentence never passes for an answer (M7).
  if (command.finish_reason === 'length') return interrupt(spent, { reason: 'length', first: [...completed, finished] })
  return {
    state: { ...spent, phase: 'accepting' },
    actions: [{ type: 'record', events: [...completed, finished] }, { type: 'accept_answer' }],
  }
}

function completedEvents(
  state: RunLoopState,
  { usage, cost_micros, finish_reason, calls }: Extract<RunCommand, { tag: 'model_finished' }>,
): RunEvent[] {
  if (!state.effect) return []
  const proposed = calls.length > 0 ? { calls: calls.map(recordedCall) } : {}
  return [
    {
      type: 'llm.completed',
      payload: { effect_id: state.effect.id, finish_reason, ...usage, ...proposed },
      content_digests: calls.map(({ content_id, digest }) => ({ content_id, digest })),
    },
    ...settle(state, { tokens: usage.prompt_tokens + usage.completion_tokens, micros: cost_micros, estimated: usage.estimated }),
  ]
}

function recordedCall({ action_id, tool, tool_version: version, content_id }: ProposedCall) {
  return { action_id, tool, ...(version === null ? {} : { tool_version: version }), content_id }
}

export function failTry(state: RunLoopState, command: Extract<RunCommand, { tag: 'model_failed' }>): Reduction {
  if (!state.effect) return unchanged(state)
  // Only where this call has said nothing yet; what earlier turns said does not count (case S4).
  const mayRetry = command.retry_in_ms !== null && state.tries < state.limits.max_tries && state.part_kind === null
  const failed: RunEvent[] = [
    {
      type: 'llm.failed',
      payload: {
        effect_id: state.effect.id,
        code: command.code,
        provider_code: command.provider_code,
        status: command.status,
        retry_in_ms: mayRetry ? command.retry_in_ms : null,
      },
    },
    ...settle(state, { tokens: 0, micros: 0, estimated: false }),
  ]
  if (!mayRetry || command.retry_in_ms === null) {
    return interrupt(state, { reason: 'provider_error', code: command.provider_code ?? command.code, first: failed })
  }
  if (command.rebuild) {
    return {
      state: { ...state, phase: 'projecting', effect: null },
      actions: [
        { type: 'record', events: failed },
        { type: 'project_context', turn: state.turn },
      ],
    }
  }
  return {
    state: { ...state, phase: 'retrying' },
    actions: [
      { type: 'record', events: failed },
      { type: 'wait_retry', milliseconds: command.retry_in_ms },
    ],
  }
}

export function retry(state: RunLoopState, command: Extract<RunCommand, { tag: 'retry_due' }>): Reduction {
  if (!state.effect) return unchanged(state)
  const next: RunLoopState = {
    ...state,
    phase: 'streaming',
    tries: state.tries + 1,
    effect: { ...state.effect, id: command.effect_id },
  }
  return {
    state: next,
    actions: [
      { type: 'record', events: intent(next, command.model) },
      { type: 'request_model', effect_id: command.effect_id },
    ],
  }
}
