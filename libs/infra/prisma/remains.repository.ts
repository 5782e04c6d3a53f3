import type { Remains, RemainsSource } from '#domains/record/after-restore'
import type { Database } from './database.ts'

/** What stands without its text after a restore. Each deletion tells of itself, so that none is found twice. */
export class RemainsRepository implements RemainsSource {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  trees(): Promise<Remains[]> {
    return this.#database.query(
      `SELECT t.id, t.owner_id FROM trees t
       WHERE t.deleted_at IS NULL AND EXISTS (
         SELECT 1 FROM nodes n JOIN erasures e ON e.content_id = coalesce(n.content_id, n.id) WHERE n.tree_id = t.id AND e.cause = 'tree_deleted')
       ORDER BY t.id`,
    )
  }

  nodes(): Promise<Remains[]> {
    return this.#database.query(
      `SELECT n.id, n.owner_id FROM nodes n JOIN contents c ON c.id = n.content_id JOIN trees t ON t.id = n.tree_id
       WHERE n.deleted_at IS NULL AND c.erased_at IS NOT NULL AND t.deleted_at IS NULL ORDER BY n.id`,
    )
  }

  memories(): Promise<Remains[]> {
    return this.#database.query(
      `SELECT m.id, m.owner_id FROM memories m JOIN memory_versions v ON v.id = m.current_version_id JOIN contents c ON c.id = v.content_id
       WHERE m.state <> 'deleted' AND c.erased_at IS NOT NULL ORDER BY m.id`,
    )
  }

  characters(): Promise<Remains[]> {
    return this.#database.query(
      `SELECT p.id, p.owner_id FROM characters p JOIN persona_versions v ON v.id = p.current_version_id JOIN contents c ON c.id = v.card_content_id
       WHERE p.deleted_at IS NULL AND c.erased_at IS NOT NULL ORDER BY p.id`,
    )
  }
}
