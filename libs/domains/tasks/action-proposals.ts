import { LingtaiError, meetTrust } from '#contracts'
import type { SubmitAction } from '#contracts'
import type { JsonObject } from '#kernel/ports/model-gateway'
import type { ActionRow, AttemptRow, TaskRow } from '#kernel/ports/task-store'
import { canonicalJson } from '#kernel/record/canonical-json'
import { saltedDigest } from '#kernel/record/chain'
import { isCancelledTask, isLiveAttempt } from '#kernel/tasks/task-state'
import { maskedArguments } from '#runtime/turn/masked-arguments'
import type { ActionSettler } from './action-settler.ts'
import type { AttemptStandings } from './attempt-standings.ts'
import type { TaskDeps } from './deps.ts'
import { conflict } from './placed-action.ts'
import { appendTaskEvents } from './task-stream.ts'
import type { TaskEvent } from './task-stream.ts'

/** Actions as they are proposed: bound once to their name, their target and their arguments. */
export class ActionProposals {
  readonly #deps: TaskDeps
  readonly #settler: ActionSettler
  readonly #standings: AttemptStandings

  constructor(parts: { deps: TaskDeps; settler: ActionSettler; standings: AttemptStandings }) {
    this.#deps = parts.deps
    this.#settler = parts.settler
    this.#standings = parts.standings
  }

  /**
   * Records an action, or finds the one that has its name. The same name for anything else is a conflict (cases E4, E5). Throws not_found,
   * wrong_state, conflict.
   */
  async record(ownerId: string, taskId: string, input: Omit<SubmitAction, 'actor'> & { actor: ActionRow['actor'] }): Promise<ActionRow> {
    const { unitOfWork, store } = this.#deps
    return unitOfWork.run(async () => {
      const task = await this.#ownTask(ownerId, taskId)
      const given = { ...input, resource: input.resource ?? input.tool }
      const known = await this.#known(task, given)
      if (known) return known
      const attempts = await store.attempts(taskId)
      const attempt = attempts.at(-1)
      if (!attempt || (!isCancelledTask(task.status) && (task.status !== 'open' || !isLiveAttempt(attempt.status)))) {
        throw new LingtaiError('wrong_state', 'The task has no attempt that could act.', { data: { status: task.status } })
      }
      if (attempt.runtime !== 'external' && given.actor !== 'verifier') {
        throw new LingtaiError('wrong_state', 'The attempt is driven by a runtime of its own.', { data: { runtime: attempt.runtime } })
      }
      return this.#insert(task, attempt, given)
    })
  }

  async #ownTask(ownerId: string, taskId: string): Promise<TaskRow> {
    const { store } = this.#deps
    if (!(await store.find(ownerId, taskId))) throw new LingtaiError('not_found')
    const task = await store.lock(taskId)
    if (!task) throw new LingtaiError('not_found')
    return task
  }

  async #known(
    task: TaskRow,
    given: Omit<SubmitAction, 'actor'> & { resource: string; actor: ActionRow['actor'] },
  ): Promise<ActionRow | null> {
    const { store, contents } = this.#deps
    const byId = given.action_id === undefined ? null : await store.findAction(task.owner_id, given.action_id)
    const byKey = await store.actionsByKey(task.owner_id, { taskId: task.id, resource: given.resource, key: given.key })
    const [first, ...others] = [...(byId ? [byId] : []), ...byKey]
    if (!first) {
      if (given.action_id !== undefined) throw new LingtaiError('not_found')
      return null
    }
    const content = (await contents.get([first.arguments_content_id])).get(first.arguments_content_id)
    const isSame =
      others.every(({ id }) => id === first.id) &&
      first.task_id === task.id &&
      (given.action_id === undefined || given.action_id === first.id) &&
      given.key === first.idempotency_key &&
      first.tool === given.tool &&
      first.resource === given.resource &&
      first.cost_micros === (given.cost_micros ?? null) &&
      // Arguments that were erased can be compared with nothing.
      content?.body === this.#argumentsText(given.arguments)
    if (!isSame) throw conflict(first.id)
    return first
  }

  #argumentsText(given: JsonObject): string {
    return canonicalJson(maskedArguments(given, this.#deps.actions.scrub))
  }

  async #insert(
    task: TaskRow,
    attempt: AttemptRow,
    given: Omit<SubmitAction, 'actor'> & { resource: string; actor: ActionRow['actor'] },
  ): Promise<ActionRow> {
    const { store, contents, ids, clock } = this.#deps
    const salt = ids.bytes(32)
    const text = this.#argumentsText(given.arguments)
    const content = await contents.put({
      owner_id: task.owner_id,
      media_type: 'application/json',
      content: text,
      salt,
      // Whoever acts was told these.
      derived_from: [task.instruction_content_id, task.acceptance_content_id, ...task.input_refs],
    })
    const earlier = await store.actions(attempt.id)
    const seen = await store.observations(task.id)
    const at = clock.now()
    const row = {
      id: ids.next(),
      owner_id: task.owner_id,
      task_id: task.id,
      attempt_id: attempt.id,
      ordinal: earlier.length + 1,
      actor: given.actor,
      tool: given.tool,
      resource: given.resource,
      idempotency_key: given.key,
      arguments_content_id: content.id,
      arguments_hash: hex(saltedDigest(salt, text)),
      cost_micros: given.cost_micros ?? null,
      // Whoever drives the attempt has seen what came before, and nothing makes that more to be believed (K1).
      trust: meetTrust([task.trust, given.trust, ...seen.map(({ trust }) => trust)]),
      independent: given.independent,
      created_at: at,
    }
    await store.insertAction(row)
    const submitted: TaskEvent = {
      type: 'action.submitted',
      payload: {
        action_id: row.id,
        attempt_id: row.attempt_id,
        ordinal: row.ordinal,
        actor: row.actor,
        tool: row.tool,
        resource: row.resource,
        key: row.idempotency_key,
        content_id: row.arguments_content_id,
        arguments_hash: row.arguments_hash,
        cost_micros: row.cost_micros,
        trust: row.trust,
        independent: row.independent,
      },
      content_digests: [{ content_id: row.arguments_content_id, digest: row.arguments_hash }],
    }
    await appendTaskEvents(this.#deps, task, [submitted], { actor: given.actor === 'owner' ? 'owner' : 'agent', tag: 'submit' })
    const inserted = await store.action(row.id)
    if (!inserted) throw new Error(`action ${row.id} was not stored`)
    if (isCancelledTask(task.status)) await this.#settler.close(task, inserted, 'cancelled', 'cancelled')
    // A verifier's look at a candidate is not what the attempt waits for.
    else if (given.actor !== 'verifier') await this.#standings.resume(task, attempt, 'waiting_for_user')
    return inserted
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
