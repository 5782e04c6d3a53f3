import { LingtaiError } from '#contracts'
import type { OwnerRole, OwnerView } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { IdentityStore, OwnerRow } from './ports.ts'

/** The name of the owner that the first start makes. */
export const FIRST_OWNER_NAME = 'owner'

/** What a new owner finds (their real realm, a first character); told inside the transaction that makes the owner. */
export type WelcomeOwner = (ownerId: string) => Promise<void>

/** The people of an instance. */
export class OwnersService {
  readonly #unit: UnitOfWork
  readonly #store: IdentityStore
  readonly #log: EventLog
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #welcome: WelcomeOwner

  constructor(parts: { unit: UnitOfWork; store: IdentityStore; log: EventLog; clock: Clock; ids: Ids; welcome: WelcomeOwner }) {
    this.#unit = parts.unit
    this.#store = parts.store
    this.#log = parts.log
    this.#clock = parts.clock
    this.#ids = parts.ids
    this.#welcome = parts.welcome
  }

  async list(): Promise<OwnerView[]> {
    return (await this.#store.owners()).map(viewOf)
  }

  /** Throws not_found. */
  async read(ownerId: string): Promise<OwnerView> {
    const owner = await this.#store.owner(ownerId)
    if (!owner) throw new LingtaiError('not_found')
    return viewOf(owner)
  }

  /** null for a name that nobody has. */
  async byName(name: string): Promise<OwnerView | null> {
    const owner = await this.#store.ownerByName(name)
    return owner && viewOf(owner)
  }

  /** Throws conflict where the name is taken. */
  async create(input: { name: string; role: OwnerRole; actor: 'owner' | 'system' }): Promise<OwnerView> {
    const owner = await this.#unit.run(() => this.#insert(input))
    if (!owner) throw new LingtaiError('conflict', undefined, { errors: [{ path: 'name', message: 'is taken' }] })
    return owner
  }

  /**
   * Makes the first owner, an admin, where there is none yet, and answers the first owner either way. Replicas that start together make
   * one: the second waits on the unique name.
   */
  async ensureFirst(): Promise<OwnerView> {
    const [first] = await this.#store.owners()
    if (first) return viewOf(first)
    const made = await this.#unit.run(() => this.#insert({ name: FIRST_OWNER_NAME, role: 'admin', actor: 'system' }))
    if (made) return made
    const other = await this.byName(FIRST_OWNER_NAME)
    if (!other) throw new Error('the first owner is neither there nor could be made')
    return other
  }

  async #insert(input: { name: string; role: OwnerRole; actor: 'owner' | 'system' }): Promise<OwnerView | null> {
    const now = this.#clock.now()
    const owner: OwnerRow = { id: this.#ids.next(), name: input.name, role: input.role, created_at: now }
    if (!(await this.#store.insertOwner(owner))) return null
    await this.#log.append({
      stream: `admin:${owner.id}`,
      ownerId: owner.id,
      events: [
        {
          type: 'owner.created',
          payload: { owner_id: owner.id, role: owner.role },
          actor: input.actor,
          at: now.toISOString(),
          cause: { tag: 'owner.create' },
        },
      ],
    })
    await this.#welcome(owner.id)
    return viewOf(owner)
  }
}

function viewOf({ id, name, role }: OwnerRow): OwnerView {
  return { id, name, role }
}
