import { LingtaiError } from '#contracts'
import type { AttemptStatus, CapabilitySet, EventPayload, StartAttempt, TaskRuntime, TaskStatus } from '#contracts'
import { ADMISSION_POLICY_VERSION } from '#kernel/admission/admit'
import type { RunRow } from '#kernel/ports/run-store'
import type { AttemptRow, TaskRow } from '#kernel/ports/task-store'
import { isSettledAction } from '#kernel/tasks/action-state'
import { missingCapabilities } from '#kernel/tasks/capability-set'
import { emptyTask, foldTask, TASK_STATE_VERSION } from '#kernel/tasks/fold'
import type { FoldedTask } from '#kernel/tasks/fold'
import { remainingMicros } from '#kernel/tasks/task-budget'
import { attemptStatusOf, isCancelledTask, isLiveAttempt, isQuiet, nextTaskStatus } from '#kernel/tasks/task-state'
import type { ActionPlane } from './action-plane.ts'
import type { TaskDeps } from './deps.ts'
import { appendTaskEvents, taskStream } from './task-stream.ts'
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

const PAGE = 1_000

/** What the rows of a task and its stream say differs: nobody goes on from that. */
export class TaskRebuildError extends Error {
  constructor(taskId: string, what: string) {
    super(`task ${taskId} is not what its stream rebuilds to: ${what}`)
    this.name = 'TaskRebuildError'
  }
}

/**
 * Attempts from their start to their end: chosen by capabilities, looked after by one process at a time, recovered from checkpoint and
 * events, cancelled only when quiet (`003…` §4, §5).
 */
export class AttemptKeeper {
  readonly #deps: TaskDeps
  readonly #plane: ActionPlane
  readonly #runtimes: readonly RuntimeAdapter[]
  /** Begins the work of an attempt that a loop drives; inside the unit of work that starts it. */
  readonly #schedule: (attempt: AttemptRow) => Promise<void>

  constructor(parts: {
    deps: TaskDeps
    plane: ActionPlane
    runtimes: readonly RuntimeAdapter[]
    schedule: (attempt: AttemptRow) => Promise<void>
  }) {
    this.#deps = parts.deps
    this.#plane = parts.plane
    this.#runtimes = parts.runtimes
    this.#schedule = parts.schedule
  }

  get runtimes(): readonly RuntimeAdapter[] {
    return this.#runtimes
  }

