import type { CanonizationRow, CitationRow, NewNode, NodeRow, PathNode, TreeRow, TreeStore } from '#domains/mirror-tree/ports'
import { bodyOf } from './content-body.ts'
import type { Database } from './database.ts'

const nodeColumns = `n.id, n.tree_id, n.owner_id, n.parent_id, n.kind, n.role, n.seq, n.depth, n.sealed, n.partial, n.speaker_character_id,
  n.speaker_name, n.author, n.trust, n.content_id, n.run_id, n.edited_from_id, n.zone, n.at, n.deleted_at IS NOT NULL AS deleted`
const contentColumns = `CASE WHEN n.deleted_at IS NULL THEN ${bodyOf('c')} END AS body, CASE WHEN n.deleted_at IS NULL THEN c.layout END AS layout,
  CASE WHEN n.deleted_at IS NULL THEN c.salt END AS salt, c.digest`
const treeColumns = `t.id, t.owner_id, t.title, t.realm_id, r.kind AS realm_kind, r.name AS realm_name, t.root_node_id, t.head_node_id, t.revision,
  t.node_seq, t.zone, t.user_persona_version_id, t.created_at, t.updated_at,
  ARRAY(SELECT tc.character_id FROM tree_characters tc WHERE tc.tree_id = t.id ORDER BY tc.character_id)::text[] AS character_ids`
const citationColumns = `q.id, q.node_id, q.source_tree_id, q.source_node_id, q.range_from, q.range_to, q.list_position, q.snapshot_content_id,
  ${bodyOf('c')} AS snapshot, c.digest, s.trust AS source_trust`
const canonizationColumns = 'id, owner_id, tree_id, character_id, from_node_id, to_node_id, created_at, withdrawn_at'

/** A row that must have been written was not (decision 7: each write asserts its row count). */
export class RowCountError extends Error {
  constructor(what: string, expected: number, actual: number) {
    super(`${what}: ${actual} rows instead of ${expected}`)
    this.name = 'RowCountError'
  }
}

/**
 * The mirror tree in Postgres: parent pointers and one recursive query from the leaf back (decision 24); nothing depends on the size of the
 * tree but the outline, which is paged.
 */
