import { LingtaiError, meetTrust } from '#contracts'
import type { CheckResult, CommitTask, CompleteTask, CompletionView, Trust } from '#contracts'
import type { ArtifactRow, AttemptRow, TaskRow, VerificationRow } from '#kernel/ports/task-store'
import { saltedDigest } from '#kernel/record/chain'
import { isSettledAction } from '#kernel/tasks/action-state'
import { completionVerdict, verificationStatus, VERIFIER_VERSION } from '#kernel/tasks/completion'
import { isCancelledTask, isLiveAttempt, nextTaskStatus } from '#kernel/tasks/task-state'
import type { AttemptKeeper } from './attempt-keeper.ts'
import type { TaskDeps } from './deps.ts'
import type { EvidencePackages } from './evidence-packages.ts'
import { appendTaskEvents } from './task-stream.ts'
import type { TaskEvent } from './task-stream.ts'
import { acceptanceOf, artifactView, taskViews, verificationView } from './task-views.ts'
import type { SealedCandidate, Verifiers } from './verifiers.ts'

type Sealed = { task: TaskRow; attempt: AttemptRow; candidate: SealedCandidate; artifacts: ArtifactRow[] }
/** How far a candidate is to be believed, and which contents it was made from. */
type Made = { trust: Trust; derivedFrom: readonly string[] }
type Sealing = { ownerId: string; taskId: string; given: CompleteTask; made: Made }
const submitted: Made = { trust: 'workspace', derivedFrom: [] }
type Concluded = { verdict: CompletionView['verdict']; verification: VerificationRow | null }

/**
 * From a candidate to a task that is done: sealed by hash, verified, mended within bounds; verified is no permission, committing is the
 * owner's act (`003…` §2; case E13).
 */
export class CompletionService {
  readonly #deps: TaskDeps
  readonly #keeper: AttemptKeeper
  readonly #verifiers: Verifiers
  readonly #evidence: EvidencePackages

  constructor(parts: { deps: TaskDeps; keeper: AttemptKeeper; verifiers: Verifiers; evidence: EvidencePackages }) {
    this.#deps = parts.deps
    this.#keeper = parts.keeper
    this.#verifiers = parts.verifiers
    this.#evidence = parts.evidence
  }

  /** `made`: what is known of how a loop made it. Throws not_found, wrong_state. Not inside a unit of work. */
  async complete(ownerId: string, taskId: string, given: CompleteTask, made: Made = submitted): Promise<CompletionView> {
    const { store, contents } = this.#deps
    const sealed = await this.#seal({ ownerId, taskId, given, made })
    const concluded = sealed === 'cancelled' ? { verdict: 'cancelled' as const, verification: null } : await this.#conclude(sealed)
    const task = await store.find(ownerId, taskId)
    const [view] = task ? await taskViews([task], contents) : []
    if (!view) throw new LingtaiError('not_found')
    return {
      task: view,
      verdict: concluded.verdict,
      verification: concluded.verification && verificationView(concluded.verification),
      artifacts: sealed === 'cancelled' ? [] : sealed.artifacts.map(artifactView),
    }
  }

  async #seal({ ownerId, taskId, given: { artifacts: given }, made }: Sealing): Promise<Sealed | 'cancelled'> {
    const { unitOfWork, store, contents, ids, clock } = this.#deps
    return unitOfWork.run(async () => {
      if (!(await store.find(ownerId, taskId))) throw new LingtaiError('not_found')
      const task = await store.lock(taskId)
      if (!task) throw new LingtaiError('not_found')
      if (isCancelledTask(task.status)) return 'cancelled'
      const attempt = (await store.attempts(taskId)).find(({ status }) => isLiveAttempt(status))
      if (task.status !== 'open' || !attempt) throw wrongState(task, 'The task is not being worked on.')
      await this.#expectNothingOpen(task, attempt)
      const seen = await store.observations(taskId)
      const trust = meetTrust([task.trust, made.trust, ...seen.map((observation) => observation.trust)])
      const candidateId = ids.next()
      const rows: ArtifactRow[] = []
      for (const [index, { media_type, text }] of given.entries()) {
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
      const artifacts = rows.map((row, index) => ({
        contentId: row.content_id,
        text: given[index]?.text ?? '',
        mediaType: row.media_type,
        trust,
      }))
      return { task, attempt, candidate: { id: candidateId, artifacts }, artifacts: rows }
    })
  }

  /** Nothing is complete while something of it is out, or waits, or is not known. */
  async #expectNothingOpen(task: TaskRow, attempt: AttemptRow): Promise<void> {
    const open = (await this.#deps.store.actions(attempt.id)).filter(({ state }) => !isSettledAction(state))
    if (open.length === 0) return
    throw new LingtaiError('wrong_state', 'Actions of the task are not over yet.', {
      data: { status: task.status, open: open.map(({ id, state }) => ({ action_id: id, state })) },
    })
  }

