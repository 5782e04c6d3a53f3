import type { ApprovalRow, ApprovalState, ApprovalStore, NewApproval } from '#kernel/ports/approval-store'
import type { Database } from './database.ts'
import { RowCountError } from './tree.repository.ts'

const columns = `id, owner_id, character_id, run_id, action_id, tool, tool_version, capability, reason, arguments_content_id, arguments_hash,
  profile_hash, policy_version, state, expires_at, decided_by, decided_at, created_at`

/** Questions to owners in Postgres. */
export class ApprovalRepository implements ApprovalStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async ask(approval: NewApproval): Promise<void> {
    const rows = await this.#database.execute(
      `INSERT INTO approvals (id, owner_id, character_id, run_id, action_id, tool, tool_version, capability, reason, arguments_content_id,
                              arguments_hash, profile_hash, policy_version, expires_at)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::uuid, $6, $7, $8, $9, $10::uuid, $11, $12, $13, $14)`,
      [
        approval.id,
        approval.owner_id,
        approval.character_id,
        approval.run_id,
        approval.action_id,
        approval.tool,
        approval.tool_version,
        approval.capability,
        approval.reason,
        approval.arguments_content_id,
        approval.arguments_hash,
        approval.profile_hash,
        approval.policy_version,
        approval.expires_at,
      ],
    )
    if (rows !== 1) throw new RowCountError('ask for approval', 1, rows)
  }

  async find(ownerId: string, approvalId: string): Promise<ApprovalRow | null> {
    return this.#one('owner_id = $1::uuid AND id = $2::uuid', [ownerId, approvalId])
  }

  async lock(ownerId: string, approvalId: string): Promise<ApprovalRow | null> {
    return this.#one('owner_id = $1::uuid AND id = $2::uuid FOR UPDATE', [ownerId, approvalId])
  }

  async ofAction(runId: string, actionId: string): Promise<ApprovalRow | null> {
    return this.#one('run_id = $1::uuid AND action_id = $2::uuid', [runId, actionId])
  }

  async #one(where: string, params: string[]): Promise<ApprovalRow | null> {
    const [row] = await this.#database.query<ApprovalRow>(`SELECT ${columns} FROM approvals WHERE ${where}`, params)
    return row ?? null
  }

  async ownerOf(approvalId: string): Promise<string | null> {
    const [row] = await this.#database.query<{ owner_id: string }>('SELECT owner_id FROM approvals WHERE id = $1::uuid', [approvalId])
    return row?.owner_id ?? null
  }

  async list(
    ownerId: string | null,
    options: { state: ApprovalState | null; before: { createdAt: Date; id: string } | null; limit: number },
  ): Promise<ApprovalRow[]> {
    return this.#database.query<ApprovalRow>(
      `SELECT ${columns} FROM approvals
       WHERE ($1::uuid IS NULL OR owner_id = $1::uuid) AND ($2::text IS NULL OR state = $2)
         AND ($3::timestamptz IS NULL OR (date_trunc('milliseconds', created_at), id) < ($3::timestamptz, $4::uuid))
       ORDER BY date_trunc('milliseconds', created_at) DESC, id DESC LIMIT $5`,
      [ownerId, options.state, options.before?.createdAt ?? null, options.before?.id ?? null, options.limit],
    )
  }

  async move(
    approvalId: string,
    { from, to, by, at }: { from: ApprovalState; to: ApprovalState; by: string | null; at: Date },
  ): Promise<boolean> {
    const rows = await this.#database.execute(
      `UPDATE approvals SET state = $3, decided_by = coalesce($4::uuid, decided_by), decided_at = coalesce(decided_at, $5)
       WHERE id = $1::uuid AND state = $2`,
      [approvalId, from, to, by, at],
    )
    return rows === 1
  }

  async revokeOf(runId: string, at: Date): Promise<void> {
    await this.#database.execute(
      `UPDATE approvals SET state = 'revoked', decided_at = coalesce(decided_at, $2) WHERE run_id = $1::uuid AND state IN ('pending', 'approved')`,
      [runId, at],
    )
  }

  async due(now: Date, limit: number, last: readonly string[]): Promise<ApprovalRow[]> {
    return this.#database.query<ApprovalRow>(
      `SELECT ${columns} FROM approvals WHERE state = 'pending' AND expires_at <= $1 ORDER BY id = ANY ($3::uuid[]), expires_at LIMIT $2`,
      [now, limit, [...last]],
    )
  }
}
