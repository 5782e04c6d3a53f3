import { LingtaiError, meetTrust } from '#contracts'
import type { CompleteTask, Trust } from '#contracts'
import type { ArtifactRow, AttemptRow, TaskRow } from '#kernel/ports/task-store'
import { saltedDigest } from '#kernel/record/chain'
import { isSettledAction } from '#kernel/tasks/action-state'
import { isCancelledTask, isLiveAttempt } from '#kernel/tasks/task-state'
import { AttemptBudget } from './attempt-budget.ts'
import type { TaskDeps } from './deps.ts'
import { appendTaskEvents } from './task-stream.ts'
import type { TaskEvent } from './task-stream.ts'
import type { SealedCandidate } from './verifiers.ts'

/** A candidate, held by this process alone until it is judged. */
export type Sealed = { task: TaskRow; attempt: AttemptRow; fence: number; candidate: SealedCandidate; artifacts: ArtifactRow[] }

export type Sealing = {
  ownerId: string
  taskId: string
  /** The attempt whose run said it; null for what somebody hands over. */
  attemptId: string | null
  given: CompleteTask
  /** How far it is to be believed, and which contents it was made from. */
  trust: Trust
  derivedFrom: readonly string[]
}

/** Candidates as they are handed over: sealed by hash, and held by whoever is going to judge them. */
export class CandidateSeals {
  readonly #deps: TaskDeps
  readonly #budget: AttemptBudget

  constructor(deps: TaskDeps) {
    this.#deps = deps
    this.#budget = new AttemptBudget(deps)
  }

  /** Throws not_found, wrong_state. Not inside a unit of work. */
  async seal(sealing: Sealing): Promise<Sealed | 'cancelled'> {
    const { unitOfWork, store, process } = this.#deps
    const { ownerId, taskId, attemptId, given } = sealing
    return unitOfWork.run(async () => {
      if (!(await store.find(ownerId, taskId))) throw new LingtaiError('not_found')
      const task = await store.lock(taskId)
      if (!task) throw new LingtaiError('not_found')
      if (isCancelledTask(task.status)) return 'cancelled'
      const attempt = (await store.attempts(taskId)).find(({ status }) => isLiveAttempt(status))
      if (task.status !== 'open' || !attempt) throw wrongState(task, 'The task is not being worked on.')
      const driver = attemptId === null ? 'external' : attempt.runtime
      if (attempt.id !== (attemptId ?? attempt.id) || attempt.runtime !== driver) {
        throw new LingtaiError('wrong_state', 'The attempt is driven by a runtime of its own.', { data: { runtime: attempt.runtime } })
      }
      await this.expectNothingOpen(task, attempt)
      const claim = await store.claimConclusion(attempt.id, process)
      if (!claim) throw wrongState(task, 'A candidate of the attempt is being looked at.')
      const rows = (await this.#sealedBefore(attempt)) ?? (await this.#write(task, attempt, sealing))
      const artifacts = rows.map((row, index) => ({
        contentId: row.content_id,
        text: given.artifacts[index]?.text ?? '',
        mediaType: row.media_type,
        trust: row.trust,
      }))
      return { task, attempt, fence: claim.fence, candidate: { id: rows[0]?.candidate_id ?? '', artifacts }, artifacts: rows }
    })
  }

  /** Nothing is complete while something of it is out, or waits, or is not known. Answers the rows as they are by then. */
  async expectNothingOpen(task: TaskRow, attempt: AttemptRow): Promise<{ task: TaskRow; attempt: AttemptRow }> {
    const settled = await this.#budget.settleCheck({ task, attempt })
    if (!settled) throw wrongState(task, 'A check of the task is not over yet.')
    const open = (await this.#deps.store.actions(attempt.id)).filter(({ state }) => !isSettledAction(state))
    if (open.length === 0) return settled
    throw new LingtaiError('wrong_state', 'Actions of the task are not over yet.', {
      data: { status: task.status, open: open.map(({ id, state }) => ({ action_id: id, state })) },
    })
  }

  /** A run says its last once: whoever sealed that and died left the candidate to the next. */
  async #sealedBefore(attempt: AttemptRow): Promise<ArtifactRow[] | null> {
    if (attempt.runtime === 'external') return null
    const rows = (await this.#deps.store.artifacts(attempt.task_id)).filter(({ attempt_id: id }) => id === attempt.id)
    // Of a time when there could be more of them, the newest counts.
    const sealed = rows.filter(({ candidate_id: id }) => id === rows.at(-1)?.candidate_id)
    return sealed.length > 0 ? sealed : null
  }

  async #write(task: TaskRow, attempt: AttemptRow, { ownerId, taskId, given, ...made }: Sealing): Promise<ArtifactRow[]> {
    const { store, contents, ids, clock } = this.#deps
    const seen = await store.observations(taskId)
    const trust = meetTrust([task.trust, made.trust, ...seen.map((observation) => observation.trust)])
    const candidateId = ids.next()
    const rows: ArtifactRow[] = []
    for (const [index, { media_type, text }] of given.artifacts.entries()) {
      const salt = ids.bytes(32)
      const derivedFrom = [task.instruction_content_id, ...task.input_refs, ...made.derivedFrom]
      const content = await contents.put({ owner_id: ownerId, media_type, content: text, salt, derived_from: derivedFrom })
      rows.push({
        id: ids.next(),
        owner_id: ownerId,
        task_id: taskId,
        attempt_id: attempt.id,
        candidate_id: candidateId,
        ordinal: index + 1,
        content_id: content.id,
        hash: Buffer.from(saltedDigest(salt, text)).toString('hex'),
        media_type,
        producer: attempt.runtime,
        classification: task.classification,
        retention_policy: task.retention,
        input_refs: task.input_refs,
        trust,
        created_at: clock.now(),
      })
    }
    await store.insertArtifacts(rows)
    const sealed: TaskEvent = {
      type: 'candidate.sealed',
      payload: {
        candidate_id: candidateId,
        attempt_id: attempt.id,
        artifacts: rows.map(({ id, content_id, hash }) => ({ artifact_id: id, content_id, hash })),
      },
      content_digests: rows.map(({ content_id, hash }) => ({ content_id, digest: hash })),
    }
    await appendTaskEvents(this.#deps, task, [sealed], { actor: 'agent', tag: 'complete' })
    return rows
  }
}

export function wrongState(task: TaskRow, detail: string): LingtaiError {
  return new LingtaiError('wrong_state', detail, { data: { status: task.status } })
}
