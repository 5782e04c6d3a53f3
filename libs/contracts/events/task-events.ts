import { z } from 'zod'
import { Trust } from '../enums.ts'
import { Digest, Id, Slug } from '../ids.ts'
import { ActionState, AttemptStatus, TaskRuntime, TaskRisk, TaskStatus } from '../tasks.ts'
import { AdmissionFacts, CapabilityClass, Constraint } from '../tools.ts'
import { count } from './definition.ts'
import type { EventDefinition } from './definition.ts'

/** What became of one delegated task. */
export const taskEvents = {
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
      /** Held of the task's budget for a question to a model about the candidate. */
      reserved_micros: count.optional(),
      /** Of a loop's run, or such a question, that is over: what it used of the task's budget. */
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
} as const satisfies Record<string, EventDefinition>
