import type { CapabilityClass } from '#contracts'
import type { OfferedTool, SealedHeaders, SourceToolRow, ToolSourceRow, ToolSourceStore } from '#domains/tools/ports'
import type { Database } from './database.ts'
import { RowCountError } from './tree.repository.ts'

const sources = `SELECT id, owner_id, name, kind, settings, created_at FROM tool_sources
  WHERE owner_id = $1::uuid AND deleted_at IS NULL AND ($2::uuid IS NULL OR id = $2::uuid) ORDER BY name`

/** Tool sources in Postgres. */
export class ToolSourcesRepository implements ToolSourceStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async lockOwner(ownerId: string): Promise<void> {
    await this.#database.query('SELECT id FROM owners WHERE id = $1::uuid FOR NO KEY UPDATE', [ownerId])
  }

  list(ownerId: string): Promise<ToolSourceRow[]> {
    return this.#database.query<ToolSourceRow>(sources, [ownerId, null])
  }

  async find(ownerId: string, sourceId: string): Promise<ToolSourceRow | null> {
    const [row] = await this.#database.query<ToolSourceRow>(sources, [ownerId, sourceId])
    return row ?? null
  }

  async insert(source: ToolSourceRow, secret: SealedHeaders | null): Promise<void> {
    await this.#database.execute(
      `INSERT INTO tool_sources (id, owner_id, name, kind, settings, created_at) VALUES ($1::uuid, $2::uuid, $3, $4, $5::jsonb, $6::timestamptz)`,
      [source.id, source.owner_id, source.name, source.kind, JSON.stringify(source.settings), source.created_at],
    )
    if (!secret) return
    await this.#database.execute(
      'INSERT INTO tool_source_secrets (source_id, owner_id, key_id, sealed) VALUES ($1::uuid, $2::uuid, $3, $4)',
      [source.id, source.owner_id, secret.key_id, secret.sealed],
    )
  }

  async remove(ownerId: string, sourceId: string, at: Date): Promise<void> {
    const removed = await this.#database.execute(
      'UPDATE tool_sources SET deleted_at = $3::timestamptz WHERE owner_id = $1::uuid AND id = $2::uuid AND deleted_at IS NULL',
      [ownerId, sourceId, at],
    )
    if (removed !== 1) throw new RowCountError('tool_sources', 1, removed)
    await this.#database.execute('DELETE FROM tool_source_secrets WHERE source_id = $1::uuid', [sourceId])
    await this.#database.execute('UPDATE tool_source_tools SET accepted_version = NULL, capability = NULL WHERE source_id = $1::uuid', [
      sourceId,
    ])
  }

  async headers(ownerId: string, sourceId: string): Promise<SealedHeaders | null> {
    const [row] = await this.#database.query<SealedHeaders>(
      'SELECT key_id, sealed FROM tool_source_secrets WHERE owner_id = $1::uuid AND source_id = $2::uuid',
      [ownerId, sourceId],
    )
    return row ?? null
  }

  tools(ownerId: string, sourceId: string | null): Promise<SourceToolRow[]> {
    return this.#database.query<SourceToolRow>(
      `SELECT t.source_id, t.name, t.declaration, t.version, t.accepted_version, t.capability, t.missing
       FROM tool_source_tools t JOIN tool_sources s ON s.id = t.source_id
       WHERE t.owner_id = $1::uuid AND s.deleted_at IS NULL AND ($2::uuid IS NULL OR t.source_id = $2::uuid)
       ORDER BY t.source_id, t.name`,
      [ownerId, sourceId],
    )
  }

  async putTools(
    { id, owner_id: ownerId }: Pick<ToolSourceRow, 'id' | 'owner_id'>,
    offered: readonly OfferedTool[],
    at: Date,
  ): Promise<void> {
    for (const tool of offered) {
      await this.#database.execute(
        `INSERT INTO tool_source_tools (source_id, name, owner_id, declaration, version, seen_at)
         VALUES ($1::uuid, $2, $3::uuid, $4::jsonb, $5, $6::timestamptz)
         ON CONFLICT (source_id, name)
         DO UPDATE SET declaration = excluded.declaration, version = excluded.version, seen_at = excluded.seen_at, missing = false`,
        [id, tool.name, ownerId, JSON.stringify(tool.declaration), tool.version, at],
      )
    }
    await this.#database.execute(
      'UPDATE tool_source_tools SET missing = true WHERE source_id = $1::uuid AND NOT missing AND name <> ALL ($2::text[])',
      [id, offered.map((tool) => tool.name)],
    )
  }

  async accept(sourceId: string, tools: readonly { name: string; version: string; capability: CapabilityClass | null }[]): Promise<void> {
    await this.#database.execute('UPDATE tool_source_tools SET accepted_version = NULL, capability = NULL WHERE source_id = $1::uuid', [
      sourceId,
    ])
    for (const { name, version, capability } of tools) {
      const accepted = await this.#database.execute(
        `UPDATE tool_source_tools SET accepted_version = version, capability = $4
         WHERE source_id = $1::uuid AND name = $2 AND version = $3 AND NOT missing`,
        [sourceId, name, version, capability],
      )
      if (accepted !== 1) throw new RowCountError('tool_source_tools', 1, accepted)
    }
  }

  /** Whether anything is kept that only its key can read (decision 38). */
  async hasSecrets(): Promise<boolean> {
    return (await this.#database.query('SELECT 1 FROM tool_source_secrets LIMIT 1')).length > 0
  }
}
