import { z } from 'zod'
import {
  BudgetAxis,
  EmbeddingPurpose,
  EntitySource,
  FailCode,
  FinishReason,
  ForbiddenRule,
  InterruptReason,
  Invariant,
  MemoryLevel,
  MemoryOrigin,
  MemoryState,
  MemoryType,
  MessageRole,
  ModelPurpose,
  NodeKind,
  NodeRole,
  RunKind,
  SuspendReason,
  Trust,
} from './enums.ts'
import type { Visibility } from './enums.ts'
import { Digest, Id, Instant, Slug } from './ids.ts'
import { ActionState, AttemptStatus, TaskRuntime, TaskRisk, TaskStatus } from './tasks.ts'
import { AdmissionFacts, AdmissionReason, CapabilityClass, Consequence, Constraint, PermissionMode, Verdict } from './tools.ts'

/** One protocol version per run, never negotiated (K7). */
export const PROTOCOL_VERSION = 1

const count = z.int().min(0)

/** How one message of a request is made from references; rebuilt by `layout_version` (decision 14). */
export const ContextPiece = z.discriminatedUnion('kind', [
  /** A stored text sent as it is: one message. */
  z.object({ kind: z.literal('content'), role: MessageRole, content_id: Id, digest: Digest }),
  /** A stored JSON object that is one whole message: tool calls, and what came of them. */
  z.object({ kind: z.literal('message'), role: MessageRole, content_id: Id, digest: Digest }),
  /** Consecutive nodes of the path, oldest first, one message per non-empty part; at most one piece per gap between in-chat entities. */
  z.object({ kind: z.literal('path'), from_node_id: Id, to_node_id: Id, nodes: count, digest: Digest }),
])
export type ContextPiece = z.infer<typeof ContextPiece>

/** A prompt entity as recorded: references and reasons, never text (spec/3). */
export const RecordedEntity = z.object({
  identifier: Slug,
  role: MessageRole,
  source: EntitySource,
  position: z.discriminatedUnion('at', [
    z.object({ at: z.literal('relative'), rank: z.int() }),
    z.object({ at: z.literal('in_chat'), depth: count, order: z.int() }),
  ]),
  /** Version that the text comes from: persona version, memory version, lore entry version, node, citation or prompt. */
  source_id: Id.nullable(),
  content_id: Id.nullable(),
  trust: Trust,
  tokens: count,
  priority: z.int(),
  forbid_override: z.boolean(),
  reason: Slug,
  /** What replaced this entity's text, if anything. */
  overridden_by: Slug.nullable(),
})
export type RecordedEntity = z.infer<typeof RecordedEntity>

const runEnd = { delta_count: count, turns: count }

/**
 * Every event type: payload schema, version, visibility, stream kind. Payloads hold ids, enums, numbers and digests
 * (decision 10). `reserved` entries are named by the design and not yet written by any code.
 */
