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

const id = (n: number): string => `01935f00-0000-7000-8000-${String(n).padStart(12, '0')}`
const digest = 'a'.repeat(64)
const candidateId = id(9)

const facts: AdmissionFacts = {
  tool: 'look.up',
  capability: 'read_only',
  argument_capability: null,
  egress: 'none',
  undoable: false,
  arguments_valid: true,
  run_kind: 'answer',
  mode: 'default',
  grants: [{ scope: 'owner', classes: ['read_only', 'irreversible_external'], tools: null, exact: null }],
  class_rules: [],
  context_trust: 'workspace',
  arbitration: { capability: 'autonomous', data: 'autonomous', consequence: 'autonomous', situation: 'autonomous' },
  listeners: [],
  killed: false,
  approval: null,
}
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
        tag: 'start',
        fence: 1,
        persona_version_id: id(1),
        profile_hash: digest,
        bundle: 'test/1',
        inherited: one(null, { segments: 3, parts: 2 }),
        limits: {
          max_turns: 9,
          max_wall_ms: 1000,
          max_tokens: null,
          max_cost_micros: null,
          max_consecutive_tool_errors: 9,
          max_tries: 9,
          max_steers: 9,
        },
      }
    case 'projecting':
      return {
        tag: 'context_projected',
        projection: {
          turn: state.turn,
          layout_version: 1,
          frame_content_id: id(2),
          frame_digest: digest,
          pieces: [],
          entities: [],
          dropped: [],
          tokens: { window: 100, reserve: 10, tools: 0, used: 50, history: 40 },
          tokenizer: 'test',
          trust: 'workspace',
          readings: { now: '2026-01-01T00:00:00.000Z', zone: 'UTC', utc_offset_minutes: 0, seed: 1 },
          recall_audit_id: null,
        },
        content_digests: [],
        effect_id: fresh,
        purpose: 'answer',
        request_digest: digest,
        model: 'test',
        reserved_tokens: 60,
        reserved_micros: 7,
        policy_version: 1,
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
  const { actions } = reduce(state, { tag: 'lease_expired', settled_tokens: state.effect?.reserved_tokens ?? 0 })
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
