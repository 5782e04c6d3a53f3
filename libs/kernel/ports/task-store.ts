import type {
  ActionState,
  AdmissionFacts,
  AttemptStatus,
  CapabilityClass,
  CapabilityNeeds,
  CheckResult,
  Classification,
  Constraint,
  PolicyDecisionName,
  Retention,
  TaskRisk,
  TaskRuntime,
  TaskStatus,
  Trust,
} from '#contracts'
import type { FoldedTask } from '../tasks/fold.ts'
import type { TaskBudget } from '../tasks/task-budget.ts'
import type { ApprovalRow } from './approval-store.ts'
import type { EffectRow } from './effect-ledger.ts'

export type TaskRow = TaskBudget & {
  id: string
  owner_id: string
  character_id: string
  contract_version: number
  requested_by: string
  commit_authority: string
  /** The run that handed it on, and by which action; null for what the owner asks for. */
  parent_run_id: string | null
  parent_action_id: string | null
  /** How often it was handed on. */
  depth: number
  /** The tree whose grants bound it too. */
  grant_tree_id: string | null
  instruction_content_id: string
  acceptance_content_id: string
  input_refs: readonly string[]
  trust: Trust
  risk: TaskRisk
  needs: CapabilityNeeds
  tools: readonly string[]
  classification: Classification
  retention: Retention
  max_repairs: number
  repairs: number
  status: TaskStatus
  cancel_requested_at: Date | null
  created_at: Date
  ended_at: Date | null
}

/** What may change of a task. */
export type TaskChange = Partial<
  Pick<TaskRow, 'status' | 'spent_micros' | 'reserved_micros' | 'used_actions' | 'repairs' | 'cancel_requested_at' | 'ended_at'>
>

export type AttemptRow = {
  id: string
  owner_id: string
  task_id: string
  ordinal: number
  runtime: TaskRuntime
  runtime_version: string
  harness_profile: string
  workspace_ref: string | null
  policy_profile: string
  diagnostics_content_id: string | null
  /** Held for a loop's run until it is over, and for a question to a model about the candidate. */
  reserved_micros: number
  status: AttemptStatus
  started_at: Date
  ended_at: Date | null
  /** When what a loop's run used was charged. */
  settled_at: Date | null
  /** The run that asks a model about the candidate, until what it cost is charged. */
  verification_run_id: string | null
}

export type NewAttempt = Omit<AttemptRow, 'status' | 'ended_at' | 'settled_at' | 'verification_run_id'>

/** What may change of an attempt. */
export type AttemptChange = Partial<Pick<AttemptRow, 'status' | 'ended_at' | 'reserved_micros' | 'settled_at' | 'verification_run_id'>>

export type ActionRow = {
  id: string
  owner_id: string
  task_id: string
  attempt_id: string
  ordinal: number
  actor: 'owner' | 'agent' | 'verifier'
  tool: string
  resource: string
  idempotency_key: string
  arguments_content_id: string
  arguments_hash: string
  cost_micros: number | null
  trust: Trust
  independent: boolean
  side_effect_class: CapabilityClass | null
  state: ActionState
  reason: string | null
  effect_id: string | null
  approval_id: string | null
  reserved_micros: number
  charged_micros: number | null
  created_at: Date
  settled_at: Date | null
}

export type NewAction = Omit<
  ActionRow,
  'side_effect_class' | 'state' | 'reason' | 'effect_id' | 'approval_id' | 'reserved_micros' | 'charged_micros' | 'settled_at'
>

export type ActionChange = Pick<ActionRow, 'state'> &
  Partial<
    Pick<ActionRow, 'reason' | 'side_effect_class' | 'effect_id' | 'approval_id' | 'reserved_micros' | 'charged_micros' | 'settled_at'>
  >

export type DecisionRow = {
  id: string
  owner_id: string
  action_id: string
  decision: PolicyDecisionName
  constraints: readonly Constraint[]
  policy_version: number
  reason_code: string
  approval_request_id: string | null
  facts: AdmissionFacts
  at: Date
}

export type ObservationRow = {
  id: string
  owner_id: string
  action_id: string
  status: ActionState
  content_id: string | null
  artifact_refs: readonly string[]
  diagnostics: string | null
  environment_revision: string | null
  trust: Trust
  at: Date
}

export type ArtifactRow = {
  id: string
  owner_id: string
  task_id: string
  attempt_id: string
  candidate_id: string
  ordinal: number
  content_id: string
  hash: string
  media_type: 'text/plain' | 'text/markdown' | 'application/json'
  producer: TaskRuntime
  classification: Classification
  retention_policy: Retention
  input_refs: readonly string[]
  trust: Trust
  created_at: Date
}

export type AttemptCheckpointRow = {
  id: string
  owner_id: string
  attempt_id: string
  state_version: number
  event_offset: number
  workspace_ref: string | null
  pending_effect_ids: readonly string[]
  context_projection_ref: string | null
  state: FoldedTask
  at: Date
}

export type VerificationRow = {
  id: string
  owner_id: string
  task_id: string
  attempt_id: string
  candidate_id: string
  contract_version: number
  verifier_version: number
  checks: readonly CheckResult[]
  status: 'passed' | 'failed'
  evidence_refs: readonly string[]
  environment_ref: string
  at: Date
}

export type EvidenceRow = {
  task_id: string
  owner_id: string
  verification_id: string
  committed_by: string
  content_id: string
  digest: string
  at: Date
}