const definitions = {
  // run stream, in order
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
      /** Actions that came with it, under ids of ours; absent for none. */
      calls: z.array(z.object({ action_id: Id, tool: Slug, content_id: Id })).optional(),
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
  // tree stream
  'tree.created': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    payload: z.object({ realm_id: Id, root_node_id: Id, character_ids: z.array(Id) }),
  },
  'node.added': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    payload: z.object({
      node_id: Id,
      parent_id: Id.nullable(),
      kind: NodeKind,
      role: NodeRole,
      node_seq: count,
      content_id: Id.nullable(),
      run_id: Id.nullable(),
      edited_from_id: Id.nullable(),
    }),
  },
  'node.sealed': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    payload: z.object({ node_id: Id, content_id: Id, partial: z.boolean(), run_id: Id }),
  },
  'node.deleted': { version: 1, visibility: 'audit', stream: 'tree', payload: z.object({ node_id: Id, content_id: Id.nullable() }) },
  'head.moved': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    payload: z.object({ from_node_id: Id, to_node_id: Id, cause: z.enum(['ask', 'adopt', 'fork', 'edit', 'seal', 'delete']) }),
  },
  'candidate.adopted': { version: 1, visibility: 'internal', stream: 'tree', payload: z.object({ parent_id: Id, child_id: Id }) },
  'citation.created': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    payload: z.object({ citation_id: Id, node_id: Id, source_node_id: Id, snapshot_content_id: Id }),
  },
  'canon.extended': {
    version: 1,
    visibility: 'audit',
    stream: 'tree',
    payload: z.object({ canonization_id: Id, character_id: Id, from_node_id: Id, to_node_id: Id, diverges: z.boolean() }),
  },
  'canon.withdrawn': { version: 1, visibility: 'audit', stream: 'tree', payload: z.object({ canonization_id: Id }) },
  'invariant.refused': {
    version: 1,
    visibility: 'audit',
    stream: 'tree',
    payload: z.object({ invariant: Invariant, node_id: Id.nullable(), run_id: Id.nullable(), attempt: Slug }),
  },
  // character stream
  'character.created': {
    version: 1,
    visibility: 'internal',
    stream: 'character',
    payload: z.object({ persona_version_id: Id, card_content_id: Id }),
  },
  'character.versioned': {
    version: 1,
    visibility: 'audit',
    stream: 'character',
    payload: z.object({ persona_version_id: Id, card_content_id: Id }),
  },
  'character.accepted': { version: 1, visibility: 'audit', stream: 'character', payload: z.object({ persona_version_id: Id }) },
  'character.deleted': { version: 1, visibility: 'audit', stream: 'character', payload: z.object({}) },
  // memory stream (one per character)
  'memory.proposed': {
    version: 1,
    visibility: 'internal',
    stream: 'memory',
    payload: z.object({
      memory_id: Id,
      version_id: Id,
      content_id: Id,
      level: MemoryLevel,
      state: MemoryState,
      memory_type: MemoryType,
      origin: MemoryOrigin,
      canonization_id: Id.nullable(),
      source_node_ids: z.array(Id),
    }),
  },
  'memory.decided': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({ memory_id: Id, decision: z.enum(['confirm', 'reject', 'undo']), state: MemoryState, version_id: Id }),
  },
  'memory.versioned': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({
      memory_id: Id,
      version_id: Id,
      content_id: Id,
      supersedes_version_id: Id,
      cause: z.enum(['correct', 'update', 'merge', 'confirm']),
    }),
  },
  /** Taken in by a version of another memory: no longer recalled, reachable in that memory's chain. */
  'memory.merged': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({ memory_id: Id, into_memory_id: Id, into_version_id: Id }),
  },
  'memory.reinforced': {
    version: 1,
    visibility: 'internal',
    stream: 'memory',
    payload: z.object({ memory_id: Id, version_id: Id, count }),
  },
  'memory.deleted': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({ memory_id: Id, cause: z.enum(['owner', 'source_deleted', 'undo_window_closed']) }),
  },
  'memory.flagged': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({ memory_id: Id, cause: z.enum(['source_deleted', 'canon_withdrawn']) }),
  },
  'memory.dropped': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({
      canonization_id: Id,
      reason: z.enum(['invalid', 'no_source', 'outside_canon', 'echo', 'duplicate', 'rejected_before', 'empty_after_scrub']),
    }),
  },
  'extraction.finished': {
    version: 1,
    visibility: 'internal',
    stream: 'memory',
    payload: z.object({ canonization_id: Id, run_id: Id, proposals: count, stored: count, dropped: count }),
  },
  'extraction.given_up': {
    version: 1,
    visibility: 'audit',
    stream: 'memory',
    payload: z.object({ canonization_id: Id, run_id: Id.nullable(), code: Slug, tries: count }),
  },
  // admin stream
  'owner.created': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ owner_id: Id, role: z.enum(['user', 'admin']) }),
  },
  'token.issued': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ token_id: Id, owner_id: Id }) },
  'token.revoked': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ token_id: Id, owner_id: Id }) },
  'tool_source.added': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ source_id: Id, kind: z.enum(['http', 'openapi', 'mcp']), offered: count }),
  },
  'tool_source.accepted': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ source_id: Id, tools: z.array(z.object({ name: Slug, version: Digest, capability: CapabilityClass })) }),
  },
  /** Seen to offer other tools than before; `lost` had been accepted and are tools no longer. */
  'tool_source.changed': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ source_id: Id, changed: count, lost: count }),
  },
  'tool_source.removed': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ source_id: Id }) },
  'session.opened': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ session_id: Id, owner_id: Id }) },
  'content.read_by_admin': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ admin_id: Id, owner_id: Id, run_id: Id }),
  },
  'kill.set': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ scope: z.enum(['global', 'owner', 'character']), scope_id: Id, by: Id }),
  },
  'kill.lifted': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ scope: z.enum(['global', 'owner', 'character']), scope_id: Id, by: Id }),
  },
  /** Everything was read from an archive; what its ledger says was erased since, is (decision 6). */
  'archive.restored': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ archive_digest: Digest, from_epoch: z.int().min(1), to_epoch: z.int().min(2), erased: count }),
  },
  /** A signed statement of all heads; it covers this event too (decision 18). `key`: digest of the public key. */
  'anchor.signed': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ anchor: z.int().min(1), previous_hash: Digest, key: Digest }),
  },
  'bundle.proposed': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ hash: Digest, by: Id }) },
  'bundle.evaluated': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ hash: Digest, accepted: z.boolean(), by: Id.nullable() }),
  },
  /** The active pointer moved: from, to, why, and by whom; nobody for what a release brings (K8). */
  'bundle.activated': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ from: Digest.nullable(), to: Digest, reason: z.enum(['release', 'promote', 'rollback']), by: Id.nullable() }),
  },
  'content.erased': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ content_id: Id, cause: Slug }) },
  // named by the design, written by later work
  'run.suspended': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({ reason: SuspendReason, checkpoint_id: Id }),
  },
  'run.resumed': { version: 1, visibility: 'public', stream: 'run', payload: z.object({ fence: z.int().min(1), checkpoint_id: Id }) },
  /** What the model proposed, before anybody judged it. */
  'tool.pre_execute': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    payload: z.object({ action_id: Id, tool: Slug, turn: z.int().min(1), content_id: Id, after_segments: count }),
  },
  'approval.requested': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({ approval_id: Id, action_id: Id, tool: Slug, capability: CapabilityClass, expires_at: Instant }),
  },
  'approval.decided': {
    version: 1,
    visibility: 'audit',
    stream: 'confirmation',
    payload: z.object({
      approval_id: Id,
      run_id: Id,
      action_id: Id,
      decision: z.enum(['approved', 'refused', 'expired', 'revoked']),
      by: Id.nullable(),
    }),
  },
  'reconciliation.decided': {
    version: 1,
    visibility: 'audit',
    stream: 'confirmation',
    payload: z.object({ effect_id: Id, run_id: Id, as: z.enum(['done', 'failed']), by: Id }),
  },
  'grant.changed': {
    version: 1,
    visibility: 'audit',
    stream: 'confirmation',
    payload: z.object({
      scope: z.enum(['owner', 'character', 'tree']),
      scope_id: Id,
      version: z.int().min(1),
      mode: PermissionMode,
      by: Id,
    }),
  },
  /** Write-ahead: durable before anything is sent (K3). */
  'effect.intent': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    payload: z.object({
      effect_id: Id,
      action_id: Id,
      tool: Slug,
      capability: CapabilityClass,
      consequence: Consequence,
      constraints: z.array(Constraint),
      /** The question that was answered with yes for it, and is used up by it. */
      approval_id: Id.nullable(),
      content_id: Id,
      arguments_hash: Digest,
    }),
  },
  'tool.done': { version: 1, visibility: 'internal', stream: 'run', payload: z.object({ effect_id: Id, content_id: Id.nullable() }) },
  'effect.done': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    reserved: true,
    payload: z.object({ effect_id: Id, content_id: Id.nullable() }),
  },
  'effect.failed': { version: 1, visibility: 'internal', stream: 'run', payload: z.object({ effect_id: Id, code: Slug }) },
  'effect.unknown': { version: 1, visibility: 'internal', stream: 'run', payload: z.object({ effect_id: Id, code: Slug }) },
  'effect.reconciled': {
    version: 1,
    visibility: 'audit',
    stream: 'run',
    payload: z.object({ effect_id: Id, as: z.enum(['done', 'failed', 'abandoned']), by: z.enum(['target', 'person', 'kernel']) }),
  },
  /** What the loop saw of an action: attested and scrubbed, or the reason why there is nothing to see. */
  'tool.executed': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({
      action_id: Id,
      tool: Slug,
      status: z.enum(['done', 'failed', 'denied', 'unknown']),
      reason: Slug.nullable(),
      content_id: Id.nullable(),
      trust: Trust,
      after_segments: count,
    }),
  },
  // task stream (one per task)
  'task.created': {
    version: 1,
    visibility: 'audit',
    stream: 'task',
    payload: z.object({
      task_id: Id,
      contract_version: z.int().min(1),
      requested_by: Id,
      commit_authority: Id,
      /** The run that handed it on, and by which action of it; null for what the owner asked for. */
      parent_run_id: Id.nullable(),
      parent_action_id: Id.nullable(),
      risk: TaskRisk,
      tools: z.array(Slug),
      max_cost_micros: count.nullable(),
      max_actions: count,
      instruction_content_id: Id,
      acceptance_content_id: Id,
    }),
  },
  'task.changed': {
    version: 1,
    visibility: 'audit',
    stream: 'task',
    payload: z.object({ task_id: Id, from: TaskStatus, to: TaskStatus, reason: Slug, by: Id.nullable() }),
  },
  'attempt.started': {
    version: 1,
    visibility: 'internal',
    stream: 'task',
    payload: z.object({
      attempt_id: Id,
      ordinal: z.int().min(1),
      runtime: TaskRuntime,
      runtime_version: Slug,
      harness_profile: Digest,
      policy_profile: Slug,
      reserved_micros: count,
    }),
  },
  'attempt.changed': {
    version: 1,
    visibility: 'internal',
    stream: 'task',
    payload: z.object({
      attempt_id: Id,
      from: AttemptStatus,
      to: AttemptStatus,
      reason: Slug.nullable(),
      /** Of an attempt that a loop drove and that is over: what it used of the task's budget. */
      charged_micros: count.optional(),
      released_micros: count.optional(),
      used_actions: count.optional(),
    }),
  },
  'attempt.checkpointed': {
    version: 1,
    visibility: 'internal',
    stream: 'task',
    payload: z.object({ attempt_id: Id, checkpoint_id: Id, event_offset: z.int().min(1), pending_effect_ids: z.array(Id) }),
  },
  'action.submitted': {
    version: 1,
    visibility: 'internal',
    stream: 'task',
    payload: z.object({
      action_id: Id,
      attempt_id: Id,
      ordinal: z.int().min(1),
      actor: z.enum(['owner', 'agent', 'verifier']),
      tool: Slug,
      resource: Slug,
      key: Slug,
      content_id: Id,
      arguments_hash: Digest,
      cost_micros: count.nullable(),
      trust: Trust,
      independent: z.boolean(),
    }),
  },
  /** A verdict, with what it was a function of (K2). */
  'action.decided': {
    version: 1,
    visibility: 'audit',
    stream: 'task',
    payload: z.object({
      action_id: Id,
      decision: z.enum(['ALLOW', 'CONSTRAINED_ALLOW', 'REQUIRE_APPROVAL', 'DENY']),
      constraints: z.array(Constraint),
      reason_code: Slug,
      policy_version: z.int().min(1),
      approval_id: Id.nullable(),
      facts: AdmissionFacts,
    }),
  },
  /** Write-ahead: reserved and bound before anything is sent (K3, K6). */
  'action.dispatched': {
    version: 1,
    visibility: 'internal',
    stream: 'task',
    payload: z.object({
      action_id: Id,
      effect_id: Id,
      capability: CapabilityClass,
      constraints: z.array(Constraint),
      approval_id: Id.nullable(),
      reserved_micros: count,
    }),
  },
  'action.settled': {
    version: 1,
    visibility: 'internal',
    stream: 'task',
    payload: z.object({
      action_id: Id,
      effect_id: Id.nullable(),
      from: ActionState,
      to: ActionState,
      reason: Slug.nullable(),
      by: z.enum(['kernel', 'target', 'person']),
      charged_micros: count,
      estimated: z.boolean(),
      content_id: Id.nullable(),
    }),
  },
  'candidate.sealed': {
    version: 1,
    visibility: 'internal',
    stream: 'task',
    payload: z.object({
      candidate_id: Id,
      attempt_id: Id,
      artifacts: z.array(z.object({ artifact_id: Id, content_id: Id, hash: Digest })),
    }),
  },
  'candidate.verified': {
    version: 1,
    visibility: 'audit',
    stream: 'task',
    payload: z.object({
      verification_id: Id,
      candidate_id: Id,
      attempt_id: Id,
      status: z.enum(['passed', 'failed']),
      checks: count,
      failed: count,
      verifier_version: z.int().min(1),
      verdict: z.enum(['verified', 'repair', 'needs_escalation']),
      repairs: count,
    }),
  },
  'candidate.committed': {
    version: 1,
    visibility: 'audit',
    stream: 'task',
    payload: z.object({ candidate_id: Id, verification_id: Id, by: Id, evidence_content_id: Id, evidence_digest: Digest }),
  },
  // embedding stream (one per request that leaves the process)
  /** Write-ahead: durable before anything is sent (K3). The digest is over the salted digests of the texts, which stand elsewhere. */
  'embedding.requested': {
    version: 1,
    visibility: 'internal',
    stream: 'embedding',
    payload: z.object({
      effect_id: Id,
      purpose: EmbeddingPurpose,
      model: Slug,
      texts: z.int().min(1),
      request_digest: Digest,
      reserved_tokens: count,
    }),
  },
  'embedding.completed': {
    version: 1,
    visibility: 'internal',
    stream: 'embedding',
    payload: z.object({ effect_id: Id, tokens: count, estimated: z.boolean(), dimensions: count }),
  },
  'embedding.failed': {
    version: 1,
    visibility: 'internal',
    stream: 'embedding',
    payload: z.object({ effect_id: Id, code: Slug, provider_code: Slug.nullable(), status: count.nullable() }),
  },
  'embedding.unknown': {
    version: 1,
    visibility: 'internal',
    stream: 'embedding',
    payload: z.object({ effect_id: Id, code: Slug, settled_tokens: count }),
  },
  /** Kept back: the kill switch, or the budget. Nothing was sent. */
  'embedding.refused': {
    version: 1,
    visibility: 'audit',
    stream: 'embedding',
    payload: z.object({
      effect_id: Id,
      purpose: EmbeddingPurpose,
      texts: z.int().min(1),
      code: z.enum(['killed', 'price_unknown', 'max_cost_micros', 'max_tokens']),
    }),
  },
  'compaction.started': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    reserved: true,
    payload: z.object({ from_node_id: Id, to_node_id: Id }),
  },
  'compaction.finished': { version: 1, visibility: 'internal', stream: 'tree', reserved: true, payload: z.object({ content_id: Id }) },
} as const satisfies Record<string, EventDefinition>

