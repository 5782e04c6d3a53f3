import { LingtaiError } from '#contracts'
import type { ApprovalView, DecideApproval, EventPayload } from '#contracts'
import type { ApprovalRow, ApprovalState, ApprovalStore } from '#kernel/ports/approval-store'
import type { Clock } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { Stragglers } from '#kernel/sweeps/stragglers'

/** Questions that are closed in one round. */
const EXPIRED_AT_ONCE = 100

export type ApprovalsDeps = {
  unitOfWork: UnitOfWork
  approvals: ApprovalStore
  runs: RunStore
  contents: ContentStore
  log: EventLog
  clock: Clock
  /** Somebody may take the run on. After the commit. */
  wake(run: Pick<RunRow, 'id' | 'kind' | 'character_id'>): void
  /** Of a question that could not be closed. */
  report(error: unknown, approvalId: string): void
}

/**
 * Questions to the owner about single actions, and their answers (spec/2 "Run loop", decision 35). An answer only moves the question and
 * queues the run again: whether the action then happens is judged anew, with newer grants and revocations.
 */
export class ApprovalsService {
  readonly #deps: ApprovalsDeps
  readonly #stragglers = new Stragglers()

  constructor(deps: ApprovalsDeps) {
    this.#deps = deps
  }

  async list(
    ownerId: string | null,
    query: { state?: ApprovalState | undefined; before: { createdAt: Date; id: string } | null; limit: number },
  ): Promise<{ items: ApprovalView[]; next_cursor: string | null }> {
    const rows = await this.#deps.approvals.list(ownerId, { state: query.state ?? null, before: query.before, limit: query.limit + 1 })
    const page = rows.slice(0, query.limit)
    const last = page.at(-1)
    return {
      items: await this.#views(page),
      next_cursor: rows.length > query.limit && last ? `${last.created_at.toISOString()}_${last.id}` : null,
    }
  }

  /** Everybody's questions, for an admin, who is not shown what their arguments say. */
  async listAll(query: Parameters<ApprovalsService['list']>[1]): ReturnType<ApprovalsService['list']> {
    const { items, next_cursor } = await this.list(null, query)
    return { items: items.map(withoutArguments), next_cursor }
  }

  /** Throws not_found. */
  async get(ownerId: string, approvalId: string): Promise<ApprovalView> {
    const row = await this.#deps.approvals.find(ownerId, approvalId)
    const [view] = row ? await this.#views([row]) : []
    if (!view) throw new LingtaiError('not_found')
    return view
  }

  /**
   * The owner's answer. The same answer twice is one; another answer to a question that is settled is a conflict. Throws not_found,
   * wrong_state, conflict (the answer is about other arguments), run_ended, killed (a yes, while the switch is set).
   */
  async decide(ownerId: string, approvalId: string, answer: DecideApproval): Promise<ApprovalView> {
    const { unitOfWork, approvals, runs, log, clock } = this.#deps
    const to = answer.decision === 'approve' ? 'approved' : 'refused'
    await unitOfWork.run(async () => {
      const found = await approvals.find(ownerId, approvalId)
      // The run before the question, as everybody locks them.
      const run = found ? await runs.lock(ownerId, found.run_id) : null
      const row = await approvals.lock(ownerId, approvalId)
      if (!row || !run) throw new LingtaiError('not_found')
      if (row.arguments_hash !== answer.arguments_hash) {
        throw new LingtaiError('conflict', 'The answer is about other arguments than the question.', {
          errors: [{ path: 'arguments_hash', message: 'is not the hash of what is asked for' }],
        })
      }
      if (row.state === to || (row.state === 'used' && to === 'approved')) return
      if (run.ended_at !== null) throw new LingtaiError('run_ended', undefined, { data: { reason: run.reason } })
      if ((await log.head(`run:${run.id}`))?.quarantined) throw new LingtaiError('chain_broken')
      if (row.state !== 'pending' || row.expires_at <= clock.now()) {
        throw new LingtaiError('wrong_state', 'The question is settled or its time is over.')
      }
      // A yes would only end the run: the question waits until the switch is lifted.
      if (to === 'approved' && (await runs.isKilled(run))) throw new LingtaiError('killed')
      await this.#settle(row, to, { by: ownerId, actor: 'owner' })
      await this.#goOn(run)
    })
    return this.get(ownerId, approvalId)
  }

