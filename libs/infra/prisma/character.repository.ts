import type { CharacterRow, CharacterStore, NewCharacter, NewPersonaVersion, PersonaVersionRow } from '#domains/characters/ports'
import type { Database } from './database.ts'
import { RowCountError } from './tree.repository.ts'

const selectCharacters = `SELECT c.id, c.owner_id, c.realm_id, r.kind AS realm_kind, r.name AS realm_name, c.avatar_content_id, c.demo, c.accepted_at,
    c.created_at, v.version, v.id AS persona_version_id, v.card_content_id,
    (SELECT count(*) FROM lorebooks b JOIN lore_entries e ON e.lorebook_id = b.id AND e.deleted_at IS NULL
     WHERE b.owner_id = c.owner_id AND b.character_id = c.id AND b.deleted_at IS NULL)::int AS lore_entries
  FROM characters c JOIN realms r ON r.id = c.realm_id JOIN persona_versions v ON v.id = c.current_version_id
  WHERE c.owner_id = $1::uuid AND c.deleted_at IS NULL`

/** Characters and persona versions in Postgres. */
export class CharacterRepository implements CharacterStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  list(ownerId: string, { after, limit }: { after: string | null; limit: number }): Promise<CharacterRow[]> {
    return this.#database.query<CharacterRow>(`${selectCharacters} AND ($2::uuid IS NULL OR c.id > $2::uuid) ORDER BY c.id LIMIT $3`, [
      ownerId,
      after,
      limit,
    ])
  }

  async find(ownerId: string, characterId: string): Promise<CharacterRow | null> {
    const [row] = await this.#database.query<CharacterRow>(`${selectCharacters} AND c.id = $2::uuid`, [ownerId, characterId])
    return row ?? null
  }

  async lock(ownerId: string, characterId: string): Promise<CharacterRow | null> {
    await this.#database.query('SELECT 1 FROM characters WHERE id = $1::uuid AND owner_id = $2::uuid FOR UPDATE', [characterId, ownerId])
    return this.find(ownerId, characterId)
  }

  async insert(character: NewCharacter, version: NewPersonaVersion): Promise<void> {
    await this.#database.client.characters.create({ data: { ...character, current_version_id: version.id }, select: { id: true } })
    await this.#database.client.persona_versions.create({ data: version, select: { id: true } })
  }

  async addVersion(version: NewPersonaVersion, name: string): Promise<void> {
    await this.#database.client.persona_versions.create({ data: version, select: { id: true } })
    await this.#updateOne('move to a new persona version', version.character_id, { current_version_id: version.id, name })
  }

  async versions(characterId: string): Promise<PersonaVersionRow[]> {
    return this.#database.query<PersonaVersionRow>(
      `SELECT v.id, v.version, v.origin, v.created_at, v.id = c.current_version_id AS current
       FROM persona_versions v JOIN characters c ON c.id = v.character_id WHERE v.character_id = $1::uuid ORDER BY v.version DESC`,
      [characterId],
    )
  }

  async accept(characterId: string, at: Date): Promise<void> {
    await this.#updateOne('accept character', characterId, { accepted_at: at })
  }

  async hasLiveRun(characterId: string): Promise<boolean> {
    const live = await this.#database.client.runs.findFirst({
      where: { character_id: characterId, kind: { not: 'maintenance' }, state: { in: ['queued', 'running', 'suspended'] } },
      select: { id: true },
    })
    return live !== null
  }

  async remove(characterId: string, at: Date): Promise<void> {
    await this.#updateOne('delete character', characterId, { deleted_at: at })
    await this.#database.client.lorebooks.updateMany({
      where: { character_id: characterId, deleted_at: null },
      data: { name: '', deleted_at: at },
    })
  }

  async contentIds(characterId: string): Promise<string[]> {
    const rows = await this.#database.query<{ id: string }>(
      `WITH cards AS (SELECT c.id, c.derived_from FROM persona_versions v JOIN contents c ON c.id = v.card_content_id WHERE v.character_id = $1::uuid)
       SELECT id::text FROM cards
       UNION SELECT unnest(derived_from)::text FROM cards
       UNION SELECT avatar_content_id::text FROM characters WHERE id = $1::uuid AND avatar_content_id IS NOT NULL
       UNION SELECT source_content_id::text FROM lorebooks WHERE character_id = $1::uuid AND source_content_id IS NOT NULL`,
      [characterId],
    )
    return rows.map((row) => row.id)
  }

  async #updateOne(
    what: string,
    characterId: string,
    data: { current_version_id?: string; name?: string; accepted_at?: Date; deleted_at?: Date },
  ): Promise<void> {
    const { count } = await this.#database.client.characters.updateMany({ where: { id: characterId, deleted_at: null }, data })
    if (count !== 1) throw new RowCountError(what, 1, count)
  }
}
