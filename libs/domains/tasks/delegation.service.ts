import { LingtaiError, meetTrust, TASK_CONTRACT_VERSION } from '#contracts'
import type { Acceptance, CreateTask, ErrorCode, Trust } from '#contracts'
import type { RunRow } from '#kernel/ports/run-store'
import type { TaskRow } from '#kernel/ports/task-store'
import { childActions, delegationRefusal } from '#kernel/tasks/delegation'
import type { DelegationRefusal } from '#kernel/tasks/delegation'
import { isCancelledTask } from '#kernel/tasks/task-state'
import { shownName, shownTools } from '#runtime/turn/granted-tools'
import type { AttemptKeeper } from './attempt-keeper.ts'
import type { TaskDeps } from './deps.ts'
import { NarrowedGrants } from './narrowed-grants.ts'
import { writeTask } from './new-task.ts'

/** Work that a run hands on, as one admitted action of it asks for. */
export type DelegationOrder = {
  ownerId: string
  runId: string
  effectId: string
  /** The same for every try of the action: it is done once. */
  actionId: string
  /** The content that the arguments are stored as; what is made of them goes where they go. */
  argumentsContentId: string
  /** The meet of all that the arguments were made from (K1). */
  trust: Trust
  instruction: string
  inputs: readonly string[]
  /** By the names that the run is shown. */
  tools: readonly string[]
  criterion: string | null
  max_cost_micros: number | null
  max_actions: number | null
}

/** What became of an order. */
export type Delegation = { taskId: string; tools: readonly string[]; max_cost_micros: number | null; max_actions: number }
export type DelegationOutcome = Delegation | { refused: DelegationRefusal | ErrorCode }

/** What is asked of a result where the run names nothing: characters of the instruction that the question shows. */
const SHOWN_OF_INSTRUCTION = 3_800

/**
 * Hands a run's work on to a task in the background (天工, spec/3): one for each action, within what the run itself may do and has left, and
 * never more to be believed than what it was asked for with. The task's attempts are runs that name the run they serve.
 */
export class DelegationService {
  readonly #deps: TaskDeps
  readonly #keeper: Pick<AttemptKeeper, 'start'>

  constructor(deps: TaskDeps, keeper: Pick<AttemptKeeper, 'start'>) {
    this.#deps = deps
    this.#keeper = keeper
  }

  /** What was made of an action; null is proof that nothing was, since it is written in one transaction. */
  async find(ownerId: string, actionId: string): Promise<Delegation | null> {
    const row = await this.#deps.store.findByParentAction(ownerId, actionId)
    return row && asDelegation(row)
  }

  async delegate(order: DelegationOrder): Promise<DelegationOutcome> {
    try {
      return await this.#deps.unitOfWork.run(() => this.#write(order))
    } catch (error) {
      // Nobody can carry it out, or not now: with the transaction, the task is gone too.
      if (error instanceof LingtaiError) return { refused: error.code }
      throw error
    }
  }

  async #write(order: DelegationOrder): Promise<DelegationOutcome> {
    const { store, runs } = this.#deps
    // With its row locked, what is handed on by one run is counted one by one.
    const run = await runs.lock(order.ownerId, order.runId)
    const known = await this.find(order.ownerId, order.actionId)
    if (known) return known
    if (!run) return { refused: 'parent_ended' }
    const parent = await this.#taskOf(run)
    const left = parent && (await this.#actionsLeft(parent, order))
    const refusal = delegationRefusal({
      depth: parent?.depth ?? 0,
      children: await store.countChildren(run.id),
      isOver: run.ended_at !== null,
      isCancelled: (parent !== null && isCancelledTask(parent.status)) || (await this.#isCancelled(run)),
      isKilled: await runs.isKilled(run),
      actionsLeft: left,
      reserved_micros: (await this.#deps.actions.ledger.get(order.effectId))?.reserved_micros ?? 0,
      given_micros: order.max_cost_micros,
    })
    if (refusal) return { refused: refusal }
    const given: CreateTask = {
      character_id: run.character_id,
      instruction: order.instruction,
      inputs: order.inputs.map((text) => ({ media_type: 'text/plain', text, trust: 'untrusted' })),
      tools: await this.#toolsOf(run, parent, order.tools),
      acceptance: acceptanceOf(order),
      budget: { max_cost_micros: order.max_cost_micros, max_actions: childActions(order.max_actions, left) },
      max_repairs: 1,
      risk: parent?.risk ?? 'medium',
      needs: {},
      classification: parent?.classification ?? 'internal',
      retention: parent?.retention ?? 'keep',
    }
    const taskId = await writeTask(this.#deps, order.ownerId, given, {
      // Never laundered: what the run knew when it asked bounds what is made of it.
      trust: meetTrust(['workspace', order.trust, ...(parent ? [parent.trust] : [])]),
      derivedFrom: [order.argumentsContentId],
      lineage: {
        parent_run_id: run.id,
        parent_action_id: order.actionId,
        depth: (parent?.depth ?? 0) + 1,
        grant_tree_id: parent ? parent.grant_tree_id : run.tree_id,
      },
    })
    await this.#keeper.start(order.ownerId, taskId, { runtimes: ['builtin'] })
    return { taskId, tools: given.tools, ...given.budget }
  }

  async #taskOf(run: RunRow): Promise<TaskRow | null> {
    const attempt = await this.#deps.store.attempt(run.id)
    return attempt && (await this.#deps.store.find(run.owner_id, attempt.task_id))
  }

  async #isCancelled(run: RunRow): Promise<boolean> {
    return (await this.#deps.runs.openCommands(run.id)).some(({ kind }) => kind === 'cancel')
  }

  /** What the parent's own task has left, this very action counted. */
  async #actionsLeft(parent: TaskRow, order: DelegationOrder): Promise<number> {
    const { store } = this.#deps
    const attempt = await store.attempt(order.runId)
    // The actions of a loop are counted in when it ends; until then its effects say how many there were.
    const running =
      attempt?.runtime === 'external' ? 0 : (await store.effects(parent.id)).filter((effect) => effect.run_id === order.runId).length
    return parent.max_actions - parent.used_actions - running - (await store.givenActions(parent.id))
  }

  /** What was asked for of what the run itself may use. */
  async #toolsOf(run: RunRow, parent: TaskRow | null, asked: readonly string[]): Promise<string[]> {
    const { catalogue, grants } = this.#deps.actions
    const own = await shownTools(run, { catalogue, grants: parent ? new NarrowedGrants(grants, parent) : grants })
    return own.map(({ name }) => name).filter((name) => asked.includes(name) || asked.includes(shownName(name)))
  }
}

function acceptanceOf({ criterion, instruction }: DelegationOrder): Acceptance {
  const asked = criterion ?? `It does what was asked: ${instruction.slice(0, SHOWN_OF_INSTRUCTION)}`
  return { contract_version: TASK_CONTRACT_VERSION, checks: [{ id: 'asked', kind: 'model', criterion: asked }] }
}

function asDelegation({ id, tools, max_cost_micros, max_actions }: TaskRow): Delegation {
  return { taskId: id, tools, max_cost_micros, max_actions }
}
