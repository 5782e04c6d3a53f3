import { LingtaiError } from '#contracts'
import type { CheckResult, Trust } from '#contracts'
import type { StoredContent } from '#kernel/ports/content-store'
import type { AttemptRow, TaskRow } from '#kernel/ports/task-store'
import type { RunLimits } from '#kernel/reducer/commands'
import { nextTaskStatus } from '#kernel/tasks/task-state'
import type { DelegatedRuns, DelegatedText, DelegatedWork } from '#runtime/turn/delegated-runs'
import { contextTrust } from '#runtime/turn/context-trust'
import { readStream } from '#runtime/turn/read-stream'
import type { AttemptKeeper } from './attempt-keeper.ts'
import type { LoopedRuntimes } from './attempt-sweeper.ts'
import type { CompletionService } from './completion.service.ts'
import type { TaskDeps } from './deps.ts'
import { NarrowedGrants } from './narrowed-grants.ts'
import { appendTaskEvents } from './task-stream.ts'

/** Attempts that a loop drives: what their runs are told, and what follows from how those end. */
export class LoopedAttempts implements LoopedRuntimes {
  readonly #deps: TaskDeps
  readonly #keeper: AttemptKeeper
  readonly #completion: CompletionService
  readonly #runners: Readonly<Partial<Record<AttemptRow['runtime'], DelegatedRuns>>>
  /** What the platform lets any run take. */
  readonly #limits: () => Promise<{ bundle: string; limits: Omit<RunLimits, 'max_cost_micros'> }>

  constructor(parts: {
    deps: TaskDeps
    keeper: AttemptKeeper
    completion: CompletionService
    runners: Readonly<Partial<Record<AttemptRow['runtime'], DelegatedRuns>>>
    limits: () => Promise<{ bundle: string; limits: Omit<RunLimits, 'max_cost_micros'> }>
  }) {
    this.#deps = parts.deps
    this.#keeper = parts.keeper
    this.#completion = parts.completion
    this.#runners = parts.runners
    this.#limits = parts.limits
  }

