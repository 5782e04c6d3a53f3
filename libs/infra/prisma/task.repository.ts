import type { ApprovalRow } from '#kernel/ports/approval-store'
import type { EffectRow } from '#kernel/ports/effect-ledger'
import type {
  ActionChange,
  ActionRow,
  ArtifactRow,
  AttemptChange,
  AttemptCheckpointRow,
  AttemptRow,
  DecisionRow,
  EvidenceRow,
  NewAction,
  ObservationRow,
  TaskChange,
  TaskRow,
  TaskStore,
  VerificationRow,
} from '#kernel/ports/task-store'
import type { Database } from './database.ts'
import { LEASE_SECONDS } from './event-log.repository.ts'
import type { SqlParameter } from './sql.ts'
import {
  actionColumns,
  artifactColumns,
  attemptColumns,
  changingActionColumns,
  changingAttemptColumns,
  changingTaskColumns,
  checkpointColumns,
  decisionColumns,
  evidenceColumns,
  observationColumns,
  taskColumns,
  verificationColumns,
} from './task-columns.ts'
import type { Columns } from './task-columns.ts'
import { RowCountError } from './tree.repository.ts'

const listOf = (...groups: readonly Columns[]): string => groups.flatMap((columns) => Object.keys(columns)).join(', ')
const tasks = `SELECT ${listOf(taskColumns, changingTaskColumns)} FROM tasks`
const attempts = `SELECT ${listOf(attemptColumns, changingAttemptColumns)} FROM task_attempts`
const actions = `SELECT ${listOf(actionColumns, changingActionColumns)} FROM task_actions`

/** Attempts that begin by themselves after a process left, at most, where nothing lasting was done. */
const ATTEMPTS_MAX = 5

/** Nobody who lives looks at an attempt's candidate; on the light tier none lives but this process (decision 4). */
const isFree = (attempt: string, { holder, alone }: { holder: number; alone: number }): string =>
  `(${attempt}.conclusion_holder IS NULL OR ${attempt}.conclusion_until < clock_timestamp()
    OR ($${alone}::boolean AND ${attempt}.conclusion_holder <> $${holder}))`

