import { LingtaiError } from '#contracts'
import type { CreateUserPersona, UserPersonaView } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { UserPersonaRow, UserPersonaStore } from './ports.ts'

/** Who the owner is in a tree: a name and a description, versioned, so that a tree can pin one (decision 25). */
export class UserPersonasService {
  readonly #unit: UnitOfWork
  readonly #store: UserPersonaStore
  readonly #contents: ContentStore
  readonly #clock: Clock
  readonly #ids: Ids

  constructor(parts: { unit: UnitOfWork; store: UserPersonaStore; contents: ContentStore; clock: Clock; ids: Ids }) {
    this.#unit = parts.unit
    this.#store = parts.store
    this.#contents = parts.contents
    this.#clock = parts.clock
    this.#ids = parts.ids
  }

  async list(ownerId: string): Promise<UserPersonaView[]> {
    return this.#views(await this.#store.list(ownerId))
  }

  /** Throws not_found. */
  async read(ownerId: string, personaId: string): Promise<UserPersonaView> {
    const row = await this.#store.find(ownerId, personaId)
    const [view] = await this.#views(row ? [row] : [])
    if (!view) throw new LingtaiError('not_found')
    return view
  }

  async create(ownerId: string, { name, description }: CreateUserPersona): Promise<UserPersonaView> {
    return this.#unit.run(async () => {
      const content =
        description === '' ? null : await this.#contents.put({ owner_id: ownerId, media_type: 'text/plain', content: description })
      const row = { id: this.#ids.next(), version_id: this.#ids.next(), name, description_content_id: content?.id ?? null }
      await this.#store.insert({ ...row, owner_id: ownerId, created_at: this.#clock.now() })
      return { id: row.id, version_id: row.version_id, name, description }
    })
  }

  async #views(rows: readonly UserPersonaRow[]): Promise<UserPersonaView[]> {
    const contents = await this.#contents.get(rows.flatMap((row) => row.description_content_id ?? []))
    return rows.map((row) => ({
      id: row.id,
      version_id: row.version_id,
      name: row.name,
      description: (row.description_content_id === null ? null : contents.get(row.description_content_id)?.body) ?? '',
    }))
  }
}
