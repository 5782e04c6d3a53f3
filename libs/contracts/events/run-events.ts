import { z } from 'zod'
import { BudgetAxis, EntitySource, FailCode, FinishReason, ForbiddenRule, InterruptReason, ModelPurpose, RunKind, Trust } from '../enums.ts'
import { Digest, Id, Instant, Slug } from '../ids.ts'
import { AdmissionFacts, AdmissionReason, Verdict } from '../tools.ts'
import { count } from './definition.ts'
import type { EventDefinition } from './definition.ts'
import { ContextPiece, RecordedEntity } from './context.ts'

const runEnd = { delta_count: count, turns: count }

/** What a run tells of its loop and its words, in order. */
export const runEvents = {
  'run.requested': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({
      kind: RunKind,
      tree_id: Id.nullable(),
      question_id: Id.nullable(),
      candidate_id: Id.nullable(),
      parent_run_id: Id.nullable(),
      ticket: count.nullable(),
      /** The ended run that this one goes on with, and how much of its chain they have in common (K5). */
      continues: z.object({ run_id: Id, seq: z.int().min(1), hash: Digest }).optional(),
    }),
  },
  'run.queued': { version: 1, visibility: 'public', stream: 'run', payload: z.object({ position: z.int().min(1), expires_at: Instant }) },
  'run.started': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({
      fence: z.int().min(1),
      persona_version_id: Id.nullable(),
      profile_hash: Digest,
      reducer_version: z.int().min(1),
      bundle: Slug,
      /** What the run that this one goes on with had said already: it is this answer's beginning. */
      inherited: z.object({ segments: count, parts: count }).optional(),
    }),
  },
  'turn.started': { version: 1, visibility: 'public', stream: 'run', payload: z.object({ turn: z.int().min(1) }) },
  'context.projected': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    payload: z.object({
      turn: z.int().min(1),
      layout_version: z.int().min(1),
      /** The request body without its messages, as stored JSON text. */
      frame_content_id: Id,
      frame_digest: Digest,
      pieces: z.array(ContextPiece),
      entities: z.array(RecordedEntity),
      /** `nodes`: how many messages of the conversation an entry stands for. */
      dropped: z.array(
        z.object({
          identifier: Slug,
          source: EntitySource,
          source_id: Id.nullable(),
          tokens: count,
          reason: Slug,
          nodes: count.optional(),
        }),
      ),
      tokens: z.object({ window: count, reserve: count, tools: count, used: count, history: count }),
      tokenizer: Slug,
      trust: Trust,
      /** `utc_offset_minutes`: the zone's at `now`, east positive; dates are formatted from it (decision 42). */
      readings: z.object({
        now: Instant,
        zone: Slug,
        utc_offset_minutes: z.int().min(-1440).max(1440),
        seed: count,
        idle_ms: count.optional(),
      }),
      recall_audit_id: Id.nullable(),
    }),
  },
  /** A listener's change of the request: a versioned patch, as content. `reference`: what it is about, as the listener says. */
  rewrite: {
    version: 1,
    visibility: 'audit',
    stream: 'run',
    payload: z.object({ plugin: Slug, plugin_version: Slug, reference: Id.nullable(), patch_content_id: Id }),
  },
  veto: { version: 1, visibility: 'audit', stream: 'run', payload: z.object({ plugin: Slug, node: Slug, reason: Slug }) },
  'llm.requested': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    payload: z.object({
      effect_id: Id,
      turn: z.int().min(1),
      try: z.int().min(1),
      purpose: ModelPurpose,
      model: Slug,
      request_digest: Digest,
      reserved_tokens: count,
    }),
  },
  'llm.delta': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({ first_segment: count, segments: z.int().min(1) }),
  },
  'llm.completed': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    payload: z.object({
      effect_id: Id,
      finish_reason: FinishReason,
      prompt_tokens: count,
      completion_tokens: count,
      estimated: z.boolean(),
      /** Actions that came with it, under ids of ours; absent for none. `tool_version`: as it was shown; absent: no such tool was. */
      calls: z.array(z.object({ action_id: Id, tool: Slug, tool_version: Digest.optional(), content_id: Id })).optional(),
    }),
  },
  'llm.failed': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    payload: z.object({
      effect_id: Id,
      code: Slug,
      provider_code: Slug.nullable(),
      status: count.nullable(),
      retry_in_ms: count.nullable(),
    }),
  },
  'llm.unknown': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    payload: z.object({ effect_id: Id, code: Slug, provider_code: Slug.nullable(), settled_tokens: count }),
  },
  'steer.received': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({ command_id: Id, content_id: Id, used: z.boolean(), after_segments: count }),
  },
  'turn.finished': { version: 1, visibility: 'public', stream: 'run', payload: z.object({ turn: z.int().min(1) }) },
  'result.pre_accept': { version: 1, visibility: 'internal', stream: 'run', payload: z.object({ content_id: Id, digest: Digest }) },
  'run.finished': { version: 1, visibility: 'public', stream: 'run', payload: z.object({ candidate_id: Id.nullable(), ...runEnd }) },
  'run.interrupted': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({
      reason: InterruptReason,
      which: BudgetAxis.nullable(),
      code: Slug.nullable(),
      candidate_id: Id.nullable(),
      /** Where it stood was kept, so that another run can go on from there (K6). */
      checkpoint: z.literal(true).optional(),
      ...runEnd,
    }),
  },
  'run.failed': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({ code: FailCode, rule: ForbiddenRule.nullable(), candidate_id: Id.nullable(), ...runEnd }),
  },
  'budget.reserved': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    alsoOn: 'embedding',
    payload: z.object({ effect_id: Id, tokens: count, cost_micros: count.optional() }),
  },
  'budget.settled': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    alsoOn: 'embedding',
    payload: z.object({ effect_id: Id, tokens: count, cost_micros: count.optional(), estimated: z.boolean() }),
  },
  'budget.exhausted': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    alsoOn: 'embedding',
    payload: z.object({ which: BudgetAxis, limit: count, needed: count }),
  },
  'policy.decided': {
    version: 1,
    visibility: 'audit',
    stream: 'run',
    payload: z.object({
      gate: Slug,
      verdict: Verdict,
      rule: ForbiddenRule.nullable(),
      policy_version: z.int(),
      /** Of an admission: the action judged, why, and everything that the verdict was a function of (K2). */
      action_id: Id.optional(),
      reason: AdmissionReason.optional(),
      facts: AdmissionFacts.optional(),
    }),
  },
  /** A command that causes no other event: taken in, and what it brought. */
  'command.accepted': { version: 1, visibility: 'internal', stream: 'run', payload: z.object({ tag: Slug, command_id: Id.nullable() }) },
  /** A command that nobody here knows: dropped whole, nothing of it is kept (K7). */
  'command.dropped': { version: 1, visibility: 'audit', stream: 'run', payload: z.object({}) },
  /** What a reader sees in place of an event whose type it does not know; never written (K7). */
  'event.dropped': { version: 1, visibility: 'audit', stream: 'run', reserved: true, payload: z.object({}) },
} as const satisfies Record<string, EventDefinition>
