import { LingtaiError } from '#contracts'
import type { CreateRealm, RealmView } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { RealmStore } from './ports.ts'

/** Realms of an owner; every owner has exactly one real one. */
export class RealmsService {
  readonly #store: RealmStore
  readonly #clock: Clock
  readonly #ids: Ids

  constructor({ store, clock, ids }: { store: RealmStore; clock: Clock; ids: Ids }) {
    this.#store = store
    this.#clock = clock
    this.#ids = ids
  }

  list(ownerId: string): Promise<RealmView[]> {
    return this.#store.list(ownerId)
  }

  /** Throws not_found. */
  async read(ownerId: string, realmId: string): Promise<RealmView> {
    const realm = await this.#store.find(ownerId, realmId)
    if (!realm) throw new LingtaiError('not_found')
    return realm
  }

  async create(ownerId: string, { kind, name }: CreateRealm): Promise<RealmView> {
    const realm = { id: this.#ids.next(), kind, name }
    await this.#store.insert({ ...realm, owner_id: ownerId, created_at: this.#clock.now() })
    return realm
  }

  /** Makes the real realm of a new owner. */
  async createReal(ownerId: string): Promise<void> {
    await this.#store.insert({ id: this.#ids.next(), owner_id: ownerId, kind: 'real', name: 'Real', created_at: this.#clock.now() })
  }

  /** The named realm, or the real one. Throws not_found with the field's path. */
  async resolve(ownerId: string, realmId: string | undefined): Promise<RealmView> {
    const realm = realmId === undefined ? await this.#store.real(ownerId) : await this.#store.find(ownerId, realmId)
    if (!realm) throw new LingtaiError('not_found', undefined, { errors: [{ path: 'realm_id', message: 'is no realm of yours' }] })
    return realm
  }
}