/** Delegated work in Postgres; triggers hold what may follow what. */
export class TaskRepository implements TaskStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async #insert(table: string, columns: Columns, row: object): Promise<void> {
    const names = Object.keys(columns)
    const values = names.map((name, index) => `$${index + 1}::${columns[name] ?? 'text'}`)
    const params = names.map((name) => parameter(columns[name] ?? 'text', Reflect.get(row, name)))
    const written = await this.#database.execute(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${values.join(', ')})`, params)
    if (written !== 1) throw new RowCountError(`insert into ${table}`, 1, written)
  }

  /** Sets just the columns that the change names. */
  async #update(table: string, columns: Columns, change: object, where: { sql: string; params: readonly SqlParameter[] }): Promise<number> {
    const names = Object.keys(columns).filter((name) => Reflect.get(change, name) !== undefined)
    const sets = names.map((name, index) => `${name} = $${where.params.length + index + 1}::${columns[name] ?? 'text'}`)
    const params = names.map((name) => parameter(columns[name] ?? 'text', Reflect.get(change, name)))
    return this.#database.execute(`UPDATE ${table} SET ${sets.join(', ')} WHERE ${where.sql}`, [...where.params, ...params])
  }

  async #first<Row>(text: string, params: readonly SqlParameter[]): Promise<Row | null> {
    const [row] = await this.#database.query<Row>(text, params)
    return row ?? null
  }

  insertTask(task: Parameters<TaskStore['insertTask']>[0]): Promise<void> {
    return this.#insert('tasks', taskColumns, task)
  }

  find(ownerId: string, taskId: string): Promise<TaskRow | null> {
    return this.#first<TaskRow>(`${tasks} WHERE owner_id = $1::uuid AND id = $2::uuid`, [ownerId, taskId])
  }

  lock(taskId: string): Promise<TaskRow | null> {
    return this.#first<TaskRow>(`${tasks} WHERE id = $1::uuid FOR UPDATE`, [taskId])
  }

  list(ownerId: string, { status, before, limit }: Parameters<TaskStore['list']>[1]): Promise<TaskRow[]> {
    return this.#database.query<TaskRow>(
      `${tasks} WHERE owner_id = $1::uuid AND ($2::text IS NULL OR status = $2)
         AND ($3::timestamptz IS NULL OR (date_trunc('milliseconds', created_at), id) < ($3::timestamptz, $4::uuid))
       ORDER BY date_trunc('milliseconds', created_at) DESC, id DESC LIMIT $5`,
      [ownerId, status, before?.createdAt ?? null, before?.id ?? null, limit],
    )
  }

  async change(taskId: string, change: TaskChange): Promise<void> {
    const written = await this.#update('tasks', changingTaskColumns, change, { sql: 'id = $1::uuid', params: [taskId] })
    if (written !== 1) throw new RowCountError('change task', 1, written)
  }

  insertAttempt(attempt: Parameters<TaskStore['insertAttempt']>[0]): Promise<void> {
    return this.#insert('task_attempts', attemptColumns, attempt)
  }

  attempt(attemptId: string): Promise<AttemptRow | null> {
    return this.#first<AttemptRow>(`${attempts} WHERE id = $1::uuid`, [attemptId])
  }

  attempts(taskId: string): Promise<AttemptRow[]> {
    return this.#database.query<AttemptRow>(`${attempts} WHERE task_id = $1::uuid ORDER BY ordinal`, [taskId])
  }

  async changeAttempt(attemptId: string, change: AttemptChange): Promise<void> {
    const columns = { ...changingAttemptColumns, reserved_micros: 'bigint' }
    const written = await this.#update('task_attempts', columns, change, { sql: 'id = $1::uuid', params: [attemptId] })
    if (written !== 1) throw new RowCountError('change attempt', 1, written)
  }

  insertAction(action: NewAction): Promise<void> {
    return this.#insert('task_actions', actionColumns, action)
  }

  action(actionId: string): Promise<ActionRow | null> {
    return this.#first<ActionRow>(`${actions} WHERE id = $1::uuid`, [actionId])
  }

  findAction(ownerId: string, actionId: string): Promise<ActionRow | null> {
    return this.#first<ActionRow>(`${actions} WHERE owner_id = $1::uuid AND id = $2::uuid`, [ownerId, actionId])
  }

  actionsByKey(ownerId: string, { taskId, resource, key }: Parameters<TaskStore['actionsByKey']>[1]): Promise<ActionRow[]> {
    return this.#database.query<ActionRow>(
      `${actions} WHERE owner_id = $1::uuid AND idempotency_key = $2 AND (resource = $3 OR task_id = $4::uuid) ORDER BY id`,
      [ownerId, key, resource, taskId],
    )
  }

  actions(attemptId: string): Promise<ActionRow[]> {
    return this.#database.query<ActionRow>(`${actions} WHERE attempt_id = $1::uuid ORDER BY ordinal`, [attemptId])
  }

  actionsOfTask(taskId: string): Promise<ActionRow[]> {
    return this.#database.query<ActionRow>(`${actions} WHERE task_id = $1::uuid ORDER BY created_at, ordinal`, [taskId])
  }

  async changeAction(actionId: string, from: ActionRow['state'], change: ActionChange): Promise<boolean> {
    const where = { sql: 'id = $1::uuid AND state = $2', params: [actionId, from] }
    return (await this.#update('task_actions', changingActionColumns, change, where)) === 1
  }

  insertDecision(decision: DecisionRow): Promise<void> {
    return this.#insert('policy_decisions', decisionColumns, decision)
  }

  decisions(taskId: string): Promise<DecisionRow[]> {
    return this.#ofActions<DecisionRow>('policy_decisions', decisionColumns, taskId)
  }

  insertObservation(observation: ObservationRow): Promise<void> {
    return this.#insert('observations', observationColumns, observation)
  }

  observations(taskId: string): Promise<ObservationRow[]> {
    return this.#ofActions<ObservationRow>('observations', observationColumns, taskId)
  }

  #ofActions<Row>(table: string, columns: Columns, taskId: string): Promise<Row[]> {
    const named = Object.keys(columns).map((name) => `x.${name}`)
    return this.#database.query<Row>(
      `SELECT ${named.join(', ')} FROM ${table} x JOIN task_actions a ON a.id = x.action_id WHERE a.task_id = $1::uuid ORDER BY x.at, x.id`,
      [taskId],
    )
  }

  async insertArtifacts(artifacts: readonly ArtifactRow[]): Promise<void> {
    for (const artifact of artifacts) await this.#insert('artifacts', artifactColumns, artifact)
  }

  artifacts(taskId: string): Promise<ArtifactRow[]> {
    return this.#database.query<ArtifactRow>(
      `SELECT ${listOf(artifactColumns)} FROM artifacts WHERE task_id = $1::uuid ORDER BY created_at, candidate_id, ordinal`,
      [taskId],
    )
  }

  insertCheckpoint(checkpoint: AttemptCheckpointRow): Promise<void> {
    return this.#insert('attempt_checkpoints', checkpointColumns, checkpoint)
  }

  latestCheckpoint(attemptId: string): Promise<AttemptCheckpointRow | null> {
    return this.#first<AttemptCheckpointRow>(
      `SELECT ${listOf(checkpointColumns)} FROM attempt_checkpoints WHERE attempt_id = $1::uuid ORDER BY event_offset DESC LIMIT 1`,
      [attemptId],
    )
  }

  checkpoints(taskId: string): Promise<AttemptCheckpointRow[]> {
    const named = Object.keys(checkpointColumns).map((name) => `c.${name}`)
    return this.#database.query<AttemptCheckpointRow>(
      `SELECT ${named.join(', ')} FROM attempt_checkpoints c JOIN task_attempts t ON t.id = c.attempt_id
       WHERE t.task_id = $1::uuid ORDER BY c.event_offset`,
      [taskId],
    )
  }

  insertVerification(verification: VerificationRow): Promise<void> {
    return this.#insert('verification_results', verificationColumns, verification)
  }

  verifications(taskId: string): Promise<VerificationRow[]> {
    return this.#database.query<VerificationRow>(
      `SELECT ${listOf(verificationColumns)} FROM verification_results WHERE task_id = $1::uuid ORDER BY at, id`,
      [taskId],
    )
  }

  insertEvidence(evidence: EvidenceRow): Promise<void> {
    return this.#insert('evidence_packages', evidenceColumns, evidence)
  }

  evidence(taskId: string): Promise<EvidenceRow | null> {
    return this.#first<EvidenceRow>(`SELECT ${listOf(evidenceColumns)} FROM evidence_packages WHERE task_id = $1::uuid`, [taskId])
  }

  effects(taskId: string): Promise<EffectRow[]> {
    return this.#database.query<EffectRow>(
      `SELECT e.id, e.owner_id, e.character_id, e.run_id, e.action_id, e.tool, e.capability, e.consequence, e.constraints, e.resource,
              e.idempotency_key, e.arguments_content_id, e.arguments_hash, e.reserved_micros, e.state, e.code, e.outcome_content_id,
              e.cost_micros, e.claim_holder, e.claim_fence, e.created_at, e.settled_at
       FROM effects e JOIN task_attempts t ON t.id = e.run_id WHERE t.task_id = $1::uuid ORDER BY e.created_at, e.id`,
      [taskId],
    )
  }

  approvals(taskId: string): Promise<ApprovalRow[]> {
    return this.#database.query<ApprovalRow>(
      `SELECT p.id, p.owner_id, p.character_id, p.run_id, p.action_id, p.tool, p.tool_version, p.capability, p.reason, p.arguments_content_id,
              p.arguments_hash, p.profile_hash, p.policy_version, p.state, p.expires_at, p.decided_by, p.decided_at, p.created_at
       FROM approvals p JOIN task_attempts t ON t.id = p.run_id WHERE t.task_id = $1::uuid ORDER BY p.created_at, p.id`,
      [taskId],
    )
  }

  async isInHand(effectId: string, { holder, alone }: { holder: string; alone: boolean }): Promise<boolean> {
    const rows = await this.#database.query(
      `SELECT 1 FROM effects WHERE id = $1::uuid AND claim_holder <> $2 AND NOT $3::boolean AND claim_until > clock_timestamp()`,
      [effectId, holder, alone],
    )
    return rows.length > 0
  }

  async park(attemptId: string, reason: string): Promise<void> {
    await this.#database.execute(
      `UPDATE runs SET state = 'suspended', reason = $2, queue_expires_at = NULL
       WHERE id = $1::uuid AND kind = 'delegated' AND state IN ('queued', 'suspended')`,
      [attemptId, reason],
    )
  }

  async claimAttempt(attemptId: string, { holder, alone }: { holder: string; alone: boolean }): Promise<{ fence: number } | null> {
    return this.#first<{ fence: number }>(
      `UPDATE runs SET fence = fence + 1, holder = $2,
              lease_until = clock_timestamp() + interval '${LEASE_SECONDS} seconds'
       WHERE id = $1::uuid AND state IN ('queued', 'suspended')
         AND (holder IS NULL OR lease_until IS NULL OR lease_until < clock_timestamp() OR ($3::boolean AND holder <> $2))
       RETURNING fence`,
      [attemptId, holder, alone],
    )
  }

  async releaseAttempt(attemptId: string, fence: number): Promise<void> {
    await this.#database.execute(
      `UPDATE runs SET holder = NULL, lease_until = NULL WHERE id = $1::uuid AND fence = $2 AND state IN ('queued', 'suspended')`,
      [attemptId, fence],
    )
  }

  queuedAttempts(limit: number): Promise<AttemptRow[]> {
    return this.#byRun(`r.state = 'queued'`, limit)
  }

  strandedAttempts({ holder, alone }: { holder: string; alone: boolean }, limit: number): Promise<AttemptRow[]> {
    // In this order: sent by nobody who lives; or proposed a while ago, and nothing that is waited for stands before it.
    return this.#byRun(
      `t.runtime = 'external' AND r.state = 'suspended' AND (
         EXISTS (SELECT 1 FROM task_actions a JOIN effects e ON e.id = a.effect_id
                 WHERE a.attempt_id = t.id AND a.state = 'dispatched'
                   AND (e.claim_holder IS NULL OR e.claim_until < clock_timestamp() OR ($3::boolean AND e.claim_holder <> $2)))
         OR (EXISTS (SELECT 1 FROM task_actions a
                     WHERE a.attempt_id = t.id AND a.state = 'proposed' AND a.created_at < clock_timestamp() - interval '5 seconds')
             AND NOT EXISTS (SELECT 1 FROM task_actions a WHERE a.attempt_id = t.id AND a.state IN ('waiting', 'dispatched', 'unknown'))))`,
      limit,
      [holder, alone],
    )
  }

  overtakenAttempts({ holder, alone }: { holder: string; alone: boolean }, limit: number): Promise<AttemptRow[]> {
    return this.#byRun(`r.ended_at IS NOT NULL AND ${isFree('t', { holder: 2, alone: 3 })}`, limit, [holder, alone])
  }

  async claimConclusion(attemptId: string, { holder, alone }: { holder: string; alone: boolean }): Promise<{ fence: number } | null> {
    return this.#first<{ fence: number }>(
      `UPDATE task_attempts t SET conclusion_fence = conclusion_fence + 1, conclusion_holder = $2,
              conclusion_until = clock_timestamp() + interval '${LEASE_SECONDS} seconds'
       WHERE id = $1::uuid AND ended_at IS NULL AND ${isFree('t', { holder: 2, alone: 3 })}
       RETURNING conclusion_fence AS fence`,
      [attemptId, holder, alone],
    )
  }

  async holdConclusion(attemptId: string, fence: number): Promise<boolean> {
    const written = await this.#database.execute(
      `UPDATE task_attempts SET conclusion_until = clock_timestamp() + interval '${LEASE_SECONDS} seconds'
       WHERE id = $1::uuid AND ended_at IS NULL AND conclusion_fence = $2 AND conclusion_holder IS NOT NULL`,
      [attemptId, fence],
    )
    return written === 1
  }

  async releaseConclusion(attemptId: string, fence: number): Promise<void> {
    await this.#database.execute(
      `UPDATE task_attempts SET conclusion_holder = NULL, conclusion_until = NULL
       WHERE id = $1::uuid AND ended_at IS NULL AND conclusion_fence = $2`,
      [attemptId, fence],
    )
  }

  unfollowedAttempts({ attemptId, limit }: Parameters<TaskStore['unfollowedAttempts']>[0]): Promise<AttemptRow[]> {
    const named = Object.keys({ ...attemptColumns, ...changingAttemptColumns }).map((name) => `t.${name}`)
    return this.#database.query<AttemptRow>(
      `SELECT ${named.join(', ')}
       FROM tasks k JOIN task_attempts t ON t.task_id = k.id JOIN runs r ON r.id = t.id JOIN characters c ON c.id = k.character_id
       WHERE k.status = 'open' AND c.deleted_at IS NULL AND t.status = 'interrupted' AND t.runtime <> 'external'
         AND ($2::uuid IS NULL OR t.id = $2::uuid)
         AND NOT EXISTS (SELECT 1 FROM task_attempts later WHERE later.task_id = k.id AND later.ordinal > t.ordinal)
         AND NOT EXISTS (SELECT 1 FROM kill_flags f WHERE f.scope = 'global' OR (f.scope = 'owner' AND f.scope_id = k.owner_id)
                                                       OR (f.scope = 'character' AND f.scope_id = k.character_id))
         AND (EXISTS (SELECT 1 FROM verification_results v WHERE v.task_id = k.id AND v.attempt_id = t.id)
              OR (r.reason IN ('drained', 'lease_expired') AND t.ordinal < ${ATTEMPTS_MAX}
                  AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.run_id = t.id AND e.consequence = 'lasting'
                                                            AND e.state IN ('done', 'reconciled_done'))))
       ORDER BY t.ended_at LIMIT $1`,
      [limit, attemptId],
    )
  }

  #byRun(condition: string, limit: number, params: readonly SqlParameter[] = []): Promise<AttemptRow[]> {
    const named = Object.keys({ ...attemptColumns, ...changingAttemptColumns }).map((name) => `t.${name}`)
    return this.#database.query<AttemptRow>(
      `SELECT ${named.join(', ')} FROM task_attempts t JOIN runs r ON r.id = t.id
       WHERE t.ended_at IS NULL AND ${condition} ORDER BY t.started_at LIMIT $1`,
      [limit, ...params],
    )
  }

  findByParentAction(ownerId: string, actionId: string): Promise<TaskRow | null> {
    return this.#first<TaskRow>(`${tasks} WHERE owner_id = $1::uuid AND parent_action_id = $2::uuid`, [ownerId, actionId])
  }

  async countChildren(runId: string): Promise<number> {
    const row = await this.#first<{ count: number }>('SELECT count(*)::int AS count FROM tasks WHERE parent_run_id = $1::uuid', [runId])
    return row?.count ?? 0
  }

  openChildren(taskId: string): Promise<TaskRow[]> {
    return this.#database.query<TaskRow>(
      `${tasks} WHERE ended_at IS NULL AND parent_run_id IN (SELECT id FROM task_attempts WHERE task_id = $1::uuid) ORDER BY created_at, id`,
      [taskId],
    )
  }

  async givenActions(taskId: string): Promise<number> {
    const row = await this.#first<{ given: number }>(
      `SELECT coalesce(sum(max_actions), 0)::int AS given FROM tasks
       WHERE parent_run_id IN (SELECT id FROM task_attempts WHERE task_id = $1::uuid)`,
      [taskId],
    )
    return row?.given ?? 0
  }

  orphaned(limit: number): Promise<TaskRow[]> {
    return this.#database.query<TaskRow>(
      `${tasks} k WHERE k.status IN ('open', 'verified', 'needs_escalation') AND k.parent_run_id IS NOT NULL AND (
         EXISTS (SELECT 1 FROM runs r WHERE r.id = k.parent_run_id AND r.reason IN ('cancelled', 'killed') AND r.ended_at IS NOT NULL)
         OR EXISTS (SELECT 1 FROM run_commands c WHERE c.run_id = k.parent_run_id AND c.kind = 'cancel' AND c.recorded_at IS NULL)
         OR EXISTS (SELECT 1 FROM task_attempts a JOIN tasks p ON p.id = a.task_id
                    WHERE a.id = k.parent_run_id AND p.status IN ('cancelling', 'cancelled'))
         OR EXISTS (SELECT 1 FROM characters c WHERE c.id = k.character_id AND c.deleted_at IS NOT NULL))
       ORDER BY k.created_at LIMIT $1`,
      [limit],
    )
  }

  forgettable(limit: number): Promise<TaskRow[]> {
    return this.#database.query<TaskRow>(
      `${tasks} k WHERE k.retention = 'until_done' AND k.ended_at IS NOT NULL
         AND EXISTS (SELECT 1 FROM contents c WHERE c.erased_at IS NULL
                       AND (c.id = k.instruction_content_id OR c.id IN (SELECT a.content_id FROM artifacts a WHERE a.task_id = k.id)))
         AND NOT EXISTS (SELECT 1 FROM tasks h JOIN task_attempts t ON t.id = h.parent_run_id WHERE t.task_id = k.id AND h.ended_at IS NULL)
       ORDER BY k.ended_at LIMIT $1`,
      [limit],
    )
  }

  async contentIds(taskId: string): Promise<string[]> {
    const rows = await this.#database.query<{ id: string }>(
      `WITH runs_of AS (SELECT t.id, r.candidate_id FROM task_attempts t JOIN runs r ON r.id = t.id WHERE t.task_id = $1::uuid),
       held AS (
         SELECT unnest(ARRAY[instruction_content_id, acceptance_content_id] || input_refs) AS id FROM tasks WHERE id = $1::uuid
         UNION SELECT diagnostics_content_id FROM task_attempts WHERE task_id = $1::uuid
         UNION SELECT arguments_content_id FROM task_actions WHERE task_id = $1::uuid
         UNION SELECT o.content_id FROM observations o JOIN task_actions a ON a.id = o.action_id WHERE a.task_id = $1::uuid
         UNION SELECT content_id FROM artifacts WHERE task_id = $1::uuid
         UNION SELECT unnest(ARRAY[e.arguments_content_id, e.outcome_content_id]) FROM effects e JOIN runs_of r ON r.id = e.run_id
         UNION SELECT candidate_id FROM runs_of)
       SELECT c.id FROM contents c JOIN held USING (id) ORDER BY c.id`,
      [taskId],
    )
    return rows.map(({ id }) => id)
  }

  cancelling(limit: number): Promise<TaskRow[]> {
    return this.#database.query<TaskRow>(`${tasks} WHERE status = 'cancelling' ORDER BY cancel_requested_at LIMIT $1`, [limit])
  }
}

/** A row's value as its column takes it. */
function parameter(type: string, value: unknown): SqlParameter {
  if (value === null || value === undefined) return null
  return type === 'jsonb' ? JSON.stringify(value) : (value as SqlParameter)
}
