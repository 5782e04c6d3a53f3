import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AdmissionFacts, EventRecord } from '#contracts'
import { canonicalJson } from '../record/canonical-json.ts'
import type { RunEvent } from './actions.ts'
import type { RunCommand } from './commands.ts'
import { recoverState } from './recover.ts'
import { reduce } from './reduce.ts'
import { initialState } from './state.ts'
import type { RunLoopState } from './state.ts'
import { digest, facts, id, limits, projected, start } from './test-commands.ts'

const candidateId = id(9)

const approved: AdmissionFacts['approval'] = {
  state: 'approved',
  same_action: true,
  same_arguments: true,
  same_versions: true,
  by_owner: true,
}

/** One of the commands that may well come next, by a number; `n` makes fresh ids. */
function nextCommand(state: RunLoopState, draw: number, n: number): RunCommand {
  const one = <Item>(...items: readonly [Item, ...Item[]]): Item => items[draw % items.length] ?? items[0]
  const fresh = id(1_000 + n * 10)
  switch (state.phase) {
    case 'created':
      return {
        ...start,
        inherited: one(null, { segments: 3, parts: 2 }),
        limits: { ...limits, max_turns: 9, max_consecutive_tool_errors: 9, max_tries: 9, max_steers: 9 },
      }
    case 'projecting':
      return {
        ...projected,
        projection: { ...projected.projection, turn: state.turn },
        effect_id: fresh,
        reserved_micros: 7,
      }
    case 'streaming':
      return one<RunCommand>(
        { tag: 'segments', content_id: candidateId, segments: [{ kind: 'text', digest }] },
        { tag: 'steer', command_id: fresh, content_id: id(1_001 + n * 10), digest },
        { tag: 'model_failed', code: 'rate_limited', provider_code: null, status: 429, retry_in_ms: 5, rebuild: false },
        {
          tag: 'model_finished',
          finish_reason: 'tool_calls',
          usage: { prompt_tokens: 50, completion_tokens: 5, estimated: false },
          cost_micros: 3,
          calls: [1, 2].map((call) => ({
            action_id: id(1_000 + n * 10 + call),
            tool: 'look.up',
            tool_version: digest,
            content_id: id(1_004 + n * 10 + call),
            digest,
          })),
        },
      )
    case 'retrying':
      return { tag: 'retry_due', effect_id: fresh, model: 'test' }
    case 'acting': {
      const out = state.calls.find(({ effect_id: effectId, phase }) => effectId !== null && phase !== 'settled')
      const drain: RunCommand = { tag: 'drain', settled_tokens: 0, checkpoint_id: fresh }
      if (out?.effect_id) {
        if (draw % 7 === 6) return drain
        const about = { effect_id: out.effect_id, observation: null, checkpoint_id: fresh }
        return one<RunCommand>(
          { ...about, tag: 'effect_settled', outcome: 'done', code: null, cost_micros: 5, cost_estimated: false },
          { ...about, tag: 'effect_settled', outcome: 'unknown', code: 'lost', cost_micros: 5, cost_estimated: true },
          { ...about, tag: 'effect_settled', outcome: 'pending', code: null, cost_micros: 0, cost_estimated: false },
          { ...about, tag: 'effect_settled', outcome: 'failed', code: 'no', cost_micros: 0, cost_estimated: false },
          { ...about, tag: 'effect_reconciled', as: 'done', by: 'person' },
          { ...about, tag: 'effect_reconciled', as: 'unknown', by: 'target' },
        )
      }
      const next = state.calls.find(({ phase }) => phase === 'proposed' || phase === 'waiting')
      if (!next) return drain
      const changes = one<Partial<AdmissionFacts>>(
        {},
        { capability: 'irreversible_external' },
        { capability: 'irreversible_external', approval: approved },
        { killed: true },
      )
      return {
        tag: 'call_assessed',
        action_id: next.action_id,
        facts: { ...facts, ...changes },
        consequence: changes.capability === undefined ? 'none' : 'lasting',
        price_micros: 5,
        effect_id: fresh,
        approval_id: id(1_001 + n * 10),
        checkpoint_id: id(1_002 + n * 10),
        expires_at: '2026-01-02T00:00:00.000Z',
      }
    }
    case 'suspended':
      return { tag: 'resume', fence: n + 2 }
    case 'accepting':
      return { tag: 'steer', command_id: fresh, content_id: id(1_001 + n * 10), digest }
    case 'ended':
      return { tag: 'cancel', settled_tokens: 0 }
  }
}

/** What ending a run whose owner is gone would write. */
function endOf(state: RunLoopState): RunEvent[] {
  const { actions } = reduce(state, { tag: 'lease_expired', settled_tokens: state.effect?.reserved_tokens ?? 0, checkpoint_id: null })
  return actions.flatMap((action) => ('events' in action ? action.events : []))
}

describe('a run whose owner is gone', () => {
  it('ends by its record as the loop itself would have ended it, wherever it stood (Reproducible, Recoverable)', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1_000), { maxLength: 40 }), (draws) => {
        let state = initialState(candidateId)
        const records: EventRecord[] = []
        for (const [n, draw] of draws.entries()) {
          const command = nextCommand(state, draw, n)
          const { state: next, actions } = reduce(state, command)
          for (const event of actions.flatMap((action) => ('events' in action ? action.events : []))) {
            records.push({
              ...event,
              seq: records.length + 1,
              content_digests: event.content_digests ?? [],
              cause: { tag: command.tag },
            } as unknown as EventRecord)
          }
          state = next
          if (state.phase === 'ended') return
          // It waits without an owner.
          if (state.phase === 'suspended') continue
          const told = records.map(({ type, cause }) => `${type} (${cause.tag})`).join(', ')
          expect(canonicalJson(endOf(recoverState(candidateId, records))), told).toBe(canonicalJson(endOf(state)))
        }
      }),
      { numRuns: 500 },
    )
  })
})