/** What the dictionary says of one event type. */
export type EventDefinition = {
  version: number
  visibility: Visibility
  stream: 'run' | 'tree' | 'character' | 'memory' | 'confirmation' | 'admin' | 'task' | 'embedding'
  /** Another kind of stream that it stands on too. */
  alsoOn?: 'embedding'
  reserved?: boolean
  payload: z.ZodObject
}

export type EventType = keyof typeof definitions
export type EventPayload<T extends EventType> = z.infer<(typeof definitions)[T]['payload']>

/** The dictionary of events, by type. */
export const eventDictionary: Readonly<Record<EventType, EventDefinition>> = definitions

/** The dictionary's payload schema of a type, with its own inferred type. */
export function payloadSchema<T extends EventType>(type: T): (typeof definitions)[T]['payload'] {
  return definitions[type].payload
}

export const EventTypeName = z.enum(Object.keys(definitions) as [EventType, ...EventType[]])

/** Types that end a run; after one of them its stream takes nothing more. */
export const terminalRunEvents: ReadonlySet<EventType> = new Set<EventType>(['run.finished', 'run.interrupted', 'run.failed'])

/** A digest of content that an event refers to (decision 10). */
export const ContentDigest = z.object({ content_id: Id, digest: Digest, segment: count.optional() })
export type ContentDigest = z.infer<typeof ContentDigest>

