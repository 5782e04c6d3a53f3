import type { PersonaVersions, PinnedPersona, PinnedUserPersona } from '#domains/characters/persona-reader'
import type { Database } from './database.ts'

/** Persona versions as they are pinned. A deleted character is unknown to what begins; what runs goes on with its pinned version. */
export class PersonaRepository implements PersonaVersions {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async current(ownerId: string, characterId: string): Promise<{ versionId: string; realmId: string } | null> {
    const [row] = await this.#database.query<{ versionId: string; realmId: string }>(
      `SELECT current_version_id AS "versionId", realm_id AS "realmId" FROM characters
       WHERE id = $1::uuid AND owner_id = $2::uuid AND deleted_at IS NULL`,
      [characterId, ownerId],
    )
    return row ?? null
  }

  async pinned(ownerId: string, characterId: string, versionId: string): Promise<PinnedPersona | null> {
    const [row] = await this.#database.query<PinnedPersona>(
      `SELECT v.card_content_id AS "cardContentId", c.accepted_at IS NOT NULL AS accepted, c.deleted_at IS NOT NULL AS deleted, c.realm_id AS "realmId"
       FROM persona_versions v JOIN characters c ON c.id = v.character_id
       WHERE v.id = $1::uuid AND v.character_id = $2::uuid AND v.owner_id = $3::uuid`,
      [versionId, characterId, ownerId],
    )
    return row ?? null
  }

  async user(ownerId: string, versionId: string): Promise<PinnedUserPersona | null> {
    const [row] = await this.#database.query<PinnedUserPersona>(
      `SELECT name, description_content_id AS "descriptionContentId" FROM user_persona_versions WHERE id = $1::uuid AND owner_id = $2::uuid`,
      [versionId, ownerId],
    )
    return row ?? null
  }

  async realmExists(ownerId: string, realmId: string): Promise<boolean> {
    const rows = await this.#database.query('SELECT 1 FROM realms WHERE id = $1::uuid AND owner_id = $2::uuid', [realmId, ownerId])
    return rows.length > 0
  }
}
