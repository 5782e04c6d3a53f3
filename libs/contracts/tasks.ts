import { z } from 'zod'
import { Arguments } from './arguments.ts'
import { Trust } from './enums.ts'
import { Digest, Id, Slug } from './ids.ts'
import { CapabilityClass, Constraint } from './tools.ts'

/** Delegated work (`003…` §1): each object is a thing of its own; none is merged into another or into a chat log. */

const micros = z.int().min(0)
const instant = z.string()

/** Version of the objects below; a result is verified against the version that its task was made with. */
export const TASK_CONTRACT_VERSION = 1

export const TaskRisk = z.enum(['low', 'medium', 'high'])
export type TaskRisk = z.infer<typeof TaskRisk>

export const Classification = z.enum(['public', 'internal', 'confidential'])
export type Classification = z.infer<typeof Classification>

/** `until_done`: its texts, and what was made of them, are erased once the task is over; `keep`: they stay like everything else. */
export const Retention = z.enum(['keep', 'until_done'])
export type Retention = z.infer<typeof Retention>

/** `done` only after a verified candidate was committed by its owner; `cancelled` only when quiet. */
export const TaskStatus = z.enum(['open', 'verified', 'needs_escalation', 'done', 'cancelling', 'cancelled'])
export type TaskStatus = z.infer<typeof TaskStatus>

export const AttemptStatus = z.enum([
  'active',
  'waiting_for_approval',
  'waiting_for_effect',
  'reconcile_required',
  'candidate_verified',
  'needs_escalation',
  'interrupted',
  'cancelled',
])
export type AttemptStatus = z.infer<typeof AttemptStatus>

export const ActionState = z.enum([
  'proposed',
  'waiting',
  'dispatched',
  'committed',
  'failed',
  'denied',
  'unknown',
  'abandoned',
  'budget_exhausted',
  'cancelled',
])
export type ActionState = z.infer<typeof ActionState>

/** What a submitter is told. */
export const ActionOutcome = z.enum([
  'denied',
  'waiting_for_approval',
  'committed',
  'failed',
  'unknown',
  'pending',
  'budget_exhausted',
  'cancelled',
])
export type ActionOutcome = z.infer<typeof ActionOutcome>

/** Who drives an attempt: whoever submits actions through the API, the built-in loop, or an agent elsewhere. */
export const TaskRuntime = z.enum(['external', 'builtin', 'remote'])
export type TaskRuntime = z.infer<typeof TaskRuntime>

const answer = z.enum(['yes', 'no', 'unknown'])

/** What a runtime can do, as it says itself (`003…` §5). Nothing left out: what is not known is said to be. */
export const CapabilitySet = z.object({
  structured_events: answer,
  pause_for_approval: answer,
  resume: z.enum(['none', 'session', 'checkpoint', 'unknown']),
  cancel: z.enum(['none', 'cooperative', 'process_tree', 'unknown']),
  /** Media types. */
  artifact_export: z.union([z.array(z.string().max(100)).max(20), z.literal('unknown')]),
  workspace_isolation: z.enum(['local', 'worktree', 'container', 'vm', 'provider', 'unknown']),
  raw_event_provenance: answer,
})
export type CapabilitySet = z.infer<typeof CapabilitySet>

/** What a task needs of whoever carries it out; false and empty ask for nothing. */
export const CapabilityNeeds = z.object({
  structured_events: z.boolean(),
  pause_for_approval: z.boolean(),
  resume: z.enum(['none', 'session', 'checkpoint']),
  cancel: z.enum(['none', 'cooperative', 'process_tree']),
  artifact_export: z.array(z.enum(['text/plain', 'text/markdown', 'application/json'])).max(3),
  workspace_isolation: z.array(z.enum(['local', 'worktree', 'container', 'vm', 'provider'])).max(5),
  raw_event_provenance: z.boolean(),
})
export type CapabilityNeeds = z.infer<typeof CapabilityNeeds>

/** One thing that has to hold of a candidate. */
export const AcceptanceCheck = z.discriminatedUnion('kind', [
  /** The candidate's first artifact, read as JSON, fits a schema. */
  z.object({ id: Slug, kind: z.literal('schema'), schema: z.record(z.string().max(200), z.json()) }),
  /** At least so many actions with this tool were committed. */
  z.object({ id: Slug, kind: z.literal('committed'), tool: Slug, at_least: z.int().min(1).max(1000) }),
  /** A tool that only reads is asked, and what it answers fits a schema; text counts as a JSON string. */
  z.object({
    id: Slug,
    kind: z.literal('tool'),
    tool: Slug,
    arguments: Arguments,
    expect: z.record(z.string().max(200), z.json()),
  }),
  /** A model is asked whether the candidate meets a criterion. */
  z.object({ id: Slug, kind: z.literal('model'), criterion: z.string().trim().min(1).max(4000) }),
])
export type AcceptanceCheck = z.infer<typeof AcceptanceCheck>

/** What counts as done. No check at all never does (case E13). */
export const Acceptance = z.object({
  contract_version: z.literal(TASK_CONTRACT_VERSION),
  checks: z
    .array(AcceptanceCheck)
    .max(16)
    .refine((checks) => new Set(checks.map(({ id }) => id)).size === checks.length, 'must have ids that differ'),
})
export type Acceptance = z.infer<typeof Acceptance>