  // ------------------------------------------------------------ start

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
      if (adapter.runtime === 'external') await store.park(id, 'waiting_for_user')
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
      const row = { ...attempt, status: 'active' as const, ended_at: null }
      if (adapter.runtime !== 'external') await this.#schedule(row)
      return row
    })
  }

  async #recordStart(task: TaskRow, attempt: Omit<AttemptRow, 'status' | 'ended_at'>): Promise<void> {
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
      const adapter = this.#runtimes.find(({ runtime }) => runtime === wanted)
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
            parent_run_id: null,
            ticket: null,
          },
          run_id: id,
          character_id: task.character_id,
          trace_id: run?.trace_id ?? null,
          actor: 'owner',
          at: clock.now().toISOString(),
          cause: { tag: 'start_attempt' },
        },
      ],
    })
  }

  // ------------------------------------------------------------ where it stands

  /** Lets an attempt's status follow its actions; where it stops to wait, a checkpoint says where. */
  async sync(attemptId: string): Promise<void> {
    const { unitOfWork, store } = this.#deps
    await unitOfWork.run(async () => {
      const found = await store.attempt(attemptId)
      const task = found && (await store.lock(found.task_id))
      const attempt = await store.attempt(attemptId)
      if (!task || !attempt || attempt.runtime !== 'external' || !isLiveAttempt(attempt.status)) return
      const actions = await store.actions(attemptId)
      const status = attemptStatusOf(actions.map(({ state }) => state))
      await store.park(attemptId, status === 'active' ? 'waiting_for_user' : status)
      if (status === attempt.status) return
      await store.changeAttempt(attemptId, { status, ended_at: null })
      await this.#tellChange(task, attempt, status, null)
      if (status !== 'active') await this.#checkpoint(task, attempt)
    })
  }

  async #tellChange(
    task: TaskRow,
    attempt: AttemptRow,
    to: AttemptStatus,
    reason: string | null,
    used: Partial<EventPayload<'attempt.changed'>> = {},
  ): Promise<void> {
    const payload = { attempt_id: attempt.id, from: attempt.status, to, reason, ...used }
    await appendTaskEvents(this.#deps, task, [{ type: 'attempt.changed', payload }], { actor: 'kernel', tag: 'sync' })
  }

  async #checkpoint(task: TaskRow, attempt: AttemptRow): Promise<void> {
    const { store, log, ids, clock } = this.#deps
    const { state, offset } = await this.rebuild(task.id, null)
    const pending = Object.values(state.actions).flatMap((action) =>
      action.effect_id !== null && !isSettledAction(action.state) ? [action.effect_id] : [],
    )
    const id = ids.next()
    await store.insertCheckpoint({
      id,
      owner_id: task.owner_id,
      attempt_id: attempt.id,
      state_version: TASK_STATE_VERSION,
      event_offset: offset,
      workspace_ref: attempt.workspace_ref,
      pending_effect_ids: pending,
      context_projection_ref: null,
      state,
      at: clock.now(),
    })
    const payload = { attempt_id: attempt.id, checkpoint_id: id, event_offset: offset, pending_effect_ids: pending }
    await appendTaskEvents({ log, clock }, task, [{ type: 'attempt.checkpointed', payload }], { actor: 'kernel', tag: 'checkpoint' })
  }

  /** A task's state as a checkpoint and the events after it say; from the beginning where there is none to build on. */
  async rebuild(
    taskId: string,
    checkpoint: { state_version: number; state: FoldedTask; event_offset: number } | null,
  ): Promise<{ state: FoldedTask; offset: number }> {
    const isUsable = checkpoint?.state_version === TASK_STATE_VERSION
    let state = isUsable ? checkpoint.state : emptyTask
    let offset = isUsable ? checkpoint.event_offset : 0
    for (;;) {
      const page = await this.#deps.log.read(taskStream(taskId), { after: offset, limit: PAGE })
      for (const { record } of page) state = foldTask(state, record)
      offset = page.at(-1)?.record.seq ?? offset
      if (page.length < PAGE) return { state, offset }
    }
  }

  // ------------------------------------------------------------ recovery

  /**
   * Looks after an attempt that others drive: by one process at a time, from its checkpoint and the events after it; what is out is read
   * back or sent where it never was; what is being cancelled is only cancelled further (`003…` §4). Answers false where somebody else does.
   */
  async recover(attemptId: string): Promise<boolean> {
    const { store, process } = this.#deps
    const claim = await store.claimAttempt(attemptId, process)
    if (!claim) return false
    try {
      const state = await this.#resumedState(attemptId)
      if (!state) return true
      if (isCancelledTask(state.status)) {
        await this.continueCancel(state.task_id)
        return true
      }
      // What was sent before comes first: nothing that depends on it passes it.
      for (const actionId of state.open) {
        if (!(await this.#stillOurs(attemptId, claim.fence))) return false
        await this.#plane.advance(actionId)
      }
      await this.sync(attemptId)
      return true
    } finally {
      await store.releaseAttempt(attemptId, claim.fence)
    }
  }

  async #stillOurs(attemptId: string, fence: number): Promise<boolean> {
    return this.#deps.unitOfWork.run(() => this.#deps.runs.holdFence(attemptId, fence))
  }

  /**
   * Where a live attempt stands: its newest checkpoint and the events after it, and nothing that the rows do not say too. Null for one that
   * is over. Throws TaskRebuildError.
   */
  async #resumedState(attemptId: string): Promise<{ task_id: string; status: TaskStatus; open: string[] } | null> {
    const { unitOfWork, store } = this.#deps
    return unitOfWork.run(async () => {
      const found = await store.attempt(attemptId)
      const task = found && (await store.lock(found.task_id))
      const attempt = await store.attempt(attemptId)
      if (!task || !attempt || !isLiveAttempt(attempt.status)) return null
      const { state } = await this.rebuild(task.id, await store.latestCheckpoint(attemptId))
      const actions = await store.actions(attemptId)
      for (const { id, state: own } of actions) {
        if (state.actions[id]?.state !== own) throw new TaskRebuildError(task.id, `action ${id} is ${own}`)
      }
      const { spent_micros, reserved_micros, used_actions } = state.budget
      const isSame = spent_micros === task.spent_micros && reserved_micros === task.reserved_micros && used_actions === task.used_actions
      if (!isSame || state.status !== task.status) throw new TaskRebuildError(task.id, 'its budget or its status')
      const open = Object.values(state.actions)
        .filter((action) => action.attempt_id === attemptId && !isSettledAction(action.state))
        .toSorted((left, right) => left.ordinal - right.ordinal)
      return { task_id: task.id, status: task.status, open: open.map(({ action_id }) => action_id) }
    })
  }

  // ------------------------------------------------------------ cancel

  /** Marks a task as cancelled, revokes what was asked for it, and ends it once it is quiet. Throws not_found. */
  async cancel(ownerId: string, taskId: string): Promise<void> {
    const { unitOfWork, store, clock } = this.#deps
    await unitOfWork.run(async () => {
      if (!(await store.find(ownerId, taskId))) throw new LingtaiError('not_found')
      const task = await store.lock(taskId)
      const to = task && nextTaskStatus(task.status, 'cancel_requested')
      if (!task || !to) return
      await store.change(taskId, { status: to, cancel_requested_at: clock.now() })
      const payload = { task_id: taskId, from: task.status, to, reason: 'cancel_requested', by: ownerId }
      await appendTaskEvents(this.#deps, task, [{ type: 'task.changed', payload }], { actor: 'owner', tag: 'cancel' })
      for (const attempt of await store.attempts(taskId)) {
        if (isLiveAttempt(attempt.status)) await this.#cancelAttempt({ ...task, status: to }, attempt)
      }
    })
    for (const attempt of await store.attempts(taskId)) {
      if (!isLiveAttempt(attempt.status)) continue
      this.#plane.abort(attempt.id)
      this.#deps.announce(attempt.id)
    }
    await this.continueCancel(taskId)
  }

  async #cancelAttempt(task: TaskRow, attempt: AttemptRow): Promise<void> {
    const { runs, actions, ids, clock } = this.#deps
    const open = await runs.openCommands(attempt.id)
    if (!open.some(({ kind }) => kind === 'cancel')) {
      await runs.insertCommand({ id: ids.next(), run_id: attempt.id, owner_id: task.owner_id, kind: 'cancel', content_id: null })
    }
    await actions.approvals.revokeOf(attempt.id, clock.now())
    await this.#plane.cancelOpen(task, attempt.id)
  }

  /** As far as it can be cancelled now: what is out is read back, and `cancelled` is said when nothing is (case E12). */
  async continueCancel(taskId: string): Promise<void> {
    const { store, runs } = this.#deps
    for (const attempt of await store.attempts(taskId)) {
      if (!isLiveAttempt(attempt.status)) continue
      for (const action of await store.actions(attempt.id)) {
        if (!isSettledAction(action.state)) await this.#plane.advance(action.id)
      }
      const run = await runs.get(attempt.id)
      const waits = run && (run.state === 'queued' || (run.state === 'suspended' && run.reason !== 'reconcile_required'))
      if (attempt.runtime !== 'external' && waits) await this.#deps.endWaiting(run)
      if (attempt.runtime === 'external') await this.sync(attempt.id)
    }
    await this.#finishCancel(taskId)
  }

  async #finishCancel(taskId: string): Promise<void> {
    const { unitOfWork, store, actions } = this.#deps
    await unitOfWork.run(async () => {
      const task = await store.lock(taskId)
      const to = task && nextTaskStatus(task.status, 'quiet')
      if (!task || !to || !isQuiet((await store.actionsOfTask(taskId)).map(({ state }) => state))) return
      for (const attempt of await store.attempts(taskId)) {
        const open = await actions.ledger.open(attempt.id)
        if (open.some(({ state, consequence }) => state !== 'unknown' || consequence === 'lasting')) return
        if (isLiveAttempt(attempt.status) && !(await this.#endCancelled(task, attempt))) return
      }
      await store.change(taskId, { status: to, ended_at: this.#deps.clock.now() })
      const payload = { task_id: taskId, from: task.status, to, reason: 'quiet', by: null }
      await appendTaskEvents(this.#deps, task, [{ type: 'task.changed', payload }], { actor: 'kernel', tag: 'cancel' })
    })
  }

  async #endCancelled(task: TaskRow, attempt: AttemptRow): Promise<boolean> {
    if (attempt.runtime !== 'external') return false
    return this.endExternal(task, attempt, { status: 'cancelled', outcome: 'interrupted' })
  }

  /** Ends an attempt that others drive, and its run. Inside a unit of work that holds the task; false where somebody has the run. */
  async endExternal(
    task: TaskRow,
    attempt: AttemptRow,
    ending: {
      status: Extract<AttemptStatus, 'candidate_verified' | 'needs_escalation' | 'cancelled'>
      outcome: 'finished' | 'interrupted' | 'failed'
    },
  ): Promise<boolean> {
    const { store, runs, clock, process, actions } = this.#deps
    const run = await runs.takeQueued(attempt.id, process.holder)
    if (!run) return false
    await this.#recordRunEnd(run, ending.outcome)
    const open = await runs.openCommands(run.id)
    await runs.recordCommands(
      open.map(({ id }) => id),
      false,
    )
    await actions.approvals.revokeOf(run.id, clock.now())
    const reason = { finished: null, interrupted: 'cancelled', failed: 'stuck' }[ending.outcome]
    if (!(await runs.end({ id: run.id, fence: run.fence, state: ending.outcome, reason }))) {
      throw new Error(`run ${run.id} was taken while it was being ended`)
    }
    await store.changeAttempt(attempt.id, { status: ending.status, ended_at: clock.now() })
    await this.#tellChange(task, attempt, ending.status, reason)
    return true
  }

  async #recordRunEnd(run: RunRow, outcome: 'finished' | 'interrupted' | 'failed'): Promise<void> {
    const end = { candidate_id: null, delta_count: 0, turns: 0 }
    const event = {
      finished: { type: 'run.finished' as const, payload: end },
      interrupted: { type: 'run.interrupted' as const, payload: { reason: 'cancelled' as const, which: null, code: null, ...end } },
      failed: { type: 'run.failed' as const, payload: { code: 'stuck' as const, rule: null, ...end } },
    }[outcome]
    const at = this.#deps.clock.now().toISOString()
    const envelope = {
      run_id: run.id,
      character_id: run.character_id,
      trace_id: run.trace_id,
      actor: 'kernel',
      at,
      cause: { tag: 'end_attempt' },
    } as const
    await this.#deps.log.append({ stream: `run:${run.id}`, ownerId: run.owner_id, events: [{ ...event, ...envelope }] })
  }

  /** A loop's attempt whose run is over: what it used is charged, what was held for it given back. Inside a unit of work that holds the task. */
  async endLooped(task: TaskRow, attempt: AttemptRow, ending: { status: AttemptStatus; reason: string | null }): Promise<void> {
    const { store, clock } = this.#deps
    const used = await this.#usedBy(task, attempt)
    await store.change(task.id, {
      spent_micros: task.spent_micros + used.charged_micros,
      reserved_micros: task.reserved_micros - used.released_micros,
      used_actions: task.used_actions + used.used_actions,
    })
    await store.changeAttempt(attempt.id, { status: ending.status, ended_at: clock.now() })
    await this.#tellChange(task, attempt, ending.status, ending.reason, used)
  }

  /**
   * An attempt whose run ended without it: cancelled, killed, or its process died. `finished` where there is a candidate to be looked at;
   * null where it is not over, or something of it is still out.
   */
  async overtake(attemptId: string): Promise<'finished' | 'ended' | null> {
    const { unitOfWork, store, runs, actions } = this.#deps
    return unitOfWork.run(async () => {
      const found = await store.attempt(attemptId)
      const task = found && (await store.lock(found.task_id))
      const attempt = await store.attempt(attemptId)
      const run = await runs.get(attemptId)
      if (!task || !attempt || !run || run.ended_at === null || !isLiveAttempt(attempt.status)) return null
      if (run.state === 'finished' && !isCancelledTask(task.status)) return 'finished'
      await this.#plane.cancelOpen(task, attemptId)
      const open = await actions.ledger.open(attemptId)
      const isOut = open.some(({ state, consequence }) => state !== 'unknown' || consequence === 'lasting')
      if (isOut || !isQuiet((await store.actions(attemptId)).map(({ state }) => state))) return null
      const ending = { status: isCancelledTask(task.status) ? 'cancelled' : 'interrupted', reason: run.reason } as const
      if (attempt.runtime !== 'external') await this.endLooped(task, attempt, ending)
      else {
        await store.changeAttempt(attemptId, { status: ending.status, ended_at: this.#deps.clock.now() })
        await this.#tellChange(task, attempt, ending.status, ending.reason)
      }
      return 'ended'
    })
  }

  /** A loop's run that ended with nothing to show. */
  async interrupt(attemptId: string, reason: string): Promise<void> {
    const { unitOfWork, store } = this.#deps
    await unitOfWork.run(async () => {
      const found = await store.attempt(attemptId)
      const task = found && (await store.lock(found.task_id))
      const attempt = await store.attempt(attemptId)
      if (task && attempt && isLiveAttempt(attempt.status)) await this.endLooped(task, attempt, { status: 'interrupted', reason })
    })
  }

  async #usedBy(task: TaskRow, attempt: AttemptRow) {
    let charged = 0
    let intents = 0
    for (let after = 0; ;) {
      const page = await this.#deps.log.read(`run:${attempt.id}`, { after, limit: PAGE, types: ['budget.settled', 'effect.intent'] })
      for (const { record } of page) {
        if (record.type === 'effect.intent') intents += 1
        else charged += (record.payload as EventPayload<'budget.settled'>).cost_micros ?? 0
      }
      if (page.length < PAGE) break
      after = page.at(-1)?.record.seq ?? after
    }
    return {
      charged_micros: task.max_cost_micros === null ? charged : Math.min(charged, attempt.reserved_micros),
      released_micros: attempt.reserved_micros,
      used_actions: Math.min(intents, task.max_actions - task.used_actions),
    }
  }
}