  async drive(attempt: AttemptRow): Promise<void> {
    const task = await this.#deps.store.find(attempt.owner_id, attempt.task_id)
    const work = task && (await this.#workOf(task, attempt))
    if (work) await this.#runners[attempt.runtime]?.drive(attempt.id, work)
  }

  stop(): void {
    for (const runner of Object.values(this.#runners)) runner.drain()
  }

  /** Null where what it is about is erased. */
  async #workOf(task: TaskRow, attempt: AttemptRow): Promise<DelegatedWork | null> {
    const { contents, actions, store } = this.#deps
    const ids = [
      task.instruction_content_id,
      ...task.input_refs,
      ...(attempt.diagnostics_content_id ? [attempt.diagnostics_content_id] : []),
    ]
    const stored = await contents.get(ids)
    const { bundle, limits } = await this.#limits()
    // What a run asked for is no more to be believed than what it knew when it asked.
    const instruction = textOf(stored.get(task.instruction_content_id), task.parent_run_id === null ? 'workspace' : task.trust)
    if (!instruction) return null
    const diagnostics = attempt.diagnostics_content_id === null ? undefined : stored.get(attempt.diagnostics_content_id)
    return {
      instruction,
      // Inputs are as far to be believed as the least of them: the task keeps their meet (K1).
      inputs: task.input_refs.flatMap((id) => textOf(stored.get(id), task.trust) ?? []),
      diagnostics: textOf(diagnostics, 'workspace'),
      // Whoever runs has what the task had left when it began, and no more.
      limits: { ...limits, max_cost_micros: task.max_cost_micros === null ? null : attempt.reserved_micros },
      profileHash: attempt.harness_profile,
      bundle,
      grants: new NarrowedGrants(actions.grants, task, async () => {
        // Its own intent does not stand in an action's way.
        const used = (await store.effects(task.id)).filter(({ run_id: id, state }) => id === attempt.id && state !== 'intent')
        return task.used_actions + used.length + (await store.givenActions(task.id)) < task.max_actions
      }),
    }
  }

  /** The run said its last: that is the candidate, and it goes on trial once, wherever else somebody looks for it. */
  async conclude(attempt: AttemptRow): Promise<void> {
    const { runs, contents, log } = this.#deps
    const run = await runs.get(attempt.id)
    const content = run && run.candidate_id !== null ? (await contents.get([run.candidate_id])).get(run.candidate_id) : undefined
    const text = content?.body ? spokenIn(content.body, content.layout?.parts ?? []) : ''
    if (!content || text.trim() === '') {
      await this.#keeper.interrupt(attempt.id, 'empty_answer')
      return
    }
    // What a verifier sent before its process died has to be over first.
    if (!(await this.#keeper.settleActions(attempt.id))) return
    const records = (await readStream(log, `run:${attempt.id}`)).map(({ record }) => record)
    await this.#completion.conclude(attempt, {
      artifacts: [{ media_type: 'text/plain', text }],
      trust: contextTrust(records) ?? 'untrusted',
      derivedFrom: [content.id],
    })
  }

  /**
   * The attempt that is to follow one that is over begins, once: told what the checks found where they found something, and anew where the
   * process that ran it left (`003…` §4). Where nobody can carry it out any more, a person is asked.
   */
  async follow({ id: attemptId, task_id: taskId }: AttemptRow): Promise<void> {
    const { unitOfWork, store } = this.#deps
    await unitOfWork.run(async () => {
      const task = await store.lock(taskId)
      const [attempt] = task ? await store.unfollowedAttempts({ attemptId, limit: 1 }) : []
      if (!task || !attempt) return
      const wanted = { runtimes: [attempt.runtime], ...(attempt.workspace_ref === null ? {} : { workspace_ref: attempt.workspace_ref }) }
      try {
        await this.#keeper.start(task.owner_id, taskId, wanted, await this.#diagnosticsFor(attempt))
      } catch (error) {
        // Refused before anything was written: with the switch set it waits, else nobody is there who could do it.
        if (!(error instanceof LingtaiError) || (error.code !== 'wrong_state' && error.code !== 'killed')) throw error
        if (error.code === 'wrong_state') await this.#escalate(task)
      }
    })
  }

  /** What the next attempt is told: what the checks of this one found, and nothing else. */
  async #diagnosticsFor(attempt: AttemptRow): Promise<string | null> {
    const { store, contents, ids } = this.#deps
    const verification = (await store.verifications(attempt.task_id)).findLast(({ attempt_id: id }) => id === attempt.id)
    if (!verification) return attempt.diagnostics_content_id
    const content = diagnosticsOf(verification.checks.filter(({ status }) => status === 'failed'))
    return (await contents.put({ owner_id: attempt.owner_id, media_type: 'text/plain', content, salt: ids.bytes(32) })).id
  }

  async #escalate(task: TaskRow): Promise<void> {
    const to = nextTaskStatus(task.status, 'escalated')
    if (to === null) return
    await this.#deps.store.change(task.id, { status: to })
    const payload = { task_id: task.id, from: task.status, to, reason: 'no_runtime', by: null }
    await appendTaskEvents(this.#deps, task, [{ type: 'task.changed', payload }], { actor: 'kernel', tag: 'follow' })
  }
}

function textOf(content: StoredContent | undefined, trust: Trust): DelegatedText | null {
  if (!content || content.body === null) return null
  return { text: content.body, contentId: content.id, digest: Buffer.from(content.digest).toString('hex'), trust }
}

function spokenIn(body: string, parts: readonly { kind: string; from: number; to: number }[]): string {
  // What was said between calls is no part of the result: only the last words are.
  const last = parts.findLastIndex(({ kind }) => kind !== 'text' && kind !== 'reasoning')
  return parts
    .slice(last + 1)
    .filter(({ kind }) => kind === 'text')
    .map(({ from, to }) => body.slice(from, to))
    .join('')
}

function diagnosticsOf(failed: readonly CheckResult[]): string {
  const lines = failed.map(({ id, kind, code }) => `- ${id} (${kind}): ${code}`)
  return `An earlier result was not accepted. These checks failed:\n${lines.join('\n')}\nHand over a result that passes them.`
}
