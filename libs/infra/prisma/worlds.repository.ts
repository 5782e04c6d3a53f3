import type { LorebookRow, LorebookStore, NewLorebook, RealmRow, RealmStore, UserPersonaRow, UserPersonaStore } from '#domains/worlds/ports'
import type { Database } from './database.ts'
import { RowCountError } from './tree.repository.ts'

const realmColumns = { id: true, kind: true, name: true } as const

/** Realms in Postgres. */
export class RealmRepository implements RealmStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  list(ownerId: string): Promise<RealmRow[]> {
    return this.#database.client.realms.findMany({ where: { owner_id: ownerId }, orderBy: { id: 'asc' }, select: realmColumns })
  }

  find(ownerId: string, realmId: string): Promise<RealmRow | null> {
    return this.#database.client.realms.findFirst({ where: { id: realmId, owner_id: ownerId }, select: realmColumns })
  }

  real(ownerId: string): Promise<RealmRow | null> {
    return this.#database.client.realms.findFirst({ where: { owner_id: ownerId, kind: 'real' }, select: realmColumns })
  }

  async insert(realm: Parameters<RealmStore['insert']>[0]): Promise<void> {
    await this.#database.client.realms.create({ data: realm, select: { id: true } })
  }
}

const newestPersonas = `SELECT p.id, v.id AS version_id, v.name, v.description_content_id
  FROM user_personas p
  JOIN LATERAL (SELECT id, name, description_content_id FROM user_persona_versions WHERE persona_id = p.id ORDER BY version DESC LIMIT 1) v ON true
  WHERE p.owner_id = $1::uuid AND p.deleted_at IS NULL AND ($2::uuid IS NULL OR p.id = $2::uuid)
  ORDER BY p.id`

/** User personas in Postgres. */
export class UserPersonaRepository implements UserPersonaStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  list(ownerId: string): Promise<UserPersonaRow[]> {
    return this.#database.query<UserPersonaRow>(newestPersonas, [ownerId, null])
  }

  async find(ownerId: string, personaId: string): Promise<UserPersonaRow | null> {
    const [row] = await this.#database.query<UserPersonaRow>(newestPersonas, [ownerId, personaId])
    return row ?? null
  }

  async insert(persona: Parameters<UserPersonaStore['insert']>[0]): Promise<void> {
    const { client } = this.#database
    await client.user_personas.create({
      data: { id: persona.id, owner_id: persona.owner_id, created_at: persona.created_at },
      select: { id: true },
    })
    await client.user_persona_versions.create({
      data: {
        id: persona.version_id,
        owner_id: persona.owner_id,
        persona_id: persona.id,
        version: 1,
        name: persona.name,
        description_content_id: persona.description_content_id,
        created_at: persona.created_at,
      },
      select: { id: true },
    })
  }
}

const lorebooks = `SELECT b.id, b.character_id, b.name, b.source_content_id, b.created_at,
    (SELECT count(*) FROM lore_entries e WHERE e.lorebook_id = b.id AND e.deleted_at IS NULL)::int AS entries
  FROM lorebooks b
  WHERE b.owner_id = $1::uuid AND b.deleted_at IS NULL AND ($2::uuid IS NULL OR b.id = $2::uuid)
  ORDER BY b.id`

/** Entries in one statement. */
const BATCH_ROWS = 2_000

/** Lorebooks in Postgres. */
export class LorebookRepository implements LorebookStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  list(ownerId: string): Promise<LorebookRow[]> {
    return this.#database.query<LorebookRow>(lorebooks, [ownerId, null])
  }

  async find(ownerId: string, lorebookId: string): Promise<LorebookRow | null> {
    const [row] = await this.#database.query<LorebookRow>(lorebooks, [ownerId, lorebookId])
    return row ?? null
  }

  async ownsCharacter(ownerId: string, characterId: string): Promise<boolean> {
    const found = await this.#database.client.characters.findFirst({
      where: { id: characterId, owner_id: ownerId, deleted_at: null },
      select: { id: true },
    })
    return found !== null
  }

  async insert({ entries, ...book }: NewLorebook): Promise<void> {
    await this.#database.client.lorebooks.create({ data: book, select: { id: true } })
    for (let from = 0; from < entries.length; from += BATCH_ROWS) {
      const batch = entries.slice(from, from + BATCH_ROWS)
      const ids = batch.map((entry) => entry.id)
      const versionIds = batch.map((entry) => entry.version_id)
      const written = await this.#database.execute(
        `INSERT INTO lore_entries (id, owner_id, lorebook_id, list_position, current_version_id)
         SELECT e.id, $1::uuid, $2::uuid, $3 + e.position - 1, e.version_id
         FROM unnest($4::uuid[], $5::uuid[]) WITH ORDINALITY AS e(id, version_id, position)`,
        [book.owner_id, book.id, from, ids, versionIds],
      )
      if (written !== batch.length) throw new RowCountError('insert lore entries', batch.length, written)
      const versions = await this.#database.execute(
        `INSERT INTO lore_entry_versions (id, owner_id, entry_id, version, entry_content_id, created_at)
         SELECT v.id, $1::uuid, v.entry_id, 1, v.content_id, $2
         FROM unnest($3::uuid[], $4::uuid[], $5::uuid[]) AS v(id, entry_id, content_id)`,
        [book.owner_id, book.created_at, versionIds, ids, batch.map((entry) => entry.content_id)],
      )
      if (versions !== batch.length) throw new RowCountError('insert lore entry versions', batch.length, versions)
    }
  }
}
