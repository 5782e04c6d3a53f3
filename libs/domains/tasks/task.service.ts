import { LingtaiError, meetTrust } from '#contracts'
import type {
  ActionView,
  AttemptView,
  CommitTask,
  CompleteTask,
  CompletionView,
  CreateTask,
  EvidencePackage,
  StartAttempt,
  SubmitAction,
  TaskStatus,
  TaskView,
} from '#contracts'
import type { ActionPlane } from './action-plane.ts'
import type { AttemptKeeper } from './attempt-keeper.ts'
import type { RuntimeAdapter } from './attempt-starts.ts'
import type { CompletionService } from './completion.service.ts'
import type { TaskDeps } from './deps.ts'
import type { EvidencePackages } from './evidence-packages.ts'
import { rootLineage, writeTask } from './new-task.ts'
import { taskFaults } from './task-faults.ts'
import { actionViews, attemptView, taskViews } from './task-views.ts'

/** Delegated work as its owner commands it (tiangong; `003…` §1–§4). */
export class TaskService {
  readonly #deps: TaskDeps
  readonly #plane: ActionPlane
  readonly #keeper: AttemptKeeper
  readonly #completion: CompletionService
  readonly #evidence: EvidencePackages
  readonly #hasCharacter: (ownerId: string, characterId: string) => Promise<boolean>

  constructor(parts: {
    deps: TaskDeps
    plane: ActionPlane
    keeper: AttemptKeeper
    completion: CompletionService
    evidence: EvidencePackages
    hasCharacter: (ownerId: string, characterId: string) => Promise<boolean>
  }) {
    this.#deps = parts.deps
    this.#plane = parts.plane
    this.#keeper = parts.keeper
    this.#completion = parts.completion
    this.#evidence = parts.evidence
    this.#hasCharacter = parts.hasCharacter
  }

  get runtimes(): readonly RuntimeAdapter[] {
    return this.#keeper.runtimes
  }

  /** Throws not_found for a character that is not the owner's, validation_failed for what nobody could be held to. */
  async create(ownerId: string, given: CreateTask): Promise<TaskView> {
    if (!(await this.#hasCharacter(ownerId, given.character_id))) throw new LingtaiError('not_found')
    const errors = await taskFaults(ownerId, given, this.#deps.actions.catalogue)
    if (errors.length > 0) throw new LingtaiError('validation_failed', undefined, { errors })
    const trust = meetTrust(['workspace', ...given.inputs.map((input) => input.trust)])
    const id = await this.#deps.unitOfWork.run(() =>
      writeTask(this.#deps, ownerId, given, { trust, lineage: rootLineage, derivedFrom: [] }),
    )
    return this.get(ownerId, id)
  }

  /** Throws not_found. */
  async get(ownerId: string, taskId: string): Promise<TaskView> {
    const row = await this.#deps.store.find(ownerId, taskId)
    const [view] = row ? await taskViews([row], this.#deps.contents) : []
    if (!view) throw new LingtaiError('not_found')
    return view
  }

  async list(
    ownerId: string,
    query: { status?: TaskStatus | undefined; before: { createdAt: Date; id: string } | null; limit: number },
  ): Promise<{ items: TaskView[]; next_cursor: string | null }> {
    const rows = await this.#deps.store.list(ownerId, { status: query.status ?? null, before: query.before, limit: query.limit + 1 })
    const page = rows.slice(0, query.limit)
    const last = page.at(-1)
    return {
      items: await taskViews(page, this.#deps.contents),
      next_cursor: rows.length > query.limit && last ? `${last.created_at.toISOString()}_${last.id}` : null,
    }
  }

  /** Throws not_found, wrong_state, killed. */
  async start(ownerId: string, taskId: string, wanted: StartAttempt): Promise<AttemptView> {
    const task = await this.#deps.store.find(ownerId, taskId)
    if (!task) throw new LingtaiError('not_found')
    if (!(await this.#hasCharacter(ownerId, task.character_id))) {
      throw new LingtaiError('wrong_state', 'The character that was to do it is deleted.')
    }
    return attemptView(await this.#keeper.start(ownerId, taskId, wanted))
  }

  async attempts(ownerId: string, taskId: string): Promise<{ items: AttemptView[] }> {
    await this.#own(ownerId, taskId)
    return { items: (await this.#deps.store.attempts(taskId)).map(attemptView) }
  }

  async attempt(ownerId: string, attemptId: string): Promise<AttemptView> {
    const row = await this.#deps.store.attempt(attemptId)
    if (!row || row.owner_id !== ownerId) throw new LingtaiError('not_found')
    return attemptView(row)
  }

  /**
   * One action, from its proposal as far as it goes now; the same name again only says how it stands, or takes it further (cases E2, E10).
   * Throws not_found, wrong_state, conflict. Not inside a unit of work.
   */
  async submit(ownerId: string, taskId: string, input: SubmitAction): Promise<ActionView> {
    const { id, attempt_id: attemptId } = await this.#plane.record(ownerId, taskId, input)
    try {
      await this.#plane.advance(id)
    } finally {
      await this.#settleDown({ ownerId, taskId, attemptId })
    }
    return this.action(ownerId, id)
  }

  /** What follows an action for its attempt: where it stands now, and the end of a task that waited for it to be cancelled. */
  async #settleDown({ ownerId, taskId, attemptId }: { ownerId: string; taskId: string; attemptId: string }): Promise<void> {
    await this.#keeper.sync(attemptId)
    const task = await this.#deps.store.find(ownerId, taskId)
    if (task?.status === 'cancelling') await this.#keeper.continueCancel(taskId)
  }

  async action(ownerId: string, actionId: string): Promise<ActionView> {
    const row = await this.#deps.store.findAction(ownerId, actionId)
    const [view] = row ? await actionViews([row], this.#deps) : []
    if (!view) throw new LingtaiError('not_found')
    return view
  }

  async actions(ownerId: string, taskId: string): Promise<{ items: ActionView[] }> {
    await this.#own(ownerId, taskId)
    return { items: await actionViews(await this.#deps.store.actionsOfTask(taskId), this.#deps) }
  }

  /** Throws not_found. Not inside a unit of work. */
  async cancel(ownerId: string, taskId: string): Promise<TaskView> {
    await this.#keeper.cancel(ownerId, taskId)
    return this.get(ownerId, taskId)
  }

  complete(ownerId: string, taskId: string, candidate: CompleteTask): Promise<CompletionView> {
    return this.#completion.complete(ownerId, taskId, candidate)
  }

  async commit(ownerId: string, taskId: string, candidate: CommitTask): Promise<TaskView> {
    await this.#completion.commit(ownerId, taskId, candidate)
    return this.get(ownerId, taskId)
  }

  evidence(ownerId: string, taskId: string): Promise<EvidencePackage> {
    return this.#evidence.of(ownerId, taskId)
  }

  async #own(ownerId: string, taskId: string): Promise<void> {
    if (!(await this.#deps.store.find(ownerId, taskId))) throw new LingtaiError('not_found')
  }
}
