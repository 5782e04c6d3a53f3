import { Acceptance } from '#contracts'
import type {
  Action,
  ActionView,
  Artifact,
  Attempt,
  AttemptCheckpoint,
  PolicyDecision,
  TaskObservation,
  TaskView,
  VerificationResult,
} from '#contracts'
import type { ContentStore } from '#kernel/ports/content-store'
import type {
  ActionRow,
  ArtifactRow,
  AttemptCheckpointRow,
  AttemptRow,
  DecisionRow,
  ObservationRow,
  TaskRow,
  TaskStore,
  VerificationRow,
} from '#kernel/ports/task-store'
import { blockerOf, outcomeOf } from '#kernel/tasks/action-state'

type Texts = ReadonlyMap<string, { body: string | null }>

/** What is asked of a result, as it was stored; null once it is erased. */
export function acceptanceOf(text: string | null): Acceptance | null {
  return text === null ? null : Acceptance.parse(JSON.parse(text))
}

/** Tasks as their owner sees them. */
export async function taskViews(rows: readonly TaskRow[], contents: ContentStore): Promise<TaskView[]> {
  const texts = await contents.get(rows.flatMap((row) => [row.instruction_content_id, row.acceptance_content_id]))
  return rows.map((row) => taskView(row, texts))
}

/** `texts`: at least those of its instruction and its acceptance; what is missing counts as erased. */
export function taskView(row: TaskRow, texts: Texts): TaskView {
  return {
    task_id: row.id,
    tenant: row.owner_id,
    character_id: row.character_id,
    contract_version: row.contract_version,
    instruction: texts.get(row.instruction_content_id)?.body ?? null,
    input_refs: [...row.input_refs],
    acceptance: acceptanceOf(texts.get(row.acceptance_content_id)?.body ?? null),
    tools: [...row.tools],
    trust: row.trust,
    risk: row.risk,
    needs: row.needs,
    budget: {
      max_cost_micros: row.max_cost_micros,
      max_actions: row.max_actions,
      spent_micros: row.spent_micros,
      reserved_micros: row.reserved_micros,
      used_actions: row.used_actions,
    },
    classification: row.classification,
    retention: row.retention,
    requested_by: row.requested_by,
    commit_authority: row.commit_authority,
    parent_run_id: row.parent_run_id,
    status: row.status,
    max_repairs: row.max_repairs,
    repairs: row.repairs,
    created_at: row.created_at.toISOString(),
    ended_at: row.ended_at?.toISOString() ?? null,
  }
}

export function attemptView(row: AttemptRow): Attempt {
  return {
    attempt_id: row.id,
    task_id: row.task_id,
    ordinal: row.ordinal,
    runtime: row.runtime,
    runtime_version: row.runtime_version,
    harness_profile: row.harness_profile,
    workspace_ref: row.workspace_ref,
    policy_profile: row.policy_profile,
    started_at: row.started_at.toISOString(),
    ended_at: row.ended_at?.toISOString() ?? null,
    status: row.status,
  }
}

export function actionOf(row: ActionRow, siblings: readonly ActionRow[]): Action {
  const placed = ({ id, ordinal, independent, state }: ActionRow) => ({ action_id: id, ordinal, independent, state })
  return {
    action_id: row.id,
    attempt_id: row.attempt_id,
    task_id: row.task_id,
    actor: row.actor,
    type: row.tool,
    normalized_args_ref: row.arguments_content_id,
    arguments_hash: row.arguments_hash,
    resource: row.resource,
    side_effect_class: row.side_effect_class,
    idempotency_key: row.idempotency_key,
    provenance: { trust: row.trust, independent: row.independent },
    state: row.state,
    outcome: outcomeOf(row.state, blockerOf(placed(row), siblings.map(placed))?.state ?? null),
    reason: row.reason,
    approval_id: row.approval_id,
    effect_id: row.effect_id,
    cost_micros: row.cost_micros,
    charged_micros: row.charged_micros,
    created_at: row.created_at.toISOString(),
    settled_at: row.settled_at?.toISOString() ?? null,
  }
}

/** Actions with what was seen of each, oldest first. */
export async function actionViews(rows: readonly ActionRow[], deps: { store: TaskStore; contents: ContentStore }): Promise<ActionView[]> {
  const [first] = rows
  if (!first) return []
  const [siblings, observations] = await Promise.all([deps.store.actionsOfTask(first.task_id), deps.store.observations(first.task_id)])
  const texts = await deps.contents.get(observations.flatMap(({ content_id: id }) => id ?? []))
  return rows.map((row) => {
    const seen = observations.findLast(({ action_id: id }) => id === row.id)
    const others = siblings.filter(({ attempt_id: id }) => id === row.attempt_id)
    return { ...actionOf(row, others), observation: seen ? observationView(seen, texts) : null }
  })
}

export function observationView(row: ObservationRow, texts: Texts): TaskObservation {
  return {
    action_id: row.action_id,
    status: row.status,
    structured_result: row.content_id === null ? null : (texts.get(row.content_id)?.body ?? null),
    content_id: row.content_id,
    artifact_refs: [...row.artifact_refs],
    diagnostics: row.diagnostics,
    environment_revision: row.environment_revision,
    trust: row.trust,
    at: row.at.toISOString(),
  }
}

export function artifactView(row: ArtifactRow): Artifact {
  return {
    artifact_id: row.id,
    uri: `lingtai:artifact/${row.id}`,
    candidate_id: row.candidate_id,
    content_id: row.content_id,
    hash: row.hash,
    media_type: row.media_type,
    producer: row.producer,
    classification: row.classification,
    input_refs: [...row.input_refs],
    created_at: row.created_at.toISOString(),
    retention_policy: row.retention_policy,
    trust: row.trust,
  }
}

export function verificationView(row: VerificationRow): VerificationResult {
  return {
    verification_id: row.id,
    attempt_id: row.attempt_id,
    candidate_id: row.candidate_id,
    contract_version: row.contract_version,
    verifier_version: row.verifier_version,
    checks: [...row.checks],
    status: row.status,
    evidence_refs: [...row.evidence_refs],
    environment_ref: row.environment_ref,
    at: row.at.toISOString(),
  }
}

export function checkpointView(row: AttemptCheckpointRow): AttemptCheckpoint {
  return {
    checkpoint_id: row.id,
    attempt_id: row.attempt_id,
    state_version: row.state_version,
    event_offset: row.event_offset,
    workspace_ref: row.workspace_ref,
    pending_effect_ids: [...row.pending_effect_ids],
    context_projection_ref: row.context_projection_ref,
    at: row.at.toISOString(),
  }
}

/** A stored decision as it travels. */
export function decisionView(row: DecisionRow): PolicyDecision {
  const { action_id, policy_version, reason_code, constraints } = row
  const common = {
    action_id,
    policy_version,
    reason_code,
    ...(row.approval_request_id === null ? {} : { approval_request_id: row.approval_request_id }),
  }
  return row.decision === 'CONSTRAINED_ALLOW'
    ? { ...common, decision: row.decision, constraints: [...constraints] }
    : { ...common, decision: row.decision }
}
