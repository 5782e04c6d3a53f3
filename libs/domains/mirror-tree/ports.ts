import type { NodeAuthor, NodeKind, NodeRole, Trust } from '#contracts'
import type { ContentLayout } from '#kernel/ports/content-store'

export type TreeRow = {
  id: string
  owner_id: string
  title: string
  realm_id: string
  realm_kind: string
  realm_name: string
  root_node_id: string
  head_node_id: string
  revision: number
  node_seq: number
  zone: string
  user_persona_version_id: string | null
  character_ids: string[]
  created_at: Date
  updated_at: Date
}

export type NodeRow = {
  id: string
  tree_id: string
  owner_id: string
  parent_id: string | null
  kind: NodeKind
  role: NodeRole
  seq: number
  depth: number
  sealed: boolean
  partial: boolean
  speaker_character_id: string | null
  speaker_name: string | null
  author: NodeAuthor
  trust: Trust
  content_id: string | null
  run_id: string | null
  edited_from_id: string | null
  zone: string | null
  at: Date
  deleted: boolean
}

/** A node with its content; body is null where there is none, or none any more. */
export type PathNode = NodeRow & { body: string | null; layout: ContentLayout | null; salt: Uint8Array | null; digest: Uint8Array | null }

export type NewNode = Omit<NodeRow, 'seq' | 'depth' | 'deleted' | 'at'> & { at: Date }

export type CitationRow = {
  id: string
  node_id: string
  source_tree_id: string
  source_node_id: string
  range_from: number
  range_to: number
  list_position: number
  snapshot_content_id: string
  snapshot: string | null
  digest: Uint8Array
  source_trust: Trust
}

export type CanonizationRow = {
  id: string
  owner_id: string
  tree_id: string
  character_id: string
  from_node_id: string
  to_node_id: string
  created_at: Date
  withdrawn_at: Date | null
}

/** Trees, nodes, adoptions, canon and citations. Every read is scoped to an owner. */
export interface TreeStore {
  insertTree(tree: {
    id: string
    owner_id: string
    title: string
    realm_id: string
    root_node_id: string
    user_persona_version_id: string | null
    zone: string
    character_ids: readonly string[]
  }): Promise<void>
  find(ownerId: string, treeId: string): Promise<TreeRow | null>
  /** As `find`, with the row locked until the unit of work ends: changes of one tree are serial. */
  lock(ownerId: string, treeId: string): Promise<TreeRow | null>
  list(ownerId: string, options: { characterId?: string; before?: { updatedAt: Date; id: string }; limit: number }): Promise<TreeRow[]>
  rename(treeId: string, title: string): Promise<void>
  tombstoneTree(treeId: string): Promise<void>

  /** Inserts below its parent, with the tree's next sequence number, and answers that. Throws where the parent is not there. */
  insertNode(node: NewNode): Promise<number>
  /** `trust` only ever lowers what the sprout was opened with; null leaves it. Answers whether its text is erased already. */
  sealNode(node: { id: string; content_id: string; partial: boolean; trust: Trust | null }): Promise<{ erased: boolean }>
  /**
   * Whether the record of what a node stands on is broken: the tree's stream, or that of a run whose answer is on the path from the root
   * to the node, is quarantined (K5).
   */
  hasBrokenRecord(treeId: string, nodeId: string): Promise<boolean>
  /** Each of them must not be a tombstone yet. */
  tombstoneNodes(nodeIds: readonly string[]): Promise<void>
  node(ownerId: string, nodeId: string): Promise<PathNode | null>
  nodes(ownerId: string, nodeIds: readonly string[]): Promise<PathNode[]>
  /** The path from a node back towards the root, at most `limit` nodes, oldest first; the root is left out. */
  path(ownerId: string, leafId: string, limit: number): Promise<PathNode[]>
  /**
   * All nodes from one down to another on their path, oldest first; none where they are not on one path. Of a deleted tree too, as
   * tombstones: the record goes on to refer to it.
   */
  range(ownerId: string, ends: { fromId: string; toId: string }): Promise<PathNode[]>
  /** Ids from the root (left out) to a node. */
  pathIds(ownerId: string, leafId: string): Promise<string[]>
  isAncestorOrSelf(ancestorId: string, nodeId: string): Promise<boolean>
  /** Children that are not tombstones, in order. */
  children(
    parentIds: readonly string[],
  ): Promise<{ id: string; parent_id: string; kind: NodeKind; run_id: string | null; sealed: boolean }[]>
  /** The nearest ancestor that is not a tombstone; the root never is one. */
  livingAncestor(nodeId: string): Promise<string>
  outline(treeId: string, options: { afterSeq: number; limit: number }): Promise<(NodeRow & { label: string })[]>
  /** Nodes that are not tombstones, the root left out. */
  livingNodes(treeId: string): Promise<{ id: string; content_id: string | null; run_id: string | null; sealed: boolean }[]>
  /** Whether an answer is waited for or written: anywhere in the tree, or to one question. */
  hasLiveRun(treeId: string, questionId?: string): Promise<boolean>
  /** Ids of the texts that were interjected into the run of a message, into any run of a tree, or into those under a question that left no answer. */
  interjections(runs: { runId: string } | { treeId: string } | { unansweredUnder: string }): Promise<string[]>
  countNodes(treeId: string): Promise<number>

  adopt(treeId: string, parentId: string, childId: string): Promise<void>
  /** Where the adopted path that goes through a node ends: the last node on it that is no tombstone. */
  adoptedLeaf(treeId: string, nodeId: string): Promise<string>
  adoptedChild(treeId: string, parentId: string): Promise<string | null>
  /** Moves the head, or only counts the change when `headId` is the present one. Answers the new revision. */
  moveHead(treeId: string, headId: string): Promise<number>

  insertCitation(citation: Omit<CitationRow, 'snapshot' | 'digest' | 'source_trust'> & { owner_id: string }): Promise<void>
  citations(nodeIds: readonly string[]): Promise<CitationRow[]>

  insertCanonization(row: Omit<CanonizationRow, 'created_at' | 'withdrawn_at'>): Promise<CanonizationRow>
  canonizations(treeId: string): Promise<CanonizationRow[]>
  canonization(ownerId: string, id: string): Promise<CanonizationRow | null>
  withdraw(id: string): Promise<void>
  /** Nodes inside a live canonization of the tree. A partial in between is passed over: it is never canonical (M7). */
  canonicalNodeIds(treeId: string): Promise<string[]>
}
