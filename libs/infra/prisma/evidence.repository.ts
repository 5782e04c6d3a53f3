import type { Evidence, EvidenceNode } from '#contracts'
import type { EvidenceSource } from '#domains/record/evidence.service'
import type { Database } from './database.ts'

type CanonRow = { id: string; from_node_id: string; to_node_id: string; created_at: Date; withdrawn_at: Date | null }

/** What evidence shows of a run's tree, and which anchor covers its stream. */
export class EvidenceRepository implements EvidenceSource {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async node(ownerId: string, nodeId: string): Promise<EvidenceNode | null> {
    const [node] = await this.#database.query<EvidenceNode>(
      `SELECT id, parent_id, kind, role, author, trust, sealed, partial, deleted_at IS NOT NULL AS deleted, content_id, run_id
       FROM nodes WHERE owner_id = $1::uuid AND id = $2::uuid`,
      [ownerId, nodeId],
    )
    return node ?? null
  }

  async lineage(ownerId: string, nodeId: string): Promise<string[]> {
    const rows = await this.#database.query<{ id: string }>(
      `WITH RECURSIVE path AS (
         SELECT id, parent_id, depth FROM nodes WHERE owner_id = $1::uuid AND id = $2::uuid
         UNION ALL
         SELECT n.id, n.parent_id, n.depth FROM nodes n JOIN path p ON n.id = p.parent_id)
       SELECT id FROM path ORDER BY depth`,
      [ownerId, nodeId],
    )
    return rows.map((row) => row.id)
  }

  async canonizations(ownerId: string, nodeId: string): Promise<Evidence['statement']['canonizations']> {
    const rows = await this.#database.query<CanonRow>(
      `WITH RECURSIVE below AS (
         SELECT c.id, c.from_node_id, c.to_node_id AS node_id
         FROM canonizations c JOIN nodes n ON n.tree_id = c.tree_id WHERE n.id = $2::uuid AND c.owner_id = $1::uuid
         UNION ALL
         SELECT b.id, b.from_node_id, n.parent_id FROM below b JOIN nodes n ON n.id = b.node_id
         WHERE b.node_id <> $2::uuid AND n.parent_id IS NOT NULL AND n.parent_id <> b.from_node_id)
       SELECT c.id, c.from_node_id, c.to_node_id, c.created_at, c.withdrawn_at
       FROM canonizations c WHERE c.id IN (SELECT id FROM below WHERE node_id = $2::uuid) ORDER BY c.created_at, c.id`,
      [ownerId, nodeId],
    )
    return rows.map((row) => ({
      ...row,
      created_at: row.created_at.toISOString(),
      withdrawn_at: row.withdrawn_at?.toISOString() ?? null,
    }))
  }

  async lastAnchorOf(stream: string): Promise<number | null> {
    const [row] = await this.#database.query<{ seq: number }>(
      'SELECT anchor_seq AS seq FROM anchor_heads WHERE stream = $1 ORDER BY anchor_seq DESC LIMIT 1',
      [stream],
    )
    return row?.seq ?? null
  }
}