export const Task = z.object({
  task_id: Id,
  /** Whose it is; nobody else's content or authority enters it. */
  tenant: Id,
  character_id: Id,
  contract_version: z.int().min(1),
  instruction: z.string().nullable(),
  input_refs: z.array(Id),
  acceptance: Acceptance.nullable(),
  tools: z.array(Slug),
  trust: Trust,
  risk: TaskRisk,
  needs: CapabilityNeeds,
  budget: z.object({
    max_cost_micros: micros.nullable(),
    max_actions: micros,
    spent_micros: micros,
    reserved_micros: micros,
    used_actions: micros,
  }),
  classification: Classification,
  retention: Retention,
  /** Who asked, and whose yes commits: different things. */
  requested_by: Id,
  commit_authority: Id,
  /** The run that handed it on; null for what the owner asked for. */
  parent_run_id: Id.nullable(),
  status: TaskStatus,
  max_repairs: micros,
  repairs: micros,
  created_at: instant,
  ended_at: instant.nullable(),
})
export type Task = z.infer<typeof Task>

export const Attempt = z.object({
  attempt_id: Id,
  task_id: Id,
  ordinal: z.int().min(1),
  runtime: TaskRuntime,
  runtime_version: Slug,
  harness_profile: Digest,
  workspace_ref: z.string().nullable(),
  policy_profile: Slug,
  started_at: instant,
  ended_at: instant.nullable(),
  status: AttemptStatus,
})
export type Attempt = z.infer<typeof Attempt>

export const Action = z.object({
  action_id: Id,
  attempt_id: Id,
  task_id: Id,
  actor: z.enum(['owner', 'agent', 'verifier']),
  /** The tool. */
  type: Slug,
  normalized_args_ref: Id,
  arguments_hash: Digest,
  resource: Slug,
  side_effect_class: CapabilityClass.nullable(),
  idempotency_key: Slug,
  /** How far what it was made from is trusted, and whether others wait for it. */
  provenance: z.object({ trust: Trust, independent: z.boolean() }),
  state: ActionState,
  outcome: ActionOutcome,
  reason: z.string().nullable(),
  /** The question that waits for the owner. */
  approval_id: Id.nullable(),
  effect_id: Id.nullable(),
  cost_micros: micros.nullable(),
  charged_micros: micros.nullable(),
  created_at: instant,
  settled_at: instant.nullable(),
})
export type Action = z.infer<typeof Action>

export const TaskObservation = z.object({
  action_id: Id,
  status: ActionState,
  /** Attested and scrubbed; null where there is nothing to see, or no longer. */
  structured_result: z.string().nullable(),
  content_id: Id.nullable(),
  artifact_refs: z.array(Id),
  diagnostics: z.string().nullable(),
  /** The version of the tool that it was seen through. */
  environment_revision: z.string().nullable(),
  trust: Trust,
  at: instant,
})
export type TaskObservation = z.infer<typeof TaskObservation>

export const Artifact = z.object({
  artifact_id: Id,
  uri: z.string(),
  candidate_id: Id,
  content_id: Id,
  hash: Digest,
  media_type: z.enum(['text/plain', 'text/markdown', 'application/json']),
  producer: TaskRuntime,
  classification: Classification,
  input_refs: z.array(Id),
  created_at: instant,
  retention_policy: Retention,
  trust: Trust,
})
export type Artifact = z.infer<typeof Artifact>

const decided = { action_id: Id, policy_version: z.int().min(1), approval_request_id: Id.optional() }

/**
 * A decision as it travels. Validated before any default is filled in: ALLOW may leave out constraints and reason_code and may not have
 * constraints; CONSTRAINED_ALLOW may leave out neither (spec/2 "Run loop", case E17).
 */
export const PolicyDecision = z.discriminatedUnion('decision', [
  z.strictObject({ ...decided, decision: z.literal('ALLOW'), reason_code: Slug.optional() }),
  z.strictObject({ ...decided, decision: z.literal('CONSTRAINED_ALLOW'), constraints: z.array(Constraint).min(1), reason_code: Slug }),
  z.strictObject({ ...decided, decision: z.literal('REQUIRE_APPROVAL'), reason_code: Slug }),
  z.strictObject({ ...decided, decision: z.literal('DENY'), reason_code: Slug }),
])
export type PolicyDecision = z.infer<typeof PolicyDecision>
export type PolicyDecisionName = PolicyDecision['decision']

export const AttemptCheckpoint = z.object({
  checkpoint_id: Id,
  attempt_id: Id,
  state_version: z.int().min(1),
  event_offset: z.int().min(1),
  workspace_ref: z.string().nullable(),
  pending_effect_ids: z.array(Id),
  context_projection_ref: Id.nullable(),
  at: instant,
})
export type AttemptCheckpoint = z.infer<typeof AttemptCheckpoint>

export const CheckResult = z.object({
  id: Slug,
  kind: z.enum(['schema', 'committed', 'tool', 'model']),
  status: z.enum(['passed', 'failed']),
  code: Slug,
  /** Whether another try by the same attempt could mend it. */
  repairable: z.boolean(),
})
export type CheckResult = z.infer<typeof CheckResult>

export const VerificationResult = z.object({
  verification_id: Id,
  attempt_id: Id,
  candidate_id: Id,
  contract_version: z.int().min(1),
  verifier_version: z.int().min(1),
  checks: z.array(CheckResult),
  status: z.enum(['passed', 'failed']),
  /** Actions and runs by which it was found out. */
  evidence_refs: z.array(Id),
  environment_ref: Digest,
  at: instant,
})
export type VerificationResult = z.infer<typeof VerificationResult>
