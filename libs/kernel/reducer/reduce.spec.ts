import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { terminalRunEvents } from '#contracts'
import type { RunAction, RunEvent } from './actions.ts'
import type { RunCommand } from './commands.ts'
import { reduce } from './reduce.ts'
import { initialState } from './state.ts'
import type { RunLoopState } from './state.ts'
import { digest, id, limits, projected, start } from './test-commands.ts'

const candidate = id(9)

const segments = (n: number): RunCommand => ({
  tag: 'segments',
  content_id: candidate,
  segments: Array.from({ length: n }, () => ({ kind: 'text' as const, digest })),
})
const finished: RunCommand = {
  tag: 'model_finished',
  finish_reason: 'stop',
  usage: { prompt_tokens: 50, completion_tokens: 5, estimated: false },
  cost_micros: 0,
  calls: [],
}
const steer = (n: number): RunCommand => ({ tag: 'steer', command_id: id(100 + n), content_id: id(200 + n), digest })
const cancel: RunCommand = { tag: 'cancel', settled_tokens: 60 }
const accepted: RunCommand = { tag: 'accepted', content_id: candidate, digest }

function play(commands: readonly RunCommand[]): { state: RunLoopState; actions: RunAction[]; events: RunEvent[] } {
  let state = initialState(candidate)
  const actions: RunAction[] = []
  for (const command of commands) {
    const step = reduce(state, command)
    state = step.state
    actions.push(...step.actions)
  }
  return { state, actions, events: actions.flatMap((action) => (action.type === 'record' || action.type === 'seal' ? action.events : [])) }
}

const types = (events: readonly RunEvent[]): string[] => events.map((event) => event.type)

