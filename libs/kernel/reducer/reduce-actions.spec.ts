import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { terminalRunEvents } from '#contracts'
import type { AdmissionFacts, EventRecord } from '#contracts'
import { canonicalJson } from '../record/canonical-json.ts'
import type { RunAction, RunEvent } from './actions.ts'
import type { RunCommand } from './commands.ts'
import { recoverState } from './recover.ts'
import { reduce } from './reduce.ts'
import { initialState } from './state.ts'
import type { RunLoopState } from './state.ts'
import { digest, facts, id, limits, projected as contextProjected, start } from './test-commands.ts'

const projected: RunCommand = { ...contextProjected, reserved_micros: 7 }
const proposing = (...actions: number[]): RunCommand => ({
  tag: 'model_finished',
  finish_reason: 'tool_calls',
  usage: { prompt_tokens: 50, completion_tokens: 5, estimated: false },
  cost_micros: 3,
  calls: actions.map((n) => ({ action_id: id(100 + n), tool: 'look.up', tool_version: digest, content_id: id(200 + n), digest })),
})
const assessed = (
  n: number,
  changes: Partial<AdmissionFacts> = {},
  price: number | null = 5,
): Extract<RunCommand, { tag: 'call_assessed' }> => ({
  tag: 'call_assessed',
  action_id: id(100 + n),
  facts: { ...facts, ...changes },
  consequence: changes.capability === 'irreversible_external' ? 'lasting' : 'none',
  price_micros: price,
  effect_id: id(300 + n),
  approval_id: id(400 + n),
  checkpoint_id: id(500 + n),
  expires_at: '2026-01-02T00:00:00.000Z',
})
const settled = (n: number, outcome: Extract<RunCommand, { tag: 'effect_settled' }>['outcome'] = 'done'): RunCommand => ({
  tag: 'effect_settled',
  effect_id: id(300 + n),
  outcome,
  code: outcome === 'done' ? null : 'why',
  cost_micros: outcome === 'done' ? 5 : 0,
  cost_estimated: false,
  observation: outcome === 'done' ? { content_id: id(600 + n), digest, trust: 'workspace' } : null,
  checkpoint_id: id(700 + n),
})
const resume: RunCommand = { tag: 'resume', fence: 2 }
const cancel: RunCommand = { tag: 'cancel', settled_tokens: 0 }
const asks: Partial<AdmissionFacts> = { capability: 'irreversible_external' }
const yes: Partial<AdmissionFacts> = {
  ...asks,
  approval: { state: 'approved', same_action: true, same_arguments: true, same_versions: true, by_owner: true },
}

function play(commands: readonly RunCommand[]): { state: RunLoopState; actions: RunAction[]; events: RunEvent[] } {
  let state = initialState(id(9))
  const actions: RunAction[] = []
  for (const command of commands) {
    const step = reduce(state, command)
    state = step.state
    actions.push(...step.actions)
  }
  return { state, actions, events: actions.flatMap((action) => ('events' in action ? action.events : [])) }
}
const types = (events: readonly RunEvent[]): string[] => events.map(({ type }) => type)

