import { LingtaiError } from '#contracts'
import type { KillFlag } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { KillFlagStore, KillScopeName } from './ports.ts'

/** The id that stands for the whole instance. */
export const GLOBAL_SCOPE_ID = '00000000-0000-0000-0000-000000000000'

/** Stops everything, an owner, or a character, within one append on every replica (K8). */
export class KillSwitchService {
  readonly #unit: UnitOfWork
  readonly #store: KillFlagStore
  readonly #log: EventLog
  readonly #clock: Clock

  constructor(parts: { unit: UnitOfWork; store: KillFlagStore; log: EventLog; clock: Clock }) {
    this.#unit = parts.unit
    this.#store = parts.store
    this.#log = parts.log
    this.#clock = parts.clock
  }

  async list(): Promise<KillFlag[]> {
    return (await this.#store.list()).map((flag) => ({ ...flag, set_at: flag.set_at.toISOString() }))
  }

  /** Setting twice is the same as once. Throws not_found for an owner or character that is not there. */
  async set(input: { scope: KillScopeName; scopeId: string; by: string }): Promise<void> {
    await this.#unit.run(async () => {
      await this.#check(input)
      const isNew = await this.#store.set({ scope: input.scope, scope_id: input.scopeId, set_by: input.by, set_at: this.#clock.now() })
      if (isNew) await this.#record('kill.set', input)
    })
  }

  /** Throws not_found where it is not set. */
  async lift(input: { scope: KillScopeName; scopeId: string; by: string }): Promise<void> {
    await this.#unit.run(async () => {
      if (!(await this.#store.lift(input.scope, input.scopeId))) throw new LingtaiError('not_found', 'No such kill flag is set.')
      await this.#record('kill.lifted', input)
    })
  }

  async #check({ scope, scopeId }: { scope: KillScopeName; scopeId: string }): Promise<void> {
    if (scope === 'global') {
      if (scopeId === GLOBAL_SCOPE_ID) return
      throw new LingtaiError('validation_failed', undefined, {
        errors: [{ path: 'params.id', message: `must be ${GLOBAL_SCOPE_ID} for the global scope` }],
      })
    }
    if (!(await this.#store.exists(scope, scopeId))) throw new LingtaiError('not_found', `There is no such ${scope}.`)
  }

  async #record(type: 'kill.set' | 'kill.lifted', input: { scope: KillScopeName; scopeId: string; by: string }): Promise<void> {
    await this.#log.append({
      stream: `admin:${input.by}`,
      ownerId: input.by,
      events: [
        {
          type,
          payload: { scope: input.scope, scope_id: input.scopeId, by: input.by },
          actor: 'admin',
          at: this.#clock.now().toISOString(),
          cause: { tag: type },
        },
      ],
    })
  }
}