/** Delegated work, row by row; whoever changes anything of a task holds its row (`003…` §1, §4). */
export interface TaskStore {
  insertTask(
    task: Omit<TaskRow, 'spent_micros' | 'reserved_micros' | 'used_actions' | 'repairs' | 'status' | 'cancel_requested_at' | 'ended_at'>,
  ): Promise<void>
  find(ownerId: string, taskId: string): Promise<TaskRow | null>
  /** With the row locked until the unit of work ends. */
  lock(taskId: string): Promise<TaskRow | null>
  list(
    ownerId: string,
    options: { status: TaskStatus | null; before: { createdAt: Date; id: string } | null; limit: number },
  ): Promise<TaskRow[]>
  change(taskId: string, change: TaskChange): Promise<void>

  insertAttempt(attempt: NewAttempt): Promise<void>
  attempt(attemptId: string): Promise<AttemptRow | null>
  attempts(taskId: string): Promise<AttemptRow[]>
  changeAttempt(attemptId: string, change: AttemptChange): Promise<void>

  insertAction(action: NewAction): Promise<void>
  action(actionId: string): Promise<ActionRow | null>
  findAction(ownerId: string, actionId: string): Promise<ActionRow | null>
  /** Whatever this owner has under that key, for that target or within that task. */
  actionsByKey(ownerId: string, name: { taskId: string; resource: string; key: string }): Promise<ActionRow[]>
  actions(attemptId: string): Promise<ActionRow[]>
  actionsOfTask(taskId: string): Promise<ActionRow[]>
  /** One conditional write; false where the action is no longer in `from` (case E16). */
  changeAction(actionId: string, from: ActionState, change: ActionChange): Promise<boolean>

  insertDecision(decision: DecisionRow): Promise<void>
  decisions(taskId: string): Promise<DecisionRow[]>
  insertObservation(observation: ObservationRow): Promise<void>
  observations(taskId: string): Promise<ObservationRow[]>
  insertArtifacts(artifacts: readonly ArtifactRow[]): Promise<void>
  artifacts(taskId: string): Promise<ArtifactRow[]>
  insertCheckpoint(checkpoint: AttemptCheckpointRow): Promise<void>
  latestCheckpoint(attemptId: string): Promise<AttemptCheckpointRow | null>
  checkpoints(taskId: string): Promise<AttemptCheckpointRow[]>
  insertVerification(verification: VerificationRow): Promise<void>
  verifications(taskId: string): Promise<VerificationRow[]>
  insertEvidence(evidence: EvidenceRow): Promise<void>
  evidence(taskId: string): Promise<EvidenceRow | null>

  effects(taskId: string): Promise<EffectRow[]>
  approvals(taskId: string): Promise<ApprovalRow[]>
  /** Whether a process that lives has an effect in hand; on the light tier none lives but this one (decision 4). */
  isInHand(effectId: string, process: { holder: string; alone: boolean }): Promise<boolean>

  /** An attempt that others drive waits, with what it waits for. */
  park(attemptId: string, reason: string): Promise<void>
  /** Becomes the only one to look after an attempt that others drive; null while somebody else is (`003…` §4). */
  claimAttempt(attemptId: string, process: { holder: string; alone: boolean }): Promise<{ fence: number } | null>
  releaseAttempt(attemptId: string, fence: number): Promise<void>
  /** Attempts whose run waits to be taken up, oldest first. */
  queuedAttempts(limit: number): Promise<AttemptRow[]>
  /** Attempts that others drive, with something under way that no living process has in hand. */
  strandedAttempts(process: { holder: string; alone: boolean }, limit: number): Promise<AttemptRow[]>
  /** Live attempts whose run is over, and whose candidate no living process is looking at. */
  overtakenAttempts(process: { holder: string; alone: boolean }, limit: number): Promise<AttemptRow[]>
  /** Becomes the only one to look at an attempt's candidate; null while somebody is, and once the attempt is over. */
  claimConclusion(attemptId: string, process: { holder: string; alone: boolean }): Promise<{ fence: number } | null>
  /** A sign of life of whoever looks at it; false where somebody else does by now. */
  holdConclusion(attemptId: string, fence: number): Promise<boolean>
  releaseConclusion(attemptId: string, fence: number): Promise<void>
  /**
   * Attempts of open tasks that a loop drove and that another one is to follow, and none has: what was verified has to be mended, or the
   * process left where nothing lasting was done and not too often yet. None while what they are for is killed or deleted; longest ended first.
   */
  unfollowedAttempts(query: { attemptId: string | null; limit: number }): Promise<AttemptRow[]>
  /** What an action of a run was handed on as. */
  findByParentAction(ownerId: string, actionId: string): Promise<TaskRow | null>
  /** How much a run handed on. */
  countChildren(runId: string): Promise<number>
  /** Work that the runs of a task handed on and that is not over, oldest first. */
  openChildren(taskId: string): Promise<TaskRow[]>
  /** Actions that the runs of a task gave away. */
  givenActions(taskId: string): Promise<number>
  /** Handed-on work that is not over, while whoever it is for was cancelled, killed or deleted. */
  orphaned(limit: number): Promise<TaskRow[]>
  /** Tasks that are over, were to be kept until then and still hold a text, with nothing under way that they handed on; oldest first. */
  forgettable(limit: number): Promise<TaskRow[]>
  /** Everything that a task's rows, its attempts' effects and their results are stored as; its evidence holds digests and is none of it. */
  contentIds(taskId: string): Promise<string[]>
  /** Tasks that are being cancelled. */
  cancelling(limit: number): Promise<TaskRow[]>
}