/** The command that caused an event: its tag and the readings it brought (decision 15). */
export const Cause = z.object({ tag: Slug, readings: z.record(Slug, z.union([z.number(), z.boolean(), Slug])).optional() })
export type Cause = z.infer<typeof Cause>

/**
 * The part of an event that the hash covers, in canonical JSON (decision 8). Position and database clocks stay outside.
 * Deltas leave out what their run.requested says already (decision 12).
 */
export const EventRecord = z.object({
  stream: z.string(),
  seq: z.int().min(1),
  type: EventTypeName,
  version: z.int().min(1),
  protocol_version: z.int().min(1).optional(),
  visibility: z.enum(['public', 'internal', 'audit']).optional(),
  owner_id: Id.nullable().optional(),
  character_id: Id.nullable().optional(),
  run_id: Id.nullable().optional(),
  trace_id: Id.nullable().optional(),
  actor: Slug.optional(),
  trust: Trust.optional(),
  at: Instant,
  cause: Cause,
  payload: z.record(z.string(), z.unknown()),
  content_digests: z.array(ContentDigest),
})
export type EventRecord = z.infer<typeof EventRecord>

/** What a writer hands over; stream position, version, visibility and chain are filled in by the log. */
export type NewEvent<T extends EventType = EventType> = {
  [K in T]: {
    type: K
    payload: EventPayload<K>
    character_id?: Id | null
    run_id?: Id | null
    trace_id?: Id | null
    actor: Slug
    trust?: Trust
    at: Instant
    cause: Cause
    content_digests?: ContentDigest[]
  }
}[T]
