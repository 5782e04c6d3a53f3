import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RunAction, RunEvent } from './actions.ts'
import type { RunCommand, RunLimits } from './commands.ts'
import { reduce } from './reduce.ts'
import { initialState } from './state.ts'
import type { RunLoopState } from './state.ts'
import { digest, facts, id, limits, projected as contextProjected, start } from './test-commands.ts'

const started = (changes: Partial<RunLimits> = {}): RunCommand => ({ ...start, limits: { ...limits, ...changes } })
const projected = (changes: { reserved_tokens?: number; reserved_micros?: number | null; embedding_micros?: number } = {}): RunCommand => ({
  ...contextProjected,
  reserved_micros: 7,
  ...changes,
})
const said: RunCommand = { tag: 'segments', content_id: id(9), segments: [{ kind: 'text', digest }] }
const finished = (...calls: number[]): RunCommand => ({
  tag: 'model_finished',
  finish_reason: 'stop',
  usage: { prompt_tokens: 50, completion_tokens: 5, estimated: false },
  cost_micros: 3,
  calls: calls.map((n) => ({ action_id: id(100 + n), tool: 'look.up', tool_version: digest, content_id: id(200 + n), digest })),
})
const assessed = (n: number): RunCommand => ({
  tag: 'call_assessed',
  action_id: id(100 + n),
  facts,
  consequence: 'none',
  price_micros: 5,
  effect_id: id(300 + n),
  approval_id: id(400 + n),
  checkpoint_id: id(500 + n),
  expires_at: '2026-01-02T00:00:00.000Z',
})
const settled = (n: number): RunCommand => ({
  tag: 'effect_settled',
  effect_id: id(300 + n),
  outcome: 'done',
  code: null,
  cost_micros: 5,
  cost_estimated: false,
  observation: { content_id: id(600 + n), digest, trust: 'workspace' },
  checkpoint_id: id(700 + n),
})
const steer = (n: number): RunCommand => ({ tag: 'steer', command_id: id(800 + n), content_id: id(900 + n), digest })
const accepted: RunCommand = { tag: 'accepted', content_id: id(9), digest }
const vetoed: RunCommand = { tag: 'vetoed', plugin: 'lingtai/siming', reason: 'out_of_character' }
const cancel: RunCommand = { tag: 'cancel', settled_tokens: 60 }
const drain: RunCommand = { tag: 'drain', settled_tokens: 60, checkpoint_id: id(990) }

type Step = { command: RunCommand; actions: RunAction[]; events: RunEvent[] }

function play(commands: readonly RunCommand[]): { state: RunLoopState; steps: Step[]; events: RunEvent[] } {
  let state = initialState(id(9))
  const steps = commands.map((command): Step => {
    const next = reduce(state, command)
    state = next.state
    return { command, actions: next.actions, events: next.actions.flatMap((action) => ('events' in action ? action.events : [])) }
  })
  return { state, steps, events: steps.flatMap(({ events }) => events) }
}
const asksTheModel = ({ steps }: ReturnType<typeof play>): boolean =>
  steps.some(({ actions }) => actions.some(({ type }) => type === 'request_model'))

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    Object.values(value).forEach(freeze)
  }
  return value
}

const { projection, content_digests } = projected() as Extract<RunCommand, { tag: 'context_projected' }>
const keptBack: RunCommand = {
  tag: 'context_vetoed',
  projection,
  content_digests,
  veto: { plugin: 'test/no', reason: 'not_this' },
}
const anyCommand = fc.constantFrom<RunCommand>(
  started(),
  projected(),
  said,
  finished(),
  finished(1, 2),
  assessed(1),
  assessed(2),
  settled(1),
  settled(2),
  steer(1),
  steer(2),
  accepted,
  vetoed,
  keptBack,
  { ...settled(1), veto: { plugin: 'test/no', reason: 'not_this' } } as RunCommand,
  cancel,
  drain,
  { tag: 'resume', fence: 2 },
  { tag: 'fail', code: 'harness_error' },
)