describe('acting', () => {
  it('does nothing that a listener refuses, and says who did', () => {
    const veto = { plugin: 'test/no', reason: 'not_this' }
    const { events, actions } = play([start, projected, proposing(1), { ...assessed(1, { listeners: ['forbidden'] }), veto }])
    expect(types(events).slice(-6)).toEqual([
      'tool.pre_execute',
      'veto',
      'policy.decided',
      'tool.executed',
      'turn.finished',
      'turn.started',
    ])
    expect(events.at(-5)).toMatchObject({ payload: { plugin: 'test/no', node: 'tool.pre_execute', reason: 'not_this' } })
    expect(events.at(-3)).toMatchObject({ payload: { status: 'denied', reason: 'listener', content_id: null } })
    expect(actions.some(({ type }) => type === 'dispatch_effect')).toBe(false)
  })

  it('keeps from the model what a listener does not accept; it happened, and is charged, all the same', () => {
    const veto = { plugin: 'test/no', reason: 'not_this' }
    const { events, state } = play([start, projected, proposing(1), assessed(1), { ...settled(1), veto } as RunCommand])
    expect(events.slice(-6)).toMatchObject([
      { type: 'tool.done', payload: { content_id: null } },
      { type: 'budget.settled', payload: { cost_micros: 5 } },
      { type: 'veto', payload: { plugin: 'test/no', node: 'result.pre_accept' } },
      { type: 'tool.executed', payload: { status: 'done', reason: 'vetoed', content_id: null, trust: 'workspace' } },
      { type: 'turn.finished' },
      { type: 'turn.started' },
    ])
    expect(state.tool_errors).toBe(0)
  })

  it('records the intent before anything is sent, one action at a time, each seen before the next', () => {
    const { actions } = play([start, projected, proposing(1, 2), assessed(1), settled(1), assessed(2), settled(2)])
    const order = actions.slice(4).map((action) => (action.type === 'record' ? types(action.events).join(' ') : action.type))
    expect(order).toEqual([
      'llm.completed budget.settled',
      'assess_call',
      'tool.pre_execute policy.decided budget.reserved effect.intent',
      'dispatch_effect',
      'tool.done budget.settled tool.executed result.pre_accept',
      'assess_call',
      'tool.pre_execute policy.decided budget.reserved effect.intent',
      'dispatch_effect',
      'tool.done budget.settled tool.executed result.pre_accept turn.finished turn.started',
      'project_context',
    ])
  })

  it.each(['extraction', 'dedupe', 'summary', 'verification'] as const)('does nothing that the model of a job proposes: %s', (purpose) => {
    const { state, actions, events } = play([start, { ...contextProjected, purpose }, proposing(1)])
    expect(actions.some(({ type }) => type === 'assess_call')).toBe(false)
    expect(state).toMatchObject({ phase: 'ended', calls: [] })
    expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { reason: 'provider_error', code: 'empty_answer' } })
  })

  it('records which version of a tool the model was shown, and none where it was shown none', () => {
    const unshown = { ...proposing(1), calls: [{ action_id: id(101), tool: 'look.up', tool_version: null, content_id: id(201), digest }] }
    const callsOf = (command: RunCommand) => play([start, projected, command]).events.find(({ type }) => type === 'llm.completed')?.payload
    expect(callsOf(proposing(1))).toMatchObject({ calls: [{ tool: 'look.up', tool_version: digest }] })
    expect(callsOf(unshown as RunCommand)).toMatchObject({ calls: [{ action_id: id(101), tool: 'look.up', content_id: id(201) }] })
    expect(JSON.stringify(callsOf(unshown as RunCommand))).not.toContain('tool_version')
    expect(play([start, projected, proposing(1), assessed(1)]).events.at(-1)).toMatchObject({ payload: { tool_version: digest } })
  })

  it('sends nothing that is forbidden, and goes on', () => {
    const { actions, events } = play([start, projected, proposing(1), assessed(1, { killed: true })])
    expect(actions.some(({ type }) => type === 'dispatch_effect')).toBe(false)
    expect(events.find(({ type }) => type === 'tool.executed')?.payload).toMatchObject({ status: 'denied', reason: 'killed' })
    expect(events.at(-1)?.type).toBe('turn.started')
  })

  it('waits where it must ask, and what comes after waits too (case E2)', () => {
    const { state, actions } = play([start, projected, proposing(1, 2), assessed(1, asks)])
    expect(state).toMatchObject({ phase: 'suspended', waits_for: { reason: 'waiting_for_approval', checkpoint_id: id(501) } })
    expect(actions.at(-1)).toMatchObject({ type: 'suspend', approval: { approval_id: id(401), action_id: id(101) } })
    expect(reduce(state, assessed(2)).actions).toEqual([])
    const answered = reduce(reduce(state, resume).state, {
      ...assessed(1, {
        ...asks,
        approval: { state: 'approved', same_action: true, same_arguments: true, same_versions: true, by_owner: true },
      }),
    })
    expect(answered.actions.at(-1)).toMatchObject({ type: 'dispatch_effect', effect_id: id(301) })
    const intent = answered.actions
      .flatMap((action) => ('events' in action ? action.events : []))
      .find(({ type }) => type === 'effect.intent')
    expect(intent?.payload).toMatchObject({ approval_id: id(401) })
  })

  it('K6: an action over the budget, or without a price where cost is bound, ends the run before it', () => {
    for (const price of [60, null]) {
      const bounded: RunCommand = { ...start, limits: { ...limits, max_cost_micros: 50 } }
      const { events, actions } = play([bounded, projected, proposing(1), assessed(1, {}, price)])
      expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { reason: 'budget_exhausted', which: 'max_cost_micros' } })
      expect(actions.some(({ type }) => type === 'dispatch_effect')).toBe(false)
    }
    const unpriced: RunCommand = { ...projected, reserved_micros: null }
    const { events } = play([{ ...start, limits: { ...limits, max_cost_micros: 50 } }, unpriced])
    expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { which: 'max_cost_micros' } })
  })

  it('E14: of twelve actions with a budget for three exactly three are done', () => {
    const many = Array.from({ length: 12 }, (_, index) => index + 1)
    const bounded = { ...start, limits: { ...limits, max_cost_micros: 3 + 15 } }
    const { events } = play([bounded, projected, proposing(...many), ...many.flatMap((n) => [assessed(n), settled(n)])])
    expect(events.filter(({ type }) => type === 'tool.done')).toHaveLength(3)
    expect(events.at(-1)).toMatchObject({ payload: { reason: 'budget_exhausted', which: 'max_cost_micros' } })
  })

  it('never sends again what nobody knows the outcome of (K3)', () => {
    const out = play([
      start,
      projected,
      proposing(1),
      assessed(1, { ...asks, grants: facts.grants.map((layer) => ({ ...layer, exact: ['look.up'] })), context_trust: 'trusted' }),
    ])
    expect(out.actions.at(-1)?.type).toBe('dispatch_effect')
    // The target is asked at once; where it cannot prove anything, a person is, and it is asked once more when they answered.
    const unknown = reduce(out.state, settled(1, 'unknown'))
    expect(unknown.actions.map(({ type }) => type)).toEqual(['record', 'reconcile_effect'])
    const nobodyKnows: RunCommand = {
      tag: 'effect_reconciled',
      effect_id: id(301),
      as: 'unknown',
      by: 'target',
      observation: null,
      checkpoint_id: id(800),
    }
    const waiting = reduce(unknown.state, nobodyKnows)
    expect(waiting.state.waits_for?.reason).toBe('reconcile_required')
    const back = reduce(waiting.state, resume)
    expect(back.actions.map(({ type }) => type)).toEqual(['record', 'reconcile_effect'])
    const known = reduce(back.state, {
      tag: 'effect_reconciled',
      effect_id: id(301),
      as: 'done',
      by: 'person',
      observation: null,
      checkpoint_id: id(800),
    })
    expect(known.actions.some(({ type }) => type === 'dispatch_effect')).toBe(false)
    expect(known.state.phase).toBe('projecting')
    expect(reduce(back.state, nobodyKnows).state.phase).toBe('suspended')
  })

  it('tries again what was never sent, and only that', () => {
    const out = play([start, projected, proposing(1), assessed(1), settled(1, 'pending')])
    expect(out.state.waits_for?.reason).toBe('waiting_for_effect')
    expect(reduce(out.state, resume).actions.at(-1)).toMatchObject({ type: 'dispatch_effect', effect_id: id(301) })
  })

  it('looks for what was never sent a bounded number of times: then it is given up and told, or unknown where somebody may have sent it', () => {
    const again = (code: string): RunCommand => ({ ...settled(1, 'pending'), code }) as RunCommand
    const last = (code: string) => {
      let state = play([start, projected, proposing(1), assessed(1, yes)]).state
      for (let look = 1; look < 40; look++) {
        state = reduce(state, again(code)).state
        expect(state.waits_for?.reason).toBe('waiting_for_effect')
        state = reduce(state, resume).state
      }
      return reduce(state, again(code))
    }
    const eventsOf = ({ actions }: { actions: readonly RunAction[] }) =>
      actions.flatMap((action) => ('events' in action ? action.events : []))
    const givenUp = last('look_up_unavailable')
    expect(eventsOf(givenUp)).toMatchObject([
      { type: 'effect.failed', payload: { code: 'look_up_unavailable' } },
      { type: 'budget.settled', payload: { cost_micros: 0 } },
      { type: 'tool.executed', payload: { status: 'failed', reason: 'look_up_unavailable' } },
      { type: 'turn.finished' },
      { type: 'turn.started' },
    ])
    expect(givenUp.state.phase).toBe('projecting')
    const lost = last('claimed_elsewhere')
    expect(eventsOf(lost)).toMatchObject([
      { type: 'effect.unknown', payload: { code: 'claimed_elsewhere' } },
      { type: 'budget.settled', payload: { cost_micros: 5, estimated: true } },
    ])
    expect(lost.actions.at(-1)).toMatchObject({ type: 'reconcile_effect' })
  })

  it('ends with what was kept back for a cancel that it had not heard of', () => {
    const denied = { ...settled(1, 'denied'), code: 'cancelled' } as RunCommand
    const out = play([start, projected, proposing(1, 2), assessed(1, yes), settled(1, 'pending'), resume, denied])
    expect(out.actions.at(-1)).toMatchObject({ type: 'seal', outcome: 'interrupted', reason: 'cancelled' })
    expect(types(out.events).slice(-4)).toEqual(['effect.failed', 'budget.settled', 'tool.executed', 'run.interrupted'])
    expect(reduce(out.state, cancel).actions).toEqual([])
  })

  it('E12: an end that was asked for waits for what is out', () => {
    const out = play([start, projected, proposing(1, 2), assessed(1), cancel])
    expect(out.actions.at(-1)?.type).toBe('abort_effect')
    expect(out.state.phase).toBe('acting')
    const end = reduce(out.state, settled(1))
    expect(end.state.phase).toBe('ended')
    expect(end.actions.at(-1)).toMatchObject({ type: 'seal', outcome: 'interrupted', reason: 'cancelled' })
    expect(end.actions.some(({ type }) => type === 'assess_call')).toBe(false)
  })

  it('hands over what no word is coming in for: after the action that is out, or before the request', () => {
    const drain: RunCommand = { tag: 'drain', settled_tokens: 0, checkpoint_id: id(990) }
    const out = play([start, projected, proposing(1, 2), assessed(1), drain])
    // Whoever leaves lets it come to its end; whoever cancels meanwhile is heard over that.
    expect(out.actions.map(({ type }) => type)).not.toContain('abort_effect')
    const cancelled = reduce(out.state, cancel)
    expect(cancelled.actions.at(-1)?.type).toBe('abort_effect')
    expect(reduce(cancelled.state, settled(1)).actions.at(-1)).toMatchObject({ type: 'seal', reason: 'cancelled' })
    const left = reduce(out.state, settled(1))
    expect(left.state).toMatchObject({
      phase: 'suspended',
      waits_for: { reason: 'waiting_for_effect', checkpoint_id: id(990) },
      ending: null,
    })
    expect(reduce(left.state, resume).actions.at(-1)).toEqual({ type: 'assess_call', action_id: id(102) })
    const early = play([start, drain])
    expect(early.state.phase).toBe('suspended')
    expect(reduce(early.state, resume).actions.at(-1)).toEqual({ type: 'project_context', turn: 1 })
    const spoken = play([start, projected, drain])
    expect(spoken.events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { reason: 'drained' } })
  })

  it('an owner that is gone leaves an unknown behind, from its record too', () => {
    const lasting = assessed(1, yes)
    for (const [sent, givenUp] of [
      // What was only read is given up (decision 20).
      [assessed(1), ['effect.reconciled']],
      [lasting, []],
    ] as const) {
      const out = play([start, projected, proposing(1), sent])
      const records = out.events.map(
        (event, index) => ({ ...event, seq: index + 1, content_digests: event.content_digests ?? [] }) as unknown as EventRecord,
      )
      for (const state of [out.state, recoverState(id(9), records)]) {
        const end = reduce(state, { tag: 'lease_expired', settled_tokens: 0, checkpoint_id: null })
        const told = end.actions.flatMap((action) => ('events' in action ? action.events : []))
        expect(types(told)).toEqual(['effect.unknown', 'budget.settled', ...givenUp, 'run.interrupted'])
        expect(told[0]?.payload).toMatchObject({ effect_id: id(301) })
      }
    }
  })

  const anyCommand = fc.oneof(
    fc.constantFrom<RunCommand>(start, projected, proposing(1, 2), proposing(3), resume, cancel, {
      tag: 'drain',
      settled_tokens: 0,
      checkpoint_id: id(990),
    }),
    fc.constantFrom<RunCommand>(
      { tag: 'fail', code: 'harness_error' },
      { tag: 'lease_expired', settled_tokens: 0, checkpoint_id: null },
      { tag: 'lease_expired', settled_tokens: 0, checkpoint_id: id(991) },
      { tag: 'limit_reached', which: 'max_wall_ms', limit: 1, needed: 2, settled_tokens: 0 },
    ),
    fc
      .record({ n: fc.integer({ min: 1, max: 3 }), changes: fc.constantFrom<Partial<AdmissionFacts>>({}, asks, { killed: true }) })
      .map(({ n, changes }): RunCommand => assessed(n, changes)),
    fc
      .record({ n: fc.integer({ min: 1, max: 3 }), outcome: fc.constantFrom('done', 'failed', 'denied', 'unknown', 'pending') })
      .map(({ n, outcome }) => settled(n, outcome as 'done')),
    fc.integer({ min: 1, max: 3 }).map((n): RunCommand => ({ tag: 'steer', command_id: id(900 + n), content_id: id(910 + n), digest })),
    fc.constantFrom('done', 'failed', 'unknown').map((as): RunCommand => ({
      tag: 'effect_reconciled',
      effect_id: id(301),
      as: as as 'done',
      by: 'person',
      observation: null,
      checkpoint_id: id(800),
    })),
  )

  it('whatever comes in whatever order: deterministic, each intent sent by one dispatch after its record, everything settled at the end', () => {
    fc.assert(
      fc.property(fc.array(anyCommand, { maxLength: 60 }), (commands) => {
        const { state, actions, events } = play(commands)
        expect(canonicalJson(play(commands))).toBe(canonicalJson({ state, actions, events }))
        const ends = events.filter(({ type }) => terminalRunEvents.has(type))
        expect(ends).toHaveLength(state.phase === 'ended' ? 1 : 0)
        const sent = actions.flatMap((action) => (action.type === 'dispatch_effect' ? [action.effect_id] : []))
        const intended = events.flatMap((event) => (event.type === 'effect.intent' ? [event.payload.effect_id] : []))
        expect(new Set(sent)).toEqual(new Set(intended))
        const terminals = events.flatMap((event) =>
          event.type === 'tool.done' || event.type === 'effect.failed' || event.type === 'effect.unknown' ? [event.payload.effect_id] : [],
        )
        // The same ids come again in later turns of this test: never more terminals than intents.
        expect(terminals.length).toBeLessThanOrEqual(intended.length)
        if (state.phase === 'ended') {
          expect(terminals).toHaveLength(intended.length)
          expect(events.filter(({ type }) => type === 'budget.settled')).toHaveLength(
            events.filter(({ type }) => type === 'budget.reserved').length,
          )
        }
      }),
      { numRuns: 500 },
    )
  })
})