  /** An admin says no in the owner's stead; a yes is the owner's alone (decision 35). Twice is once. Throws not_found, wrong_state, run_ended. */
  async refuse(adminId: string, approvalId: string): Promise<ApprovalView> {
    const { unitOfWork, approvals, runs } = this.#deps
    const ownerId = await approvals.ownerOf(approvalId)
    if (ownerId === null) throw new LingtaiError('not_found')
    await unitOfWork.run(async () => {
      const { run_id: runId } = (await approvals.find(ownerId, approvalId)) ?? {}
      const run = runId === undefined ? null : await runs.lock(ownerId, runId)
      const row = await approvals.lock(ownerId, approvalId)
      if (!row || !run) throw new LingtaiError('not_found')
      if (row.state === 'refused') return
      if (run.ended_at !== null) throw new LingtaiError('run_ended', undefined, { data: { reason: run.reason } })
      if (row.state !== 'pending') throw new LingtaiError('wrong_state', 'The question is settled.')
      await this.#settle(row, 'refused', { by: adminId, actor: 'admin' })
      await this.#goOn(run)
    })
    return withoutArguments(await this.get(ownerId, approvalId))
  }

  /**
   * Silence counts as a no: questions whose time is over are closed and their runs go on, each by itself. Answers how many were. One that cannot
   * be closed, since its owner's stream is broken, is told and stands behind all others.
   */
  async expire(): Promise<number> {
    const { approvals, clock, report } = this.#deps
    let closed = 0
    for (const row of await approvals.due(clock.now(), EXPIRED_AT_ONCE, this.#stragglers.ids)) {
      try {
        if (await this.#expire(row)) closed += 1
        this.#stragglers.forget(row.id)
      } catch (error) {
        this.#stragglers.note(row.id)
        report(error, row.id)
      }
    }
    return closed
  }

  #expire({ id, owner_id: ownerId, run_id: runId }: ApprovalRow): Promise<boolean> {
    const { unitOfWork, approvals, runs, clock } = this.#deps
    return unitOfWork.run(async () => {
      const run = await runs.lock(ownerId, runId)
      const row = await approvals.lock(ownerId, id)
      if (!run || row?.state !== 'pending' || row.expires_at > clock.now()) return false
      await this.#settle(row, 'expired', { by: null, actor: 'clock' })
      if (run.ended_at === null) await this.#goOn(run)
      return true
    })
  }

  async #settle(
    row: ApprovalRow,
    to: EventPayload<'approval.decided'>['decision'],
    { by, actor }: { by: string | null; actor: 'owner' | 'admin' | 'clock' },
  ): Promise<void> {
    const { approvals, log, clock } = this.#deps
    const at = clock.now()
    if (!(await approvals.move(row.id, { from: 'pending', to, by, at }))) throw new LingtaiError('wrong_state')
    await log.append({
      stream: `confirmation:${row.owner_id}`,
      ownerId: row.owner_id,
      events: [
        {
          type: 'approval.decided',
          payload: { approval_id: row.id, run_id: row.run_id, action_id: row.action_id, decision: to, by },
          character_id: row.character_id,
          run_id: row.run_id,
          actor,
          at: at.toISOString(),
          cause: { tag: 'decide' },
        },
      ],
    })
  }

  async #goOn(run: RunRow): Promise<void> {
    const { unitOfWork, runs, wake } = this.#deps
    if (await runs.requeue(run.id)) unitOfWork.afterCommit(() => wake(run))
  }

  async #views(rows: readonly ApprovalRow[]): Promise<ApprovalView[]> {
    const now = this.#deps.clock.now()
    const texts = await this.#deps.contents.get(rows.map((row) => row.arguments_content_id))
    return rows.map((row) => ({
      id: row.id,
      character_id: row.character_id,
      run_id: row.run_id,
      action_id: row.action_id,
      tool: row.tool,
      capability: row.capability,
      reason: row.reason,
      arguments: texts.get(row.arguments_content_id)?.body ?? null,
      arguments_hash: row.arguments_hash,
      // True by comparing times: the job that closes it only tidies (decision 28).
      state: row.state === 'pending' && row.expires_at <= now ? 'expired' : row.state,
      expires_at: row.expires_at.toISOString(),
      decided_at: row.decided_at?.toISOString() ?? null,
      created_at: row.created_at.toISOString(),
    }))
  }
}

function withoutArguments(view: ApprovalView): ApprovalView {
  return { ...view, arguments: null }
}