export class TreeRepository implements TreeStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insertTree(tree: Parameters<TreeStore['insertTree']>[0]): Promise<void> {
    await this.#write(
      'insert tree',
      `INSERT INTO trees (id, owner_id, title, realm_id, root_node_id, head_node_id, user_persona_version_id, zone)
       VALUES ($1::uuid, $2::uuid, $3, $4::uuid, $5::uuid, $5::uuid, $6::uuid, $7)`,
      [tree.id, tree.owner_id, tree.title, tree.realm_id, tree.root_node_id, tree.user_persona_version_id, tree.zone],
    )
    for (const characterId of tree.character_ids) {
      await this.#write(
        'insert tree character',
        'INSERT INTO tree_characters (tree_id, character_id, owner_id) VALUES ($1::uuid, $2::uuid, $3::uuid)',
        [tree.id, characterId, tree.owner_id],
      )
    }
    await this.#write(
      'insert root',
      `INSERT INTO nodes (id, tree_id, owner_id, parent_id, kind, role, seq, depth, sealed, author, trust, at)
       VALUES ($1::uuid, $2::uuid, $3::uuid, NULL, 'root', 'none', 0, 0, true, 'system', 'trusted', now())`,
      [tree.root_node_id, tree.id, tree.owner_id],
    )
  }

  async find(ownerId: string, treeId: string): Promise<TreeRow | null> {
    const [tree] = await this.#database.query<TreeRow>(
      `SELECT ${treeColumns} FROM trees t JOIN realms r ON r.id = t.realm_id WHERE t.id = $1::uuid AND t.owner_id = $2::uuid AND t.deleted_at IS NULL`,
      [treeId, ownerId],
    )
    return tree ?? null
  }

  async lock(ownerId: string, treeId: string): Promise<TreeRow | null> {
    // Sent together: the second statement begins, and sees what there is, once the first has the lock.
    const [, tree] = await Promise.all([
      this.#database.query('SELECT 1 FROM trees WHERE id = $1::uuid AND owner_id = $2::uuid FOR UPDATE', [treeId, ownerId]),
      this.find(ownerId, treeId),
    ])
    return tree
  }

  async list(ownerId: string, options: Parameters<TreeStore['list']>[1]): Promise<TreeRow[]> {
    return this.#database.query<TreeRow>(
      `SELECT ${treeColumns} FROM trees t JOIN realms r ON r.id = t.realm_id
       WHERE t.owner_id = $1::uuid AND t.deleted_at IS NULL
         AND ($2::uuid IS NULL OR EXISTS (SELECT 1 FROM tree_characters tc WHERE tc.tree_id = t.id AND tc.character_id = $2::uuid))
         AND ($3::timestamptz IS NULL OR (date_trunc('milliseconds', t.updated_at), t.id) < ($3::timestamptz, $4::uuid))
       ORDER BY date_trunc('milliseconds', t.updated_at) DESC, t.id DESC LIMIT $5`,
      [ownerId, options.characterId ?? null, options.before?.updatedAt ?? null, options.before?.id ?? null, options.limit],
    )
  }

  async rename(treeId: string, title: string): Promise<void> {
    await this.#write('rename tree', 'UPDATE trees SET title = $2, revision = revision + 1 WHERE id = $1::uuid', [treeId, title])
  }

  async tombstoneTree(treeId: string): Promise<void> {
    await this.#write('tombstone tree', `UPDATE trees SET title = '', deleted_at = now() WHERE id = $1::uuid AND deleted_at IS NULL`, [
      treeId,
    ])
  }

  async insertNode(node: NewNode): Promise<number> {
    const [row] = await this.#database.query<{ seq: number }>(
      `WITH parent AS (SELECT depth FROM nodes WHERE id = $4::uuid AND tree_id = $2::uuid AND owner_id = $3::uuid),
       tree AS (
         UPDATE trees SET node_seq = node_seq + 1, updated_at = now() WHERE id = $2::uuid AND owner_id = $3::uuid AND deleted_at IS NULL
         RETURNING node_seq)
       INSERT INTO nodes (id, tree_id, owner_id, parent_id, kind, role, seq, depth, sealed, partial, speaker_character_id, speaker_name, author,
                          content_id, run_id, edited_from_id, zone, at, trust)
       SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5, $6, tree.node_seq, parent.depth + 1, $7, $8, $9::uuid, $10, $11, $12::uuid, $13::uuid,
              $14::uuid, $15, $16, $17
       FROM tree, parent RETURNING seq`,
      [
        node.id,
        node.tree_id,
        node.owner_id,
        node.parent_id,
        node.kind,
        node.role,
        node.sealed,
        node.partial,
        node.speaker_character_id,
        node.speaker_name,
        node.author,
        node.content_id,
        node.run_id,
        node.edited_from_id,
        node.zone,
        node.at,
        node.trust,
      ],
    )
    if (!row) throw new RowCountError('insert node', 1, 0)
    return row.seq
  }

  async sealNode(node: Parameters<TreeStore['sealNode']>[0]): Promise<{ erased: boolean }> {
    const [sealed] = await this.#database.query<{ erased: boolean }>(
      `UPDATE nodes SET sealed = true, partial = $3, content_id = $2::uuid,
         trust = CASE WHEN trust_rank($4) < trust_rank(trust) THEN $4 ELSE trust END
       WHERE id = $1::uuid AND NOT sealed
       RETURNING EXISTS (SELECT 1 FROM contents c WHERE c.id = $2::uuid AND c.erased_at IS NOT NULL) AS erased`,
      [node.id, node.content_id, node.partial, node.trust],
    )
    if (!sealed) throw new RowCountError('seal node', 1, 0)
    return sealed
  }

  async hasBrokenRecord(treeId: string, nodeId: string): Promise<boolean> {
    const [row] = await this.#database.query<{ broken: boolean }>(hasBrokenRecordSql, [treeId, nodeId])
    return row?.broken === true
  }

  async tombstoneNodes(nodeIds: readonly string[]): Promise<void> {
    if (nodeIds.length === 0) return
    const rows = await this.#database.execute('UPDATE nodes SET deleted_at = now() WHERE id = ANY ($1::uuid[]) AND deleted_at IS NULL', [
      [...nodeIds],
    ])
    if (rows !== nodeIds.length) throw new RowCountError('tombstone nodes', nodeIds.length, rows)
  }

  async node(ownerId: string, nodeId: string): Promise<PathNode | null> {
    return (await this.nodes(ownerId, [nodeId]))[0] ?? null
  }

  async nodes(ownerId: string, nodeIds: readonly string[]): Promise<PathNode[]> {
    if (nodeIds.length === 0) return []
    return this.#database.query<PathNode>(
      `SELECT ${nodeColumns}, ${contentColumns} FROM nodes n JOIN trees t ON t.id = n.tree_id LEFT JOIN contents c ON c.id = n.content_id
       WHERE n.id = ANY ($1::uuid[]) AND n.owner_id = $2::uuid AND t.deleted_at IS NULL ORDER BY n.seq`,
      [[...nodeIds], ownerId],
    )
  }

  async path(ownerId: string, leafId: string, limit: number): Promise<PathNode[]> {
    return this.#database.query<PathNode>(
      `WITH RECURSIVE path AS (
         SELECT n.id, n.parent_id, 1 AS hop FROM nodes n WHERE n.id = $1::uuid AND n.owner_id = $2::uuid
         UNION ALL
         SELECT n.id, n.parent_id, p.hop + 1 FROM path p JOIN nodes n ON n.id = p.parent_id WHERE p.hop < $3)
       SELECT ${nodeColumns}, ${contentColumns} FROM path p JOIN nodes n ON n.id = p.id LEFT JOIN contents c ON c.id = n.content_id
       WHERE n.kind <> 'root' ORDER BY n.depth`,
      [leafId, ownerId, limit],
    )
  }

  async range(ownerId: string, { fromId, toId }: Parameters<TreeStore['range']>[1]): Promise<PathNode[]> {
    const nodes = await this.#database.query<PathNode>(
      `WITH RECURSIVE path AS (
         SELECT n.id, n.parent_id, n.depth FROM nodes n WHERE n.id = $2::uuid AND n.owner_id = $3::uuid
         UNION ALL
         SELECT n.id, n.parent_id, n.depth FROM path p JOIN nodes n ON n.id = p.parent_id
         WHERE p.depth > (SELECT f.depth FROM nodes f WHERE f.id = $1::uuid AND f.owner_id = $3::uuid))
       SELECT ${nodeColumns}, ${contentColumns} FROM path p JOIN nodes n ON n.id = p.id LEFT JOIN contents c ON c.id = n.content_id
       ORDER BY n.depth`,
      [fromId, toId, ownerId],
    )
    return nodes[0]?.id === fromId ? nodes : []
  }

  async pathIds(ownerId: string, leafId: string): Promise<string[]> {
    const rows = await this.#database.query<{ id: string }>(
      `WITH RECURSIVE path AS (
         SELECT n.id, n.parent_id, n.depth FROM nodes n WHERE n.id = $1::uuid AND n.owner_id = $2::uuid
         UNION ALL SELECT n.id, n.parent_id, n.depth FROM path p JOIN nodes n ON n.id = p.parent_id)
       SELECT id FROM path WHERE parent_id IS NOT NULL ORDER BY depth`,
      [leafId, ownerId],
    )
    return rows.map((row) => row.id)
  }

  async isAncestorOrSelf(ancestorId: string, nodeId: string): Promise<boolean> {
    const rows = await this.#database.query(
      `WITH RECURSIVE path AS (
         SELECT id, parent_id FROM nodes WHERE id = $2::uuid
         UNION ALL SELECT n.id, n.parent_id FROM path p JOIN nodes n ON n.id = p.parent_id WHERE p.id <> $1::uuid)
       SELECT 1 FROM path WHERE id = $1::uuid`,
      [ancestorId, nodeId],
    )
    return rows.length > 0
  }

  async children(parentIds: readonly string[]): ReturnType<TreeStore['children']> {
    if (parentIds.length === 0) return []
    return this.#database.query(
      'SELECT id, parent_id, kind, run_id, sealed FROM nodes WHERE parent_id = ANY ($1::uuid[]) AND deleted_at IS NULL ORDER BY seq',
      [[...parentIds]],
    )
  }

  async livingAncestor(nodeId: string): Promise<string> {
    const [row] = await this.#database.query<{ id: string }>(
      `WITH RECURSIVE up AS (
         SELECT p.id, p.parent_id, p.deleted_at FROM nodes n JOIN nodes p ON p.id = n.parent_id WHERE n.id = $1::uuid
         UNION ALL SELECT p.id, p.parent_id, p.deleted_at FROM up JOIN nodes p ON p.id = up.parent_id WHERE up.deleted_at IS NOT NULL)
       SELECT id FROM up WHERE deleted_at IS NULL`,
      [nodeId],
    )
    if (!row) throw new RowCountError('living ancestor', 1, 0)
    return row.id
  }

  async outline(treeId: string, { afterSeq, limit }: { afterSeq: number; limit: number }): Promise<(NodeRow & { label: string })[]> {
    return this.#database.query(
      `SELECT ${nodeColumns}, coalesce(CASE WHEN n.deleted_at IS NULL THEN left(${bodyOf('c')}, 60) END, '') AS label
       FROM nodes n LEFT JOIN contents c ON c.id = n.content_id WHERE n.tree_id = $1::uuid AND n.seq > $2 ORDER BY n.seq LIMIT $3`,
      [treeId, afterSeq, limit],
    )
  }

  async livingNodes(treeId: string): ReturnType<TreeStore['livingNodes']> {
    return this.#database.query(
      `SELECT id, content_id, run_id, sealed FROM nodes WHERE tree_id = $1::uuid AND deleted_at IS NULL AND kind <> 'root' ORDER BY seq`,
      [treeId],
    )
  }

  async hasLiveRun(treeId: string, questionId?: string): Promise<boolean> {
    const rows = await this.#database.query(
      `SELECT 1 FROM runs WHERE tree_id = $1::uuid AND ($2::uuid IS NULL OR question_id = $2::uuid) AND state IN ('queued', 'running', 'suspended') LIMIT 1`,
      [treeId, questionId ?? null],
    )
    return rows.length > 0
  }

  async interjections(runs: Parameters<TreeStore['interjections']>[0]): Promise<string[]> {
    const rows = await this.#database.query<{ content_id: string }>(
      `SELECT c.content_id FROM run_commands c JOIN runs r ON r.id = c.run_id
       WHERE c.content_id IS NOT NULL AND (r.id = $1::uuid OR r.tree_id = $2::uuid OR (r.question_id = $3::uuid AND NOT EXISTS (
         SELECT 1 FROM nodes n WHERE n.id = r.candidate_id AND n.deleted_at IS NULL)))`,
      ['runId' in runs ? runs.runId : null, 'treeId' in runs ? runs.treeId : null, 'unansweredUnder' in runs ? runs.unansweredUnder : null],
    )
    return rows.map((row) => row.content_id)
  }

  async countNodes(treeId: string): Promise<number> {
    const [row] = await this.#database.query<{ count: number }>('SELECT node_seq AS count FROM trees WHERE id = $1::uuid', [treeId])
    return row?.count ?? 0
  }

  async adopt(treeId: string, parentId: string, childId: string): Promise<void> {
    await this.#write(
      'adopt',
      `INSERT INTO adoptions (tree_id, parent_id, child_id) VALUES ($1::uuid, $2::uuid, $3::uuid)
       ON CONFLICT (tree_id, parent_id) DO UPDATE SET child_id = excluded.child_id`,
      [treeId, parentId, childId],
    )
  }

  async adoptedLeaf(treeId: string, nodeId: string): Promise<string> {
    const [leaf] = await this.#database.query<{ id: string }>(
      `WITH RECURSIVE down AS (
         SELECT $2::uuid AS id, 0 AS hop
         UNION ALL
         SELECT a.child_id, d.hop + 1 FROM down d JOIN adoptions a ON a.tree_id = $1::uuid AND a.parent_id = d.id)
       SELECT d.id FROM down d JOIN nodes n ON n.id = d.id WHERE n.deleted_at IS NULL ORDER BY d.hop DESC LIMIT 1`,
      [treeId, nodeId],
    )
    return leaf?.id ?? nodeId
  }

  async adoptedChild(treeId: string, parentId: string): Promise<string | null> {
    const [row] = await this.#database.query<{ child_id: string }>(
      'SELECT child_id FROM adoptions WHERE tree_id = $1::uuid AND parent_id = $2::uuid',
      [treeId, parentId],
    )
    return row?.child_id ?? null
  }

  async moveHead(treeId: string, headId: string): Promise<number> {
    const [row] = await this.#database.query<{ revision: number }>(
      'UPDATE trees SET head_node_id = $2::uuid, revision = revision + 1, updated_at = now() WHERE id = $1::uuid RETURNING revision',
      [treeId, headId],
    )
    if (!row) throw new RowCountError('move head', 1, 0)
    return row.revision
  }

  async insertCitation(citation: Parameters<TreeStore['insertCitation']>[0]): Promise<void> {
    await this.#write(
      'insert citation',
      `INSERT INTO citations (id, owner_id, node_id, source_tree_id, source_node_id, range_from, range_to, list_position, snapshot_content_id)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::uuid, $6, $7, $8, $9::uuid)`,
      [
        citation.id,
        citation.owner_id,
        citation.node_id,
        citation.source_tree_id,
        citation.source_node_id,
        citation.range_from,
        citation.range_to,
        citation.list_position,
        citation.snapshot_content_id,
      ],
    )
  }

  async citations(nodeIds: readonly string[]): Promise<CitationRow[]> {
    if (nodeIds.length === 0) return []
    return this.#database.query<CitationRow>(
      `SELECT ${citationColumns} FROM citations q JOIN contents c ON c.id = q.snapshot_content_id JOIN nodes s ON s.id = q.source_node_id
       WHERE q.node_id = ANY ($1::uuid[]) ORDER BY q.node_id, q.list_position`,
      [[...nodeIds]],
    )
  }

  async insertCanonization(row: Parameters<TreeStore['insertCanonization']>[0]): Promise<CanonizationRow> {
    const [inserted] = await this.#database.query<CanonizationRow>(
      `INSERT INTO canonizations (id, owner_id, tree_id, character_id, from_node_id, to_node_id)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::uuid, $6::uuid) RETURNING ${canonizationColumns}`,
      [row.id, row.owner_id, row.tree_id, row.character_id, row.from_node_id, row.to_node_id],
    )
    if (!inserted) throw new RowCountError('insert canonization', 1, 0)
    return inserted
  }

  async canonizations(treeId: string): Promise<CanonizationRow[]> {
    return this.#database.query<CanonizationRow>(`SELECT ${canonizationColumns} FROM canonizations WHERE tree_id = $1::uuid ORDER BY id`, [
      treeId,
    ])
  }

  async canonization(ownerId: string, id: string): Promise<CanonizationRow | null> {
    const [row] = await this.#database.query<CanonizationRow>(
      `SELECT ${canonizationColumns} FROM canonizations WHERE id = $1::uuid AND owner_id = $2::uuid`,
      [id, ownerId],
    )
    return row ?? null
  }

  async withdraw(id: string): Promise<void> {
    await this.#write('withdraw', 'UPDATE canonizations SET withdrawn_at = now() WHERE id = $1::uuid AND withdrawn_at IS NULL', [id])
  }

  async canonicalNodeIds(treeId: string): Promise<string[]> {
    const rows = await this.#database.query<{ id: string }>(
      `WITH RECURSIVE canon AS (
         SELECT n.id, n.parent_id, n.partial, c.from_node_id FROM canonizations c JOIN nodes n ON n.id = c.to_node_id
         WHERE c.tree_id = $1::uuid AND c.withdrawn_at IS NULL
         UNION
         SELECT n.id, n.parent_id, n.partial, canon.from_node_id FROM canon JOIN nodes n ON n.id = canon.parent_id
         WHERE canon.parent_id <> canon.from_node_id)
       SELECT DISTINCT id FROM canon WHERE NOT partial`,
      [treeId],
    )
    return rows.map((row) => row.id)
  }

  async #write(what: string, sql: string, params: Parameters<Database['execute']>[1]): Promise<void> {
    const rows = await this.#database.execute(sql, params)
    if (rows !== 1) throw new RowCountError(what, 1, rows)
  }
}

/** Hardly ever is a stream quarantined: then the index on those is all that is read. */
const hasBrokenRecordSql = `
WITH RECURSIVE broken AS MATERIALIZED (
  SELECT s.stream FROM streams s WHERE s.quarantined_at IS NOT NULL
), answers AS MATERIALIZED (
  SELECT r.candidate_id AS id FROM broken b JOIN runs r ON b.stream = 'run:' || r.id WHERE r.tree_id = $1::uuid
), path AS (
  SELECT n.id, n.parent_id FROM nodes n WHERE n.id = $2::uuid AND n.tree_id = $1::uuid AND EXISTS (SELECT 1 FROM answers)
  UNION ALL
  SELECT n.id, n.parent_id FROM path p JOIN nodes n ON n.id = p.parent_id
)
SELECT EXISTS (SELECT 1 FROM broken WHERE stream = 'tree:' || $1) OR EXISTS (SELECT 1 FROM path JOIN answers USING (id)) AS broken`
