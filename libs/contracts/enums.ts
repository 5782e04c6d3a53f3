import { z } from 'zod'

/** Trust lattice, lowest first (K1). */
export const Trust = z.enum(['untrusted', 'workspace', 'trusted'])
export type Trust = z.infer<typeof Trust>

/** The meet of trusts: the lowest wins; an empty list is trusted (K1). */
export function meetTrust(trusts: Iterable<Trust>): Trust {
  let lowest = Trust.options.length - 1
  for (const trust of trusts) lowest = Math.min(lowest, Trust.options.indexOf(trust))
  return Trust.options[lowest] ?? 'untrusted'
}

/** Who may read an event; fixed per event type. */
export const Visibility = z.enum(['public', 'internal', 'audit'])
export type Visibility = z.infer<typeof Visibility>

export const OwnerRole = z.enum(['user', 'admin'])
export type OwnerRole = z.infer<typeof OwnerRole>

/** Token scopes; `approve` is never granted by default (decision 35). */
export const TokenScope = z.enum(['read', 'write', 'admin', 'approve'])
export type TokenScope = z.infer<typeof TokenScope>

export const RunKind = z.enum(['answer', 'responsive', 'delegated', 'maintenance'])
export type RunKind = z.infer<typeof RunKind>

export const RunState = z.enum(['queued', 'running', 'suspended', 'finished', 'interrupted', 'failed'])
export type RunState = z.infer<typeof RunState>

/** Why a run was interrupted (spec/2, table of outcomes). */
export const InterruptReason = z.enum([
  'cancelled',
  'lease_expired',
  'queue_expired',
  'network',
  'timeout',
  'provider_error',
  'no_finish_reason',
  'length',
  'veto',
  'budget_exhausted',
  'drained',
])
export type InterruptReason = z.infer<typeof InterruptReason>

/** What a suspended run waits for (spec/2, table of outcomes). */
export const SuspendReason = z.enum(['waiting_for_approval', 'waiting_for_effect', 'waiting_for_user', 'reconcile_required'])
export type SuspendReason = z.infer<typeof SuspendReason>

/** Why a run failed; never resumable. */
export const FailCode = z.enum(['harness_error', 'rebuild_mismatch', 'context_overflow', 'forbidden', 'upgraded', 'stuck', 'killed'])
export type FailCode = z.infer<typeof FailCode>

/** Budget axes (K6). */
export const BudgetAxis = z.enum(['max_turns', 'max_wall_ms', 'max_tokens', 'max_cost_micros', 'max_consecutive_tool_errors'])
export type BudgetAxis = z.infer<typeof BudgetAxis>

export const NodeKind = z.enum(['root', 'question', 'candidate'])
export type NodeKind = z.infer<typeof NodeKind>

export const NodeRole = z.enum(['none', 'user', 'character', 'narrator'])
export type NodeRole = z.infer<typeof NodeRole>

export const NodeAuthor = z.enum(['system', 'owner', 'character', 'import'])
export type NodeAuthor = z.infer<typeof NodeAuthor>

/** Parts of a node's content, in order (decision 11). */
export const PartKind = z.enum(['text', 'reasoning', 'tool_call', 'tool_result_ref', 'steer', 'media_ref'])
export type PartKind = z.infer<typeof PartKind>

/** Where a prompt entity comes from (spec/3). */
export const EntitySource = z.enum([
  'system_contract',
  'persona_anchor',
  'regulation',
  'world',
  'trace',
  'memory',
  'citation',
  'owner_instruction',
  'guidance',
  'conversation',
  'summary',
  'tool_schema',
])
export type EntitySource = z.infer<typeof EntitySource>

export const MessageRole = z.enum(['system', 'user', 'assistant', 'tool'])
export type MessageRole = z.infer<typeof MessageRole>

export const MemoryLevel = z.enum(['trace', 'explicit', 'heavy'])
export type MemoryLevel = z.infer<typeof MemoryLevel>

export const MemoryType = z.enum(['fact', 'preference', 'event', 'plan', 'promise', 'relationship_view'])
export type MemoryType = z.infer<typeof MemoryType>

/** proposed: waits for the owner; live: recalled; the others are never recalled. */
export const MemoryState = z.enum(['proposed', 'live', 'rejected', 'undone', 'withdrawn', 'deleted', 'merged'])
export type MemoryState = z.infer<typeof MemoryState>

export const MemoryOrigin = z.enum(['user_explicit', 'self_inferred'])
export type MemoryOrigin = z.infer<typeof MemoryOrigin>

/** Always heavy, whatever the model says (spec/5). */
export const SensitiveTopic = z.enum(['health', 'money', 'identity', 'sexuality', 'belief', 'third_person'])
export type SensitiveTopic = z.infer<typeof SensitiveTopic>

/** The nine pivots (九枢). */
export const Pivot = z.enum(['linghe', 'taiyi', 'siming', 'zhuzhao', 'hetu', 'luoshu', 'xirang', 'baigong', 'tiangong'])
export type Pivot = z.infer<typeof Pivot>

/** Waterfall nodes of the plugin bus (spec/3). */
export const BusNode = z.enum([
  'run.requested',
  'turn.started',
  'llm.pre_request',
  'tool.pre_execute',
  'result.pre_accept',
  'turn.finished',
])
export type BusNode = z.infer<typeof BusNode>

/** Mirror-tree invariants (spec/2). */
export const Invariant = z.enum(['M1', 'M2', 'M3', 'M4', 'M5', 'M6', 'M7', 'M8', 'M9', 'M10'])
export type Invariant = z.infer<typeof Invariant>

/** Rules of the forbidden gate, compiled in (spec/2). */
export const ForbiddenRule = z.enum([
  'foreign_owner_content',
  'fiction_memory_in_real_tree',
  'tombstoned_reference',
  'instance_secret_in_request',
  'maintenance_run_writes_canon',
  'egress_under_untrusted',
])
export type ForbiddenRule = z.infer<typeof ForbiddenRule>

export const ModelPurpose = z.enum(['answer', 'extraction', 'dedupe', 'summary', 'verification'])
export type ModelPurpose = z.infer<typeof ModelPurpose>

/** What vectors are asked for: to know the endpoint's space, to recall, for a person's own text, for extracted ones, to fill the index. */
export const EmbeddingPurpose = z.enum(['probe', 'recall', 'memory', 'extraction', 'index'])
export type EmbeddingPurpose = z.infer<typeof EmbeddingPurpose>

export const FinishReason = z.enum(['stop', 'length', 'tool_calls', 'content_filter', 'other'])
export type FinishReason = z.infer<typeof FinishReason>