describe('the run loop', () => {
  it('answers: started, projected, requested, said, accepted, finished', () => {
    const { state, events } = play([start, projected, segments(2), segments(1), finished, accepted])
    expect(types(events)).toEqual([
      'run.started',
      'turn.started',
      'context.projected',
      'policy.decided',
      'budget.reserved',
      'llm.requested',
      'llm.delta',
      'llm.delta',
      'llm.completed',
      'budget.settled',
      'turn.finished',
      'result.pre_accept',
      'run.finished',
    ])
    expect(state.phase).toBe('ended')
    expect(events.at(-1)?.payload).toEqual({ candidate_id: candidate, delta_count: 2, turns: 1 })
  })

  it('M7: a run that is cut off never looks finished, and one without a word has no candidate', () => {
    const cut = play([start, projected, segments(3), cancel])
    expect(types(cut.events).slice(-3)).toEqual(['llm.unknown', 'budget.settled', 'run.interrupted'])
    expect(cut.events.at(-1)?.payload).toMatchObject({ reason: 'cancelled', candidate_id: candidate, delta_count: 1 })
    expect(cut.actions.map((action) => action.type).slice(-2)).toEqual(['abort_model', 'seal'])
    const silent = play([start, projected, cancel])
    expect(silent.events.at(-1)?.payload).toMatchObject({ reason: 'cancelled', candidate_id: null, delta_count: 0 })
  })

  it('an answer without a word is a fault of the provider, not an empty success', () => {
    const { events } = play([start, projected, finished])
    expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { reason: 'provider_error', code: 'empty_answer' } })
  })

  it('M7: an answer that was cut at the length of a reply is a partial that can be gone on with', () => {
    const { events, actions } = play([start, projected, segments(2), { ...finished, finish_reason: 'length' }])
    expect(types(events).slice(-4)).toEqual(['llm.completed', 'budget.settled', 'turn.finished', 'run.interrupted'])
    expect(events.at(-1)?.payload).toMatchObject({ reason: 'length', checkpoint: true, candidate_id: candidate })
    expect(actions.at(-1)).toMatchObject({ type: 'seal', outcome: 'interrupted', partial: true, said: true, checkpoint: { segments: 2 } })
    const silent = play([start, projected, { ...finished, finish_reason: 'length' }])
    expect(silent.events.at(-1)?.payload).toMatchObject({ reason: 'provider_error', code: 'empty_answer' })
  })

  it('takes interjections in with another turn of the same run, in order, before the answer is accepted', () => {
    const { events, state, actions } = play([start, projected, segments(1), steer(1), steer(2), finished])
    expect(types(events).slice(-5)).toEqual(['budget.settled', 'steer.received', 'steer.received', 'turn.finished', 'turn.started'])
    expect(actions.at(-1)).toEqual({ type: 'project_context', turn: 2 })
    expect(state.turn).toBe(2)
    const whole = play([start, projected, segments(1), steer(1), finished, { ...projected }, segments(1), finished, accepted])
    expect(whole.events.at(-1)).toMatchObject({ type: 'run.finished', payload: { turns: 2, delta_count: 2 } })
  })

  it('Q6: an interjection that was never used is in the record as unused', () => {
    const { events } = play([start, projected, segments(1), steer(1), cancel])
    expect(types(events).slice(-2)).toEqual(['steer.received', 'run.interrupted'])
    expect(events.at(-2)?.payload).toMatchObject({ used: false })
  })

  it('turns are bounded: past the last one an interjection ends the run as exhausted', () => {
    const turn = [projected, segments(1), steer(1), finished]
    const { events } = play([start, ...turn, ...turn, ...turn])
    expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { reason: 'budget_exhausted', which: 'max_turns', turns: 3 } })
  })

  it('S4: tries again only before the first byte, each try a new effect, within the limit', () => {
    const failed: RunCommand = {
      tag: 'model_failed',
      code: 'rate_limited',
      provider_code: null,
      status: 429,
      retry_in_ms: 5,
      rebuild: false,
    }
    const retry = (n: number): RunCommand => ({ tag: 'retry_due', effect_id: id(300 + n), model: 'test' })
    const third = play([start, projected, failed, retry(1), failed, retry(2), failed])
    expect(types(third.events).filter((type) => type === 'llm.requested')).toHaveLength(3)
    expect(third.events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { reason: 'provider_error', code: 'rate_limited' } })
    const spoken = play([start, projected, segments(1), failed])
    expect(spoken.events.at(-1)).toMatchObject({ type: 'run.interrupted' })
    // What an earlier turn said is no word of this call.
    const later = play([start, projected, segments(1), steer(1), finished, projected, failed])
    expect(later.actions.at(-1)).toEqual({ type: 'wait_retry', milliseconds: 5 })
  })

  it('builds a request anew where the endpoint refused how it was asked: the same turn, a new effect, within the limit of tries', () => {
    const refused: RunCommand = {
      tag: 'model_failed',
      code: 'bad_request',
      provider_code: null,
      status: 400,
      retry_in_ms: 0,
      rebuild: true,
    }
    const again: RunCommand = { ...projected, effect_id: id(4) }
    const { actions, events } = play([start, projected, refused, again, segments(1), finished, accepted])
    expect(types(events).filter((type) => type.startsWith('turn.') || type.startsWith('llm.') || type === 'context.projected')).toEqual([
      'turn.started',
      'context.projected',
      'llm.requested',
      'llm.failed',
      'context.projected',
      'llm.requested',
      'llm.delta',
      'llm.completed',
      'turn.finished',
    ])
    const requests = events.flatMap((event) => (event.type === 'llm.requested' ? [event.payload] : []))
    expect(requests.map(({ effect_id, turn, try: tries }) => ({ effect_id, turn, tries }))).toEqual([
      { effect_id: id(3), turn: 1, tries: 1 },
      { effect_id: id(4), turn: 1, tries: 2 },
    ])
    expect(actions.filter((action) => action.type === 'wait_retry')).toEqual([])
    const stubborn = play([start, projected, refused, again, refused, again, refused])
    expect(stubborn.events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { reason: 'provider_error', code: 'bad_request' } })
    const spoken = play([start, projected, segments(1), refused])
    expect(spoken.events.at(-1)).toMatchObject({ type: 'run.interrupted' })
  })

  it('K6: no request is dispatched whose reservation is over the token budget', () => {
    const { actions, events } = play([{ ...start, limits: { ...limits, max_tokens: 59 } }, projected])
    expect(actions.some((action) => action.type === 'request_model')).toBe(false)
    expect(events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { reason: 'budget_exhausted', which: 'max_tokens' } })
  })

  it('leaves a checkpoint where a budget or its process ended it, and nowhere else: whoever goes on knows where it stood (K6)', () => {
    const seals = (...last: RunCommand[]) => play([start, projected, segments(2), ...last]).actions.at(-1)
    const limit: RunCommand = { tag: 'limit_reached', which: 'max_wall_ms', limit: 9, needed: 9, settled_tokens: 60 }
    for (const command of [limit, { tag: 'drain', settled_tokens: 60, checkpoint_id: id(990) } as const]) {
      expect(seals(command)).toMatchObject({ type: 'seal', checkpoint: { phase: 'streaming', segments: 2, deltas: 1, turn: 1 } })
      expect(play([start, projected, segments(2), command]).events.at(-1)?.payload).toMatchObject({ checkpoint: true })
    }
    expect(seals(finished, accepted)).toMatchObject({ type: 'seal', checkpoint: null })
    expect(seals(cancel)).toMatchObject({ type: 'seal', checkpoint: null })
    expect(seals({ tag: 'fail', code: 'harness_error' })).toMatchObject({ type: 'seal', checkpoint: null })
    expect(play([start, projected, segments(2), cancel]).events.at(-1)?.payload).not.toHaveProperty('checkpoint')
  })

  it('begins with what it inherits, and is an answer only by words of its own', () => {
    const begun: RunCommand = { ...start, inherited: { segments: 3, parts: 2 } }
    const { actions, events } = play([begun, projected, segments(2)])
    expect(events[0]).toMatchObject({ type: 'run.started', payload: { inherited: { segments: 3, parts: 2 } } })
    expect(actions.at(-1)).toMatchObject({
      type: 'record',
      segments: [
        { ordinal: 3, part: 2 },
        { ordinal: 4, part: 2 },
      ],
    })
    expect(events.at(-1)?.payload).toEqual({ first_segment: 3, segments: 2 })
    const silent = play([begun, projected, finished])
    expect(silent.events.at(-1)?.payload).toMatchObject({ code: 'empty_answer', candidate_id: null, delta_count: 0 })
    expect(silent.actions.at(-1)).toMatchObject({ type: 'seal', said: false })
  })

  it('M8: what the gate forbids ends the run and is on record', () => {
    const { events } = play([start, { tag: 'context_refused', code: 'forbidden', rule: 'foreign_owner_content', policy_version: 1 }])
    expect(types(events).slice(-2)).toEqual(['policy.decided', 'run.failed'])
  })

  const anyCommand = fc.oneof(
    fc.constantFrom<RunCommand>(
      start,
      projected,
      finished,
      cancel,
      accepted,
      { tag: 'fail', code: 'harness_error' },
      { tag: 'vetoed', plugin: 'p', reason: 'r' },
    ),
    fc.constantFrom<RunCommand>(
      { tag: 'model_interrupted', reason: 'network', code: 'connection_lost', provider_code: null, settled_tokens: 9 },
      { tag: 'model_failed', code: 'x', provider_code: null, status: 500, retry_in_ms: 1, rebuild: false },
      { tag: 'model_failed', code: 'x', provider_code: null, status: 400, retry_in_ms: 0, rebuild: true },
      { tag: 'retry_due', effect_id: id(301), model: 'test' },
      { tag: 'drain', settled_tokens: 0, checkpoint_id: id(990) },
      { tag: 'lease_expired', settled_tokens: 0, checkpoint_id: null },
      { tag: 'lease_expired', settled_tokens: 0, checkpoint_id: id(991) },
    ),
    fc.integer({ min: 1, max: 4 }).map(segments),
    fc.integer({ min: 1, max: 4 }).map(steer),
  )

  it('is deterministic, ends once, seals once and never after the end, whatever comes in whatever order', () => {
    fc.assert(
      fc.property(fc.array(anyCommand, { maxLength: 40 }), (commands) => {
        const first = play(commands)
        expect(JSON.stringify(play(commands))).toBe(JSON.stringify(first))
        const ends = first.events.filter((event) => terminalRunEvents.has(event.type))
        expect(ends.length).toBe(first.state.phase === 'ended' ? 1 : 0)
        expect(first.actions.filter((action) => action.type === 'seal').length).toBe(ends.length)
        if (ends.length === 1) expect(first.events.at(-1)).toBe(ends[0])
        const intents = first.events.filter((event) => event.type === 'llm.requested').length
        expect(first.actions.filter((action) => action.type === 'request_model').length).toBe(intents)
        const reserved = first.events.filter((event) => event.type === 'budget.reserved').length
        const settled = first.events.filter((event) => event.type === 'budget.settled').length
        expect(settled).toBeLessThanOrEqual(reserved)
        if (first.state.phase === 'ended') expect(settled).toBe(reserved)
      }),
      { numRuns: 500 },
    )
  })
})
