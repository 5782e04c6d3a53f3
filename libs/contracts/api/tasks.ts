import { z } from 'zod'
import { Arguments } from '../arguments.ts'
import { Trust } from '../enums.ts'
import { Digest, Id, Slug } from '../ids.ts'
import {
  Acceptance,
  Action,
  Artifact,
  Attempt,
  AttemptCheckpoint,
  CapabilityNeeds,
  CapabilitySet,
  Classification,
  PolicyDecision,
  Retention,
  Task,
  TaskObservation,
  TaskRisk,
  TaskRuntime,
  TaskStatus,
  TASK_CONTRACT_VERSION,
  VerificationResult,
} from '../tasks.ts'
import { PageQuery, pageOf } from './common.ts'

const mediaType = z.enum(['text/plain', 'text/markdown', 'application/json'])

export const TaskView = Task.meta({ id: 'Task' })
export type TaskView = z.infer<typeof TaskView>
export const TaskPage = pageOf(TaskView, 'TaskPage')
export const TaskListQuery = PageQuery.extend({ status: TaskStatus.optional() })

export const AttemptView = Attempt.meta({ id: 'Attempt' })
export type AttemptView = z.infer<typeof AttemptView>
export const AttemptList = z.object({ items: z.array(AttemptView) }).meta({ id: 'AttemptList' })

export const ActionView = Action.extend({ observation: TaskObservation.nullable() }).meta({ id: 'Action' })
export type ActionView = z.infer<typeof ActionView>
export const ActionList = z.object({ items: z.array(ActionView) }).meta({ id: 'ActionList' })

export const CreateTask = z
  .object({
    /** Who is asked to do it; its grants bound what can be done. */
    character_id: Id,
    instruction: z.string().trim().min(1).max(32_000),
    /** What it is to work on. Text that did not come from the owner stays untrusted, and so does what is made of it. */
    inputs: z
      .array(
        z.object({ media_type: mediaType, text: z.string().min(1).max(256_000), trust: Trust.exclude(['trusted']).default('workspace') }),
      )
      .max(16)
      .default([]),
    /** The tools it needs, by name: at most these, and only where they are granted. */
    tools: z.array(Slug).max(64).default([]),
    acceptance: Acceptance.default({ contract_version: TASK_CONTRACT_VERSION, checks: [] }),
    budget: z.object({
      /** Micro-units; null: not promised. */
      max_cost_micros: z.int().min(0).nullable().default(null),
      max_actions: z.int().min(0).max(1000).default(50),
    }),
    max_repairs: z.int().min(0).max(5).default(1),
    risk: TaskRisk.default('medium'),
    /** Beyond what risk and tools ask for anyway. */
    needs: CapabilityNeeds.partial().default({}),
    classification: Classification.default('internal'),
    retention: Retention.default('keep'),
  })
  .meta({ id: 'CreateTask' })
export type CreateTask = z.infer<typeof CreateTask>

export const StartAttempt = z
  .object({
    /** Tried in this order; the first that can do what the task needs is taken. */
    runtimes: z.array(TaskRuntime).min(1).max(3).default(['external']),
    workspace_ref: Slug.optional(),
  })
  .meta({ id: 'StartAttempt' })
export type StartAttempt = z.infer<typeof StartAttempt>

/** An action, named by a key of the submitter's; the same name again is the same action, and nothing else has it (cases E5, E10). */
export const SubmitAction = z
  .object({
    key: Slug,
    /** Of an action that is there already: ids are ours (case E22). */
    action_id: Id.optional(),
    tool: Slug,
    arguments: Arguments,
    /** What it acts on; the tool itself where left out. */
    resource: Slug.optional(),
    /** What it may cost at most, in micro-units: raises what the tool's contract says, and never stands in for it. */
    cost_micros: z.int().min(1).optional(),
    /** How far what it was made from is trusted: may only lower what the task has. */
    trust: Trust.exclude(['trusted']).default('workspace'),
    actor: z.enum(['owner', 'agent']).default('agent'),
    /** Nothing before it has to be over first. */
    independent: z.boolean().default(false),
  })
  .meta({ id: 'SubmitAction' })
export type SubmitAction = z.infer<typeof SubmitAction>

/** A candidate for the task's result. */
export const CompleteTask = z
  .strictObject({
    artifacts: z
      .array(z.strictObject({ media_type: mediaType, text: z.string().min(1).max(500_000) }))
      .min(1)
      .max(16),
  })
  .meta({ id: 'CompleteTask' })
export type CompleteTask = z.infer<typeof CompleteTask>

/** `verdict` of a completion: what follows is said with it. */
export const CompletionView = z
  .object({
    task: TaskView,
    verdict: z.enum(['verified', 'repair', 'needs_escalation', 'cancelled']),
    verification: VerificationResult.nullable(),
    artifacts: z.array(Artifact),
  })
  .meta({ id: 'Completion' })
export type CompletionView = z.infer<typeof CompletionView>

/** The owner's yes to exactly this candidate. */
export const CommitTask = z.strictObject({ candidate_id: Id }).meta({ id: 'CommitTask' })
export type CommitTask = z.infer<typeof CommitTask>

export const RuntimeList = z
  .object({ items: z.array(z.object({ runtime: TaskRuntime, version: Slug, available: z.boolean(), capabilities: CapabilitySet })) })
  .meta({ id: 'RuntimeList' })

/**
 * Everything that shows how a task's result came about (`003…` §1). The signature is by the instance's key, over the canonical JSON (RFC 8785)
 * of everything else but the key.
 */
export const EvidencePackage = z
  .object({
    lingtai_task_evidence: z.literal(1),
    task: Task,
    attempts: z.array(Attempt),
    /** Digests are salted; a text is null once erased. */
    inputs: z.array(z.object({ content_id: Id, digest: Digest, text: z.string().nullable() })),
    candidate: z.array(Artifact),
    actions: z.array(Action),
    observations: z.array(TaskObservation),
    effects: z.array(
      z.object({
        effect_id: Id,
        action_id: Id,
        attempt_id: Id,
        tool: Slug,
        state: z.string(),
        code: z.string().nullable(),
        constraints: z.array(z.string()),
        reserved_micros: z.int(),
        cost_micros: z.int().nullable(),
        settled_at: z.string().nullable(),
      }),
    ),
    policies: z.array(PolicyDecision),
    verification: VerificationResult.nullable(),
    approvals: z.array(
      z.object({
        approval_id: Id,
        action_id: Id,
        state: z.string(),
        arguments_hash: Digest,
        decided_by: Id.nullable(),
        decided_at: z.string().nullable(),
      }),
    ),
    checkpoints: z.array(AttemptCheckpoint),
    final_commit: z.object({ by: Id, at: z.string(), digest: Digest }).nullable(),
    lineage: z.object({
      requested_by: Id,
      commit_authority: Id,
      character_id: Id,
      parent_run_id: Id.nullable(),
      attempt_ids: z.array(Id),
    }),
    /** The task's own stream and those of its attempts: canonical bytes and hashes, to be chained again by whoever doubts. */
    proof: z.array(
      z.object({
        stream: z.string(),
        events: z.array(z.object({ seq: z.int(), canonical: z.string(), hash: Digest })),
        whole: z.boolean(),
      }),
    ),
    public_key: z.base64(),
    signature: z.base64(),
  })
  .meta({ id: 'EvidencePackage' })
export type EvidencePackage = z.infer<typeof EvidencePackage>
