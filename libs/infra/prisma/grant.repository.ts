import type { GrantRow, GrantStore } from '#kernel/ports/approval-store'
import type { Database } from './database.ts'

const columns = 'owner_id, scope, scope_id, mode, classes, tools, exact, class_rules, max_cost_micros, version, set_by, set_at'

/** Grants in Postgres. */
export class GrantRepository implements GrantStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async find(ownerId: string, scope: GrantRow['scope'], scopeId: string): Promise<GrantRow | null> {
    const [row] = await this.#database.query<GrantRow>(
      `SELECT ${columns} FROM grants WHERE owner_id = $1::uuid AND scope = $2 AND scope_id = $3::uuid`,
      [ownerId, scope, scopeId],
    )
    return row ?? null
  }

  async set(grant: Omit<GrantRow, 'version'>, expectedVersion: number): Promise<GrantRow | null> {
    const [row] = await this.#database.query<GrantRow>(
      `INSERT INTO grants (owner_id, scope, scope_id, mode, classes, tools, exact, class_rules, max_cost_micros, version, set_by, set_at)
       SELECT $1::uuid, $2, $3::uuid, $4, $5::text[], $6::text[], $7::text[], $8::jsonb, $9, 1, $10::uuid, $11
       WHERE $12 = 0 OR EXISTS (SELECT 1 FROM grants WHERE owner_id = $1::uuid AND scope = $2 AND scope_id = $3::uuid)
       ON CONFLICT (owner_id, scope, scope_id) DO UPDATE
         SET mode = excluded.mode, classes = excluded.classes, tools = excluded.tools, exact = excluded.exact, class_rules = excluded.class_rules,
             max_cost_micros = excluded.max_cost_micros, version = grants.version + 1, set_by = excluded.set_by, set_at = excluded.set_at
         WHERE grants.version = $12
       RETURNING ${columns}`,
      [
        grant.owner_id,
        grant.scope,
        grant.scope_id,
        grant.mode,
        grant.classes,
        grant.tools,
        grant.exact,
        JSON.stringify(grant.class_rules),
        grant.max_cost_micros,
        grant.set_by,
        grant.set_at,
        expectedVersion,
      ],
    )
    return row ?? null
  }

  async layers({ ownerId, characterId, treeId }: Parameters<GrantStore['layers']>[0]): Promise<GrantRow[]> {
    return this.#database.query<GrantRow>(
      `SELECT ${columns} FROM grants
       WHERE owner_id = $1::uuid
         AND ((scope = 'owner' AND scope_id = $1::uuid) OR (scope = 'character' AND scope_id = $2::uuid) OR (scope = 'tree' AND scope_id = $3::uuid))
       ORDER BY CASE scope WHEN 'owner' THEN 0 WHEN 'character' THEN 1 ELSE 2 END`,
      [ownerId, characterId, treeId],
    )
  }
}