describe('what the loop records', () => {
  it('changes nothing that it was given: neither the state nor the command', () => {
    fc.assert(
      fc.property(fc.array(anyCommand, { maxLength: 30 }), (commands) => {
        let state = freeze(initialState(id(9)))
        for (const command of commands) state = freeze(reduce(state, freeze(command)).state)
      }),
    )
  })

  it('writes command.accepted for a command that causes nothing else, and for no other', () => {
    let written = 0
    fc.assert(
      fc.property(fc.array(anyCommand, { maxLength: 30 }), (commands) => {
        for (const { command, events } of play([started(), ...commands]).steps) {
          const accepted = events.find(({ type }) => type === 'command.accepted')
          if (!accepted) continue
          written++
          expect(events).toEqual([accepted])
          expect(accepted.payload).toMatchObject({ tag: command.tag })
        }
      }),
    )
    expect(written).toBeGreaterThan(0)
  })

  it('records a veto and ends the run by it, its answer a partial', () => {
    const { steps } = play([started(), projected(), said, finished(), vetoed])
    expect(steps.at(-1)).toMatchObject({
      events: [
        { type: 'veto', payload: { plugin: 'lingtai/siming', node: 'result.pre_accept', reason: 'out_of_character' } },
        { type: 'run.interrupted', payload: { reason: 'veto', candidate_id: id(9) } },
      ],
      actions: [{ type: 'seal', outcome: 'interrupted', partial: true }],
    })
  })

  it('records what listeners rewrote, in order, before the request; whether it is sent or not', () => {
    const rewrites = [1, 2].map((n) => ({
      plugin: `test/${n}`,
      plugin_version: '1',
      reference: null,
      patch_content_id: id(800 + n),
      digest: String(n).repeat(64),
    }))
    const told = rewrites.map(({ plugin, plugin_version, reference, patch_content_id, digest: patchDigest }) => ({
      type: 'rewrite',
      payload: { plugin, plugin_version, reference, patch_content_id },
      content_digests: [{ content_id: patch_content_id, digest: patchDigest }],
    }))
    const types = ({ events }: { events: readonly RunEvent[] }) => events.slice(2).map(({ type }) => type)
    const sent = play([started(), { ...projected(), rewrites } as RunCommand])
    expect(sent.events.slice(3, 5)).toEqual(told)
    expect(types(sent)).toEqual(['context.projected', 'rewrite', 'rewrite', 'policy.decided', 'budget.reserved', 'llm.requested'])
    const over = play([started({ max_tokens: 10 }), { ...projected(), rewrites } as RunCommand])
    expect(types(over)).toEqual(['context.projected', 'rewrite', 'rewrite', 'budget.exhausted', 'run.interrupted'])
  })

  it('ends a run whose request a listener keeps back: nothing is sent, and the record says who and what', () => {
    const played = play([started(), keptBack])
    expect(played.events.slice(2)).toMatchObject([
      { type: 'context.projected' },
      { type: 'veto', payload: { plugin: 'test/no', node: 'llm.pre_request', reason: 'not_this' } },
      { type: 'run.interrupted', payload: { reason: 'veto', code: 'test/no', candidate_id: null } },
    ])
    expect(asksTheModel(played)).toBe(false)
    expect(reduce(played.state, projected()).actions).toEqual([])
    // Late: the request went out already.
    expect(reduce(play([started(), projected()]).state, keptBack).actions).toEqual([])
  })

  it('drains under its own name, and cancels under its own', () => {
    const end = (command: RunCommand) => play([started(), projected(), said, command]).events.at(-1)
    expect(end(drain)).toMatchObject({ type: 'run.interrupted', payload: { reason: 'drained' } })
    expect(end(cancel)).toMatchObject({ type: 'run.interrupted', payload: { reason: 'cancelled' } })
  })
})

describe('what a run may cost', () => {
  it('sends no request that could cost more than is left, nor one without a price where cost is bound', () => {
    const bound = started({ max_cost_micros: 10 })
    expect(asksTheModel(play([bound, projected({ reserved_micros: 10 })]))).toBe(true)
    for (const reserved_micros of [11, null]) {
      const over = play([bound, projected({ reserved_micros })])
      expect(asksTheModel(over)).toBe(false)
      expect(over.events.at(-2)).toMatchObject({ type: 'budget.exhausted', payload: { which: 'max_cost_micros', limit: 10 } })
      expect(over.events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { reason: 'budget_exhausted' } })
    }
    // What was spent counts: 3 for the first request and 5 for the action leave 2 of 10.
    const second = play([bound, projected(), finished(1), assessed(1), settled(1), projected({ reserved_micros: 3 })])
    expect(second.events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { which: 'max_cost_micros', turns: 2 } })
  })

  it('counts what the run’s embeddings were charged, for requests and for actions, and never less than before', () => {
    const bound = started({ max_cost_micros: 10 })
    expect(asksTheModel(play([bound, projected({ reserved_micros: 6, embedding_micros: 4 })]))).toBe(true)
    const over = play([bound, projected({ reserved_micros: 6, embedding_micros: 5 })])
    expect(asksTheModel(over)).toBe(false)
    expect(over.events.at(-2)).toMatchObject({ type: 'budget.exhausted', payload: { limit: 10, needed: 11 } })
    const acting = (embedding_micros: number) =>
      play([bound, projected({ reserved_micros: 0, embedding_micros }), finished(1), assessed(1)])
    expect(acting(0).events.some(({ type }) => type === 'effect.intent')).toBe(true)
    expect(acting(9).events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { which: 'max_cost_micros' } })
    const forgotten = play([
      bound,
      projected({ reserved_micros: 0, embedding_micros: 2 }),
      finished(1),
      assessed(1),
      settled(1),
      projected({ reserved_micros: 1, embedding_micros: 1 }),
    ])
    expect(forgotten.events.at(-1)).toMatchObject({ type: 'run.interrupted', payload: { which: 'max_cost_micros', turns: 2 } })
  })

  it('promises nothing where a bound is null, whatever is reserved', () => {
    fc.assert(
      fc.property(fc.nat(), fc.option(fc.nat(), { nil: null }), (reserved_tokens, reserved_micros) => {
        expect(asksTheModel(play([started(), projected({ reserved_tokens, reserved_micros })]))).toBe(true)
      }),
    )
  })
})
