/**
 * What the triggers of the schema see to when rows come one by one. They are off while an archive is read, since its rows tell where
 * things ended and not how they came there; then each of these must find nothing.
 */
export const restoreChecks: Readonly<Record<string, string>> = {
  'a node that hangs elsewhere than its depth says, or below an unsealed one': `
    SELECT n.id FROM nodes n JOIN nodes p ON p.id = n.parent_id WHERE NOT p.sealed OR n.depth <> p.depth + 1`,
  'a canonization of what is no complete candidate': `
    SELECT c.id FROM canonizations c JOIN nodes n ON n.id = c.to_node_id
    WHERE n.partial OR NOT n.sealed OR n.kind <> 'candidate' OR (n.deleted_at IS NOT NULL AND c.withdrawn_at IS NULL)`,
  'an answer that is not what its run left': `
    SELECT n.id FROM nodes n LEFT JOIN runs r ON r.id = n.run_id
    WHERE n.run_id IS NOT NULL AND NOT coalesce(n.id = r.candidate_id AND n.tree_id = r.tree_id AND n.parent_id = r.question_id
      AND n.sealed = (r.ended_at IS NOT NULL) AND (NOT n.sealed OR (n.content_id = n.id AND n.partial = (r.state <> 'finished'))), false)`,
  'a content of which pieces are missing': `
    SELECT c.id FROM contents c WHERE c.chunks <> (SELECT count(*) FROM content_chunks p WHERE p.content_id = c.id)`,
  'a seat behind its runs': `
    SELECT s.character_id FROM seats s JOIN runs r USING (character_id)
    WHERE r.seated AND (r.fence > s.last_fence OR r.ticket > s.last_ticket)`,
  'a heavy memory that its owner did not confirm': `
    SELECT m.id FROM memories m
    WHERE m.state = 'live' AND m.level = 'heavy' AND NOT EXISTS (
      SELECT 1 FROM confirmations f
      WHERE f.memory_id = m.id AND f.version_id = m.current_version_id AND f.owner_id = m.owner_id AND f.decision IN ('confirm', 'correct'))`,
  'a memory without a source': `
    SELECT v.id FROM memory_versions v JOIN memories m ON m.id = v.memory_id
    WHERE m.level <> 'trace' AND NOT EXISTS (SELECT 1 FROM memory_sources s WHERE s.version_id = v.id)`,
  'a memory that cites what was never canonical': `
    WITH RECURSIVE covered AS (
      SELECT c.id, c.from_node_id, c.to_node_id AS node_id FROM canonizations c WHERE c.id IN (SELECT canonization_id FROM memory_sources)
      UNION ALL
      SELECT v.id, v.from_node_id, n.parent_id
      FROM covered v JOIN nodes n ON n.id = v.node_id WHERE n.parent_id IS NOT NULL AND n.parent_id <> v.from_node_id
    )
    SELECT s.version_id FROM memory_sources s
    JOIN canonizations c ON c.id = s.canonization_id
    JOIN trees t ON t.id = c.tree_id
    JOIN nodes n ON n.id = s.node_id
    LEFT JOIN covered v ON v.id = s.canonization_id AND v.node_id = s.node_id
    WHERE v.id IS NULL OR c.owner_id <> s.owner_id OR c.character_id <> s.character_id OR c.tree_id <> s.tree_id
       OR t.realm_id <> s.realm_id OR n.kind = 'root' OR NOT n.sealed OR n.partial`,
  'a deleted memory whose text remains': `
    SELECT m.id FROM memories m JOIN memory_versions v ON v.memory_id = m.id JOIN contents c ON c.id = v.content_id
    WHERE m.state = 'deleted' AND c.erased_at IS NULL`,
  'a memory to be found by search that is none, or another one': `
    SELECT i.version_id
    FROM (SELECT version_id, live, level FROM memory_terms UNION SELECT version_id, live, level FROM memory_vectors) i
    LEFT JOIN memory_versions v ON v.id = i.version_id
    LEFT JOIN memories m ON m.id = v.memory_id AND m.current_version_id = v.id AND m.state IN ('proposed', 'live')
    LEFT JOIN contents c ON c.id = v.content_id AND c.erased_at IS NULL
    WHERE m.id IS NULL OR c.id IS NULL OR i.live <> (m.state = 'live') OR i.level <> m.level`,
  'an erased text that no erasure is recorded of': `
    SELECT c.id FROM contents c LEFT JOIN erasures e ON e.content_id = c.id WHERE c.erased_at IS NOT NULL AND e.content_id IS NULL`,
}
