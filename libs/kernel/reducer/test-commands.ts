/** What comes to a run's loop in tests: plain commands under countable ids. */
import type { AdmissionFacts } from '#contracts'
import type { RunCommand, RunLimits } from './commands.ts'

/** The n-th id. */
export const id = (n: number): string => `01935f00-0000-7000-8000-${String(n).padStart(12, '0')}`
export const digest = 'a'.repeat(64)

export const limits: RunLimits = {
  max_turns: 3,
  max_wall_ms: 1000,
  max_tokens: null,
  max_cost_micros: null,
  max_consecutive_tool_errors: 3,
  max_tries: 3,
  max_steers: 4,
}

export const start: Extract<RunCommand, { tag: 'start' }> = {
  tag: 'start',
  fence: 1,
  persona_version_id: id(1),
  profile_hash: digest,
  bundle: 'test/1',
  inherited: null,
  limits,
}

/** A context under 60 tokens; without a price card. */
export const projected: Extract<RunCommand, { tag: 'context_projected' }> = {
  tag: 'context_projected',
  projection: {
    turn: 1,
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
  effect_id: id(3),
  purpose: 'answer',
  request_digest: digest,
  model: 'test',
  reserved_tokens: 60,
  reserved_micros: null,
  policy_version: 1,
}

/** What the verdict on a reading reads; an owner who grants reading and sending, and gave the character the tool by name. */
export const facts: AdmissionFacts = {
  tool: 'look.up',
  capability: 'read_only',
  argument_capability: null,
  egress: 'none',
  undoable: false,
  arguments_valid: true,
  run_kind: 'answer',
  mode: 'default',
  grants: [
    { scope: 'owner', classes: ['read_only', 'irreversible_external'], tools: null, exact: null },
    { scope: 'character', classes: ['read_only', 'irreversible_external'], tools: ['look.up'], exact: null },
  ],
  class_rules: [],
  context_trust: 'workspace',
  arbitration: { capability: 'autonomous', data: 'autonomous', consequence: 'autonomous', situation: 'autonomous' },
  listeners: [],
  killed: false,
  approval: null,
}
