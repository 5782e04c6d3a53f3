import { LingtaiError } from '#contracts'
import type { GrantView, SetGrant } from '#contracts'
import type { GrantRow, GrantStore } from '#kernel/ports/approval-store'
import type { Clock } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'

export type GrantScopeName = GrantRow['scope']

export type GrantsDeps = {
  unitOfWork: UnitOfWork
  grants: GrantStore
  log: EventLog
  clock: Clock
  /** Whether the owner has such a character or tree. */
  has(ownerId: string, scope: GrantScopeName, scopeId: string): Promise<boolean>
}

/** What a place grants where nobody set anything: nothing by name, and nothing beyond reading and what can be undone (deny by default). */
const unset: Omit<GrantView, 'scope' | 'scope_id'> = {
  mode: 'default',
  classes: [],
  tools: null,
  exact: null,
  class_rules: [],
  max_cost_micros: null,
  version: 0,
}

/** What owners let their characters do, place by place; set by the owner in person (K2). Layers meet in admission, never here. */
export class GrantsService {
  readonly #deps: GrantsDeps

  constructor(deps: GrantsDeps) {
    this.#deps = deps
  }

  /** Throws not_found for a place that is not the owner's. */
  async get(ownerId: string, scope: GrantScopeName, scopeId: string): Promise<GrantView> {
    await this.#check(ownerId, scope, scopeId)
    const row = await this.#deps.grants.find(ownerId, scope, scopeId)
    return row ? view(row) : { scope, scope_id: scopeId, ...unset }
  }

  /** Throws not_found, revision_conflict. */
  async set(ownerId: string, scope: GrantScopeName, scopeId: string, grant: SetGrant): Promise<GrantView> {
    const { unitOfWork, grants, log, clock } = this.#deps
    await this.#check(ownerId, scope, scopeId)
    const { version, ...given } = grant
    const at = clock.now()
    return unitOfWork.run(async () => {
      const row = await grants.set({ owner_id: ownerId, scope, scope_id: scopeId, ...given, set_by: ownerId, set_at: at }, version)
      if (!row) throw new LingtaiError('revision_conflict')
      await log.append({
        stream: `confirmation:${ownerId}`,
        ownerId,
        events: [
          {
            type: 'grant.changed',
            payload: { scope, scope_id: scopeId, version: row.version, mode: row.mode, by: ownerId },
            actor: 'owner',
            at: at.toISOString(),
            cause: { tag: 'set_grant' },
          },
        ],
      })
      return view(row)
    })
  }

  async #check(ownerId: string, scope: GrantScopeName, scopeId: string): Promise<void> {
    const isOwn = scope === 'owner' ? scopeId === ownerId : await this.#deps.has(ownerId, scope, scopeId)
    if (!isOwn) throw new LingtaiError('not_found')
  }
}

function view(row: GrantRow): GrantView {
  const { scope, scope_id, mode, classes, tools, exact, class_rules, max_cost_micros, version } = row
  return { scope, scope_id, mode, classes, tools, exact, class_rules, max_cost_micros, version }
}
