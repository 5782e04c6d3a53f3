import { LingtaiError } from '#contracts'
import type { EventPayload } from '#contracts'
import type { AttemptRow, TaskRow } from '#kernel/ports/task-store'
import { chargeOf, remainingMicros } from '#kernel/tasks/task-budget'
import { isCancelledTask, isLiveAttempt } from '#kernel/tasks/task-state'
import type { TaskDeps } from './deps.ts'
import { tellChange } from './task-stream.ts'

const PAGE = 1_000

/** Nothing is left that a check could cost. */
export class CheckUnaffordableError extends Error {
  constructor(taskId: string) {
    super(`task ${taskId} has nothing left for a check`)
    this.name = 'CheckUnaffordableError'
  }
}

type Rows = { task: TaskRow; attempt: AttemptRow }

/**
 * What runs cost the task that they are for: a loop's attempt by what it held from its start, a question to a model about a candidate by what
 * is left then. Reserved, recorded and charged from their streams, also by a process that comes later (K6). Inside a unit of work that holds
 * the task.
 */
export class AttemptBudget {
  readonly #deps: Pick<TaskDeps, 'store' | 'runs' | 'log' | 'clock'>

  constructor(deps: Pick<TaskDeps, 'store' | 'runs' | 'log' | 'clock'>) {
    this.#deps = deps
  }

  /** A loop's run is over: what it used is charged and the rest given back, once. */
  async settleRun({ task, attempt }: Rows): Promise<Rows> {
    const { store, clock } = this.#deps
    if (attempt.runtime === 'external' || attempt.settled_at !== null) return { task, attempt }
    const { cost, intents } = await this.#usedBy(attempt.id)
    const used = {
      charged_micros: chargeOf(task, { reserved: attempt.reserved_micros, cost }),
      released_micros: attempt.reserved_micros,
      used_actions: Math.min(intents, task.max_actions - task.used_actions),
    }
    await store.change(task.id, {
      spent_micros: task.spent_micros + used.charged_micros,
      reserved_micros: task.reserved_micros - used.released_micros,
      used_actions: task.used_actions + used.used_actions,
    })
    await store.changeAttempt(attempt.id, { reserved_micros: 0, settled_at: clock.now() })
    await tellChange(this.#deps, task, attempt, attempt.status, 'run_over', used)
    return this.#again({ task, attempt })
  }

  /**
   * A run is about to ask a model about a candidate: it may cost what the task has left, which is held for it. Answers that bound; null where
   * there is none. Throws CheckUnaffordableError, wrong_state.
   */
  async reserveCheck(given: Pick<AttemptRow, 'id' | 'task_id'>, runId: string): Promise<number | null> {
    const { store } = this.#deps
    const task = await store.lock(given.task_id)
    const attempt = await store.attempt(given.id)
    if (!task || !attempt || isCancelledTask(task.status) || !isLiveAttempt(attempt.status) || attempt.verification_run_id !== null) {
      throw new LingtaiError('wrong_state', 'The task went on while this was looked at.')
    }
    const left = remainingMicros(task)
    if (left === 0) throw new CheckUnaffordableError(task.id)
    const held = left ?? 0
    await store.change(task.id, { reserved_micros: task.reserved_micros + held })
    await store.changeAttempt(attempt.id, { reserved_micros: attempt.reserved_micros + held, verification_run_id: runId })
    await tellChange(this.#deps, task, attempt, attempt.status, 'check_sent', { reserved_micros: held })
    return left
  }

  /** What a question to a model cost is charged once its run is over. Null while it is not. */
  async settleCheck({ task, attempt }: Rows): Promise<Rows | null> {
    const { store, runs } = this.#deps
    if (attempt.verification_run_id === null) return { task, attempt }
    const run = await runs.get(attempt.verification_run_id)
    if (!run || run.ended_at === null) return null
    const { cost } = await this.#usedBy(run.id)
    const charged = chargeOf(task, { reserved: attempt.reserved_micros, cost })
    await store.change(task.id, {
      spent_micros: task.spent_micros + charged,
      reserved_micros: task.reserved_micros - attempt.reserved_micros,
    })
    await store.changeAttempt(attempt.id, { reserved_micros: 0, verification_run_id: null })
    const used = { charged_micros: charged, released_micros: attempt.reserved_micros }
    await tellChange(this.#deps, task, attempt, attempt.status, 'check_over', used)
    return this.#again({ task, attempt })
  }

  async #again({ task, attempt }: Rows): Promise<Rows> {
    const { store } = this.#deps
    return { task: (await store.lock(task.id)) ?? task, attempt: (await store.attempt(attempt.id)) ?? attempt }
  }

  /** As the run's own stream says. */
  async #usedBy(runId: string): Promise<{ cost: number; intents: number }> {
    let cost = 0
    let intents = 0
    for (let after = 0; ;) {
      const page = await this.#deps.log.read(`run:${runId}`, { after, limit: PAGE, types: ['budget.settled', 'effect.intent'] })
      for (const { record } of page) {
        if (record.type === 'effect.intent') intents += 1
        else cost += (record.payload as EventPayload<'budget.settled'>).cost_micros ?? 0
      }
      if (page.length < PAGE) return { cost, intents }
      after = page.at(-1)?.record.seq ?? after
    }
  }
}
