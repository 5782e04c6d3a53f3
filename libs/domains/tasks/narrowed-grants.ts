import { CapabilityClass } from '#contracts'
import type { GrantLayerRow, GrantRow, GrantStore } from '#kernel/ports/approval-store'
import type { TaskRow } from '#kernel/ports/task-store'

/** What a task leaves of what is granted anyway: its own tools, while it may act at all. It adds nothing (K2). */
export class NarrowedGrants implements GrantStore {
  readonly #grants: GrantStore
  readonly #task: TaskRow
  readonly #mayAct: () => Promise<boolean>

  /** `mayAct`: whether the task's budget has room for another action. */
  constructor(grants: GrantStore, task: TaskRow, mayAct: () => Promise<boolean> = async () => true) {
    this.#grants = grants
    this.#task = task
    this.#mayAct = mayAct
  }

  find(...place: Parameters<GrantStore['find']>): Promise<GrantRow | null> {
    return this.#grants.find(...place)
  }

  set(...grant: Parameters<GrantStore['set']>): Promise<GrantRow | null> {
    return this.#grants.set(...grant)
  }

  async layers(place: Parameters<GrantStore['layers']>[0]): Promise<GrantLayerRow[]> {
    // What was handed on from a tree stays under that tree's grants, as they are now.
    const bounds = { ...place, treeId: place.treeId ?? this.#task.grant_tree_id }
    const [layers, mayAct] = await Promise.all([this.#grants.layers(bounds), this.#mayAct()])
    const own: GrantLayerRow = {
      owner_id: this.#task.owner_id,
      scope: 'task',
      scope_id: this.#task.id,
      // The mildest of modes narrows nothing: what the others say stands.
      mode: 'auto',
      classes: [...CapabilityClass.options],
      tools: mayAct ? [...this.#task.tools] : [],
      exact: null,
      class_rules: [],
      max_cost_micros: null,
      version: this.#task.contract_version,
      set_by: this.#task.requested_by,
      set_at: this.#task.created_at,
    }
    return [...layers, own]
  }
}
