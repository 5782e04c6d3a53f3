import type { CheckResult, CompletionView, Trust } from '#contracts'
import type { StoredContent } from '#kernel/ports/content-store'
import type { AttemptRow, TaskRow } from '#kernel/ports/task-store'
import type { RunLimits } from '#kernel/reducer/commands'
import { hasHappened } from '#kernel/effects/effect'
import type { DelegatedRuns, DelegatedText, DelegatedWork } from '#runtime/turn/delegated-runs'
import { contextTrust } from '#runtime/turn/context-trust'
import { readStream } from '#runtime/turn/read-stream'
import type { AttemptKeeper } from './attempt-keeper.ts'
import type { LoopedRuntimes } from './attempt-sweeper.ts'
import type { CompletionService } from './completion.service.ts'
import type { TaskDeps } from './deps.ts'
import { NarrowedGrants } from './narrowed-grants.ts'

/** Attempts that begin by themselves after a process left, at most, where nothing lasting was done. */
const ATTEMPTS_MAX = 5

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

  /** The run said its last: that is the candidate. Verified, mended by another attempt, or left to a person. */
  async conclude(attempt: AttemptRow): Promise<void> {
    const { runs, contents, log } = this.#deps
    const run = await runs.get(attempt.id)
    const content = run && run.candidate_id !== null ? (await contents.get([run.candidate_id])).get(run.candidate_id) : undefined
    const text = content?.body ? spokenIn(content.body, content.layout?.parts ?? []) : ''
    if (!content || text.trim() === '') {
      await this.#keeper.interrupt(attempt.id, 'empty_answer')
      return
    }
    const records = (await readStream(log, `run:${attempt.id}`)).map(({ record }) => record)
    const completed = await this.#completion.complete(
      attempt.owner_id,
      attempt.task_id,
      { artifacts: [{ media_type: 'text/plain', text }] },
      { trust: contextTrust(records) ?? 'untrusted', derivedFrom: [content.id] },
    )
    if (completed.verdict === 'repair') await this.#mend(attempt, completed)
  }

  /** Another attempt, which is told what the checks found, and nothing else. */
  async #mend(attempt: AttemptRow, completed: CompletionView): Promise<void> {
    const failed = (completed.verification?.checks ?? []).filter(({ status }) => status === 'failed')
    const { id } = await this.#deps.contents.put({
      owner_id: attempt.owner_id,
      media_type: 'text/plain',
      content: diagnosticsOf(failed),
      salt: this.#deps.ids.bytes(32),
    })
    await this.#again(attempt, id)
  }

  /** The process that ran it left, or died: it begins anew where it had done nothing that lasts (`003…` §4). */
  async ended(attempt: AttemptRow): Promise<void> {
    const { runs, store } = this.#deps
    const run = await runs.get(attempt.id)
    if (run?.reason !== 'drained' && run?.reason !== 'lease_expired') return
    const lasting = (await store.effects(attempt.task_id)).some(
      (effect) => effect.run_id === attempt.id && effect.consequence === 'lasting' && hasHappened(effect.state),
    )
    const task = await store.find(attempt.owner_id, attempt.task_id)
    if (lasting || task?.status !== 'open' || attempt.ordinal >= ATTEMPTS_MAX) return
    await this.#again(attempt, attempt.diagnostics_content_id)
  }

  async #again(attempt: AttemptRow, diagnosticsId: string | null): Promise<void> {
    const wanted = { runtimes: [attempt.runtime], ...(attempt.workspace_ref === null ? {} : { workspace_ref: attempt.workspace_ref }) }
    await this.#keeper.start(attempt.owner_id, attempt.task_id, wanted, diagnosticsId)
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