  async #conclude({ task: sealedTask, attempt: sealedAttempt, candidate }: Sealed): Promise<Concluded> {
    const { unitOfWork, store, contents, ids, clock } = this.#deps
    const text = (await contents.get([sealedTask.acceptance_content_id])).get(sealedTask.acceptance_content_id)?.body ?? null
    const { checks, evidence, environment } = await this.#verifiers.verify(sealedTask, acceptanceOf(text), candidate)
    return unitOfWork.run(async (): Promise<Concluded> => {
      const task = await store.lock(sealedTask.id)
      const attempt = await store.attempt(sealedAttempt.id)
      if (!task || !attempt) throw new LingtaiError('not_found')
      if (isCancelledTask(task.status)) return { verdict: 'cancelled', verification: null }
      if (task.status !== 'open' || !isLiveAttempt(attempt.status)) throw wrongState(task, 'The task went on while this was looked at.')
      await this.#expectNothingOpen(task, attempt)
      const verdict = completionVerdict(checks, { repairs: task.repairs, maxRepairs: task.max_repairs })
      const verification: VerificationRow = {
        id: ids.next(),
        owner_id: task.owner_id,
        task_id: task.id,
        attempt_id: attempt.id,
        candidate_id: candidate.id,
        contract_version: task.contract_version,
        verifier_version: VERIFIER_VERSION,
        checks,
        status: verificationStatus(checks),
        evidence_refs: evidence,
        environment_ref: environment,
        at: clock.now(),
      }
      await store.insertVerification(verification)
      await this.#follow(task, attempt, { verdict, verification, checks })
      return { verdict, verification }
    })
  }

  /** What a verdict does to task and attempt, in the transaction that records it. */
  async #follow(
    task: TaskRow,
    attempt: AttemptRow,
    {
      verdict,
      verification,
      checks,
    }: { verdict: 'verified' | 'repair' | 'needs_escalation'; verification: VerificationRow; checks: readonly CheckResult[] },
  ): Promise<void> {
    const { store } = this.#deps
    const repairs = verdict === 'repair' ? task.repairs + 1 : task.repairs
    const events: TaskEvent[] = [
      {
        type: 'candidate.verified',
        payload: {
          verification_id: verification.id,
          candidate_id: verification.candidate_id,
          attempt_id: attempt.id,
          status: verification.status,
          checks: checks.length,
          failed: checks.filter(({ status }) => status === 'failed').length,
          verifier_version: verification.verifier_version,
          verdict,
          repairs,
        },
      },
    ]
    if (verdict === 'repair') await store.change(task.id, { repairs })
    const to = verdict === 'repair' ? null : nextTaskStatus(task.status, verdict === 'verified' ? 'verified' : 'escalated')
    if (to !== null) {
      await store.change(task.id, { status: to })
      const reason = verdict === 'verified' ? 'verified' : 'checks_failed'
      events.push({ type: 'task.changed', payload: { task_id: task.id, from: task.status, to, reason, by: null } })
    }
    await appendTaskEvents(this.#deps, task, events, { actor: 'kernel', tag: 'verify' })
    await this.#endAttempt(task, attempt, verdict)
  }

  async #endAttempt(task: TaskRow, attempt: AttemptRow, verdict: 'verified' | 'repair' | 'needs_escalation'): Promise<void> {
    if (attempt.runtime !== 'external') {
      // Its run is over already: what is to be mended is mended by another attempt.
      const status = { verified: 'candidate_verified', repair: 'interrupted', needs_escalation: 'needs_escalation' } as const
      return this.#keeper.endLooped(task, attempt, { status: status[verdict], reason: verdict })
    }
    if (verdict === 'repair') return this.#keeper.again(task, attempt)
    const ending =
      verdict === 'verified'
        ? ({ status: 'candidate_verified', outcome: 'finished' } as const)
        : ({ status: 'needs_escalation', outcome: 'failed' } as const)
    if (!(await this.#keeper.endExternal(task, attempt, ending))) throw wrongState(task, 'The attempt is at work.')
  }

  /** The owner's yes to a verified candidate; the same yes twice is one. Throws not_found, wrong_state, conflict. */
  async commit(ownerId: string, taskId: string, { candidate_id: candidateId }: CommitTask): Promise<void> {
    const { unitOfWork, store, contents, ids, clock } = this.#deps
    await unitOfWork.run(async () => {
      if (!(await store.find(ownerId, taskId))) throw new LingtaiError('not_found')
      const task = await store.lock(taskId)
      if (!task) throw new LingtaiError('not_found')
      const verification = (await store.verifications(taskId)).at(-1)
      if (isCancelledTask(task.status)) throw wrongState(task, 'The task is cancelled.')
      if (!verification || verification.status !== 'passed') throw wrongState(task, 'Nothing of the task is verified.')
      if (verification.candidate_id !== candidateId) {
        throw new LingtaiError('conflict', 'This is not the candidate that was verified.', {
          errors: [{ path: 'candidate_id', message: 'is not the verified one' }],
        })
      }
      if (task.status === 'done') return
      const to = nextTaskStatus(task.status, 'committed')
      if (to === null) throw wrongState(task, 'The task cannot be committed now.')
      const at = clock.now()
      // Texts stay where they are: the package holds their digests, so that erasing one leaves no copy.
      const text = JSON.stringify(await this.#evidence.build(task, { texts: false }))
      const salt = ids.bytes(32)
      const content = await contents.put({ owner_id: ownerId, media_type: 'application/json', content: Buffer.from(text, 'utf8'), salt })
      const digest = Buffer.from(content.digest).toString('hex')
      await store.insertEvidence({
        task_id: taskId,
        owner_id: ownerId,
        verification_id: verification.id,
        committed_by: ownerId,
        content_id: content.id,
        digest,
        at,
      })
      await store.change(taskId, { status: to, ended_at: at })
      const events: TaskEvent[] = [
        {
          type: 'candidate.committed',
          payload: {
            candidate_id: candidateId,
            verification_id: verification.id,
            by: ownerId,
            evidence_content_id: content.id,
            evidence_digest: digest,
          },
          content_digests: [{ content_id: content.id, digest }],
        },
        { type: 'task.changed', payload: { task_id: taskId, from: task.status, to, reason: 'committed', by: ownerId } },
      ]
      await appendTaskEvents(this.#deps, task, events, { actor: 'owner', tag: 'commit' })
    })
  }
}

function wrongState(task: TaskRow, detail: string): LingtaiError {
  return new LingtaiError('wrong_state', detail, { data: { status: task.status } })
}
