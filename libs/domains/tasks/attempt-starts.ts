import { LingtaiError } from '#contracts'
import type { CapabilitySet, StartAttempt, TaskRuntime } from '#contracts'
import { ADMISSION_POLICY_VERSION } from '#kernel/admission/admit'
import type { AttemptRow, NewAttempt, TaskRow } from '#kernel/ports/task-store'
import { missingCapabilities } from '#kernel/tasks/capability-set'
import { remainingMicros } from '#kernel/tasks/task-budget'
import { isLiveAttempt } from '#kernel/tasks/task-state'
import type { AttemptStandings } from './attempt-standings.ts'
import type { TaskDeps } from './deps.ts'
import { appendTaskEvents } from './task-stream.ts'
import type { TaskEvent } from './task-stream.ts'

/** Who can carry an attempt out, and what it says of itself (`003…` §5). */
export type RuntimeAdapter = {
  runtime: TaskRuntime
  version: string
  available: boolean
  capabilities: CapabilitySet
  /** What an attempt with it is pinned to beside that. */
  profile: Readonly<Record<string, string | number | null>>
}

/** Beginnings of attempts: with the first runtime that can do what the task needs, under a run of their own. */
export class AttemptStarts {
  readonly #deps: TaskDeps
  readonly #standings: AttemptStandings
  /** Begins the work of an attempt that a loop drives; inside the unit of work that starts it. */
  readonly #schedule: (attempt: AttemptRow) => Promise<void>
  readonly runtimes: readonly RuntimeAdapter[]

  constructor(parts: {
    deps: TaskDeps
    standings: AttemptStandings
    runtimes: readonly RuntimeAdapter[]
    schedule: (attempt: AttemptRow) => Promise<void>
  }) {
    this.#deps = parts.deps
    this.#standings = parts.standings
    this.runtimes = parts.runtimes
    this.#schedule = parts.schedule
  }

  /** Throws not_found, wrong_state (nobody can do it, one is under way, it is over), killed. */
  async start(ownerId: string, taskId: string, wanted: StartAttempt, diagnosticsId: string | null = null): Promise<AttemptRow> {
    const { unitOfWork, store, runs, ids } = this.#deps
    return unitOfWork.run(async () => {
      if (!(await store.find(ownerId, taskId))) throw new LingtaiError('not_found')
      const task = await store.lock(taskId)
      if (!task) throw new LingtaiError('not_found')
      const earlier = await store.attempts(taskId)
      if ((task.status !== 'open' && task.status !== 'needs_escalation') || earlier.some(({ status }) => isLiveAttempt(status))) {
        throw new LingtaiError('wrong_state', 'The task is over, or an attempt is under way.', { data: { status: task.status } })
      }
      if (await runs.isKilled(task)) throw new LingtaiError('killed')
      const adapter = this.#choose(task, wanted)
      const id = ids.next()
      const reserved = adapter.runtime === 'external' ? 0 : (remainingMicros(task) ?? 0)
      const { versionId, hash } = await this.#deps.profile(ownerId, {
        bundle: 'lingtai/tasks/1',
        ...adapter.profile,
        runtime: adapter.runtime,
        runtime_version: adapter.version,
        contract_version: task.contract_version,
        policy_version: ADMISSION_POLICY_VERSION,
      })
      await this.#insertRun(task, id)
      await runs.pinVersions(id, { personaVersionId: null, profileVersionId: versionId })
      const attempt = {
        id,
        owner_id: ownerId,
        task_id: taskId,
        ordinal: earlier.length + 1,
        runtime: adapter.runtime,
        runtime_version: adapter.version,
        harness_profile: hash,
        workspace_ref: wanted.workspace_ref ?? null,
        policy_profile: `admission/${ADMISSION_POLICY_VERSION}`,
        diagnostics_content_id: diagnosticsId,
        reserved_micros: reserved,
        started_at: this.#deps.clock.now(),
      }
      await store.insertAttempt(attempt)
      await store.change(taskId, { reserved_micros: task.reserved_micros + reserved })
      await this.#recordStart(task, attempt)
      const row = { ...attempt, status: 'active' as const, ended_at: null, settled_at: null, verification_run_id: null }
      if (adapter.runtime === 'external') await this.#await(task, row)
      else await this.#schedule(row)
      return row
    })
  }

  /** Whoever drives it is waited for from the start; under a fence, since what goes on later names one. */
  async #await(task: TaskRow, attempt: AttemptRow): Promise<void> {
    const { store, process } = this.#deps
    const claim = await store.claimAttempt(attempt.id, process)
    if (claim) await store.releaseAttempt(attempt.id, claim.fence)
    await this.#standings.suspend(task, attempt, 'waiting_for_user')
  }

  async #recordStart(task: TaskRow, attempt: NewAttempt): Promise<void> {
    const { ordinal, runtime, runtime_version, harness_profile, policy_profile, reserved_micros } = attempt
    const started: TaskEvent = {
      type: 'attempt.started',
      payload: { attempt_id: attempt.id, ordinal, runtime, runtime_version, harness_profile, policy_profile, reserved_micros },
    }
    const events: TaskEvent[] = [started]
    if (task.status === 'needs_escalation') {
      // A person lets it be tried once more, with all its repairs.
      await this.#deps.store.change(task.id, { status: 'open', repairs: 0 })
      events.unshift({
        type: 'task.changed',
        payload: { task_id: task.id, from: task.status, to: 'open', reason: 'reopened', by: task.owner_id },
      })
    }
    await appendTaskEvents(this.#deps, task, events, { actor: 'owner', tag: 'start_attempt' })
  }

  /** The first that is wanted, is there and can do what the task needs; `no` and unknown are never scheduled past. */
  #choose(task: TaskRow, { runtimes }: StartAttempt): RuntimeAdapter {
    const missing: Record<string, readonly string[]> = {}
    for (const wanted of runtimes) {
      const adapter = this.runtimes.find(({ runtime }) => runtime === wanted)
      const lacks = adapter?.available ? missingCapabilities(task.needs, adapter.capabilities) : ['runtime']
      if (adapter && lacks.length === 0) return adapter
      missing[wanted] = lacks
    }
    throw new LingtaiError('wrong_state', 'No runtime that was named can do what the task needs.', { data: { missing } })
  }

  async #insertRun(task: TaskRow, id: string): Promise<void> {
    const { runs, log, ids, clock } = this.#deps
    await runs.insert({
      id,
      owner_id: task.owner_id,
      kind: 'delegated',
      seated: false,
      parent_run_id: task.parent_run_id,
      character_id: task.character_id,
      tree_id: null,
      question_id: null,
      candidate_id: ids.next(),
      trace_id: ids.next(),
      settings: { seed: ids.seed() },
      queueExpiresAt: null,
    })
    const run = await runs.get(id)
    await log.append({
      stream: `run:${id}`,
      ownerId: task.owner_id,
      events: [
        {
          type: 'run.requested',
          payload: {
            kind: 'delegated',
            tree_id: null,
            question_id: null,
            candidate_id: run?.candidate_id ?? null,
            parent_run_id: task.parent_run_id,
            ticket: null,
          },
          run_id: id,
          character_id: task.character_id,
          trace_id: run?.trace_id ?? null,
          actor: task.parent_run_id === null ? 'owner' : 'agent',
          at: clock.now().toISOString(),
          cause: { tag: 'start_attempt' },
        },
      ],
    })
  }
}
