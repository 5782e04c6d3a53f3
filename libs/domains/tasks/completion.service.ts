import { LingtaiError } from '#contracts'
import type { CheckResult, CommitTask, CompleteTask, CompletionView, Trust } from '#contracts'
import type { AttemptRow, TaskRow, VerificationRow } from '#kernel/ports/task-store'
import { completionVerdict, verificationStatus, VERIFIER_VERSION } from '#kernel/tasks/completion'
import { isCancelledTask, nextTaskStatus } from '#kernel/tasks/task-state'
import { keepBeating } from '#runtime/turn/keep-alive'
import type { AttemptKeeper } from './attempt-keeper.ts'
import { CandidateSeals, wrongState } from './candidate-seals.ts'
import type { Sealed } from './candidate-seals.ts'
import type { TaskDeps } from './deps.ts'
import type { EvidencePackages } from './evidence-packages.ts'
import { appendTaskEvents } from './task-stream.ts'
import type { TaskEvent } from './task-stream.ts'
import { acceptanceOf, artifactView, taskViews, verificationView } from './task-views.ts'
import type { Verifiers } from './verifiers.ts'

/** What a loop's run said at its end, how far that is to be believed, and which contents it was made from. */
type Said = CompleteTask & { trust: Trust; derivedFrom: readonly string[] }
type Concluded = { verdict: CompletionView['verdict']; verification: VerificationRow | null }
const cancelled: Concluded = { verdict: 'cancelled', verification: null }

/**
 * From a candidate to a task that is done: sealed by hash, verified, mended within bounds; verified is no permission, committing is the
 * owner's act (`003…` §2; case E13).
 */
export class CompletionService {
  readonly #deps: TaskDeps
  readonly #keeper: AttemptKeeper
  readonly #verifiers: Verifiers
  readonly #evidence: EvidencePackages
  readonly #seals: CandidateSeals

  constructor(parts: { deps: TaskDeps; keeper: AttemptKeeper; verifiers: Verifiers; evidence: EvidencePackages }) {
    this.#deps = parts.deps
    this.#keeper = parts.keeper
    this.#verifiers = parts.verifiers
    this.#evidence = parts.evidence
    this.#seals = new CandidateSeals(parts.deps)
  }

  /** A candidate that somebody hands over. Throws not_found, wrong_state. Not inside a unit of work. */
  async complete(ownerId: string, taskId: string, given: CompleteTask): Promise<CompletionView> {
    const { store, contents } = this.#deps
    const sealed = await this.#seals.seal({ ownerId, taskId, attemptId: null, given, trust: 'workspace', derivedFrom: [] })
    const concluded = sealed === 'cancelled' ? cancelled : await this.#judge(sealed)
    // What was out for it may be what the cancellation waited for.
    if (sealed !== 'cancelled' && concluded.verdict === 'cancelled') await this.#keeper.continueCancel(taskId)
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

  /** What the run of a loop's attempt said at its end. Nothing where another process looks at it already. Not inside a unit of work. */
  async conclude({ id, owner_id, task_id }: AttemptRow, { artifacts, trust, derivedFrom }: Said): Promise<void> {
    const sealing = { ownerId: owner_id, taskId: task_id, attemptId: id, given: { artifacts }, trust, derivedFrom }
    const sealed = await this.#seals.seal(sealing).catch((error: unknown) => {
      // Somebody else looks at it, or has.
      if (error instanceof LingtaiError && error.code === 'wrong_state') return 'cancelled' as const
      throw error
    })
    if (sealed !== 'cancelled') await this.#judge(sealed)
  }

  /** By this process alone, for as long as it gives signs of life. */
  async #judge(sealed: Sealed): Promise<Concluded> {
    const { attempt, fence } = sealed
    const stop = keepBeating(attempt.id, this.#deps, () => this.#deps.store.holdConclusion(attempt.id, fence))
    let isDone = false
    try {
      const concluded = await this.#conclude(sealed)
      isDone = true
      return concluded
    } finally {
      stop()
      // What went wrong with a loop's candidate is tried again by itself, and not at once.
      if (isDone || attempt.runtime === 'external') await this.#deps.store.releaseConclusion(attempt.id, fence)
    }
  }

  async #conclude({ task: sealedTask, attempt: sealedAttempt, fence, candidate }: Sealed): Promise<Concluded> {
    const { unitOfWork, store, contents, ids, clock } = this.#deps
    const text = (await contents.get([sealedTask.acceptance_content_id])).get(sealedTask.acceptance_content_id)?.body ?? null
    const { checks, evidence, environment } = await this.#verifiers.verify(sealedTask, sealedAttempt, {
      acceptance: acceptanceOf(text),
      candidate,
    })
    return unitOfWork.run(async (): Promise<Concluded> => {
      const locked = await store.lock(sealedTask.id)
      const found = await store.attempt(sealedAttempt.id)
      if (!locked || !found) throw new LingtaiError('not_found')
      if (isCancelledTask(locked.status)) return cancelled
      const isOurs = await store.holdConclusion(found.id, fence)
      if (locked.status !== 'open' || !isOurs) throw wrongState(locked, 'The task went on while this was looked at.')
      const { task, attempt } = await this.#seals.expectNothingOpen(locked, found)
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
