import type { CanonizationView, CitationView, NodeView, TreeView } from '#contracts'
import type { RunStore } from '#kernel/ports/run-store'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import { foldAnswer } from '#runtime/turn/fold-answer'
import { insertsOfRun } from '#runtime/turn/inheritance'
import { insertTypes } from '#runtime/turn/inserts'
import { partsOf, textOf } from '#kernel/record/content-parts'
import type { CanonizationRow, CitationRow, PathNode, TreeRow, TreeStore } from './ports.ts'

/** Rows of the tree as the API shows them. */
export class NodeViews {
  readonly #trees: TreeStore
  readonly #runs: RunStore
  readonly #log: EventLog
  readonly #contents: ContentStore

  constructor({ trees, runs, log, contents }: { trees: TreeStore; runs: RunStore; log: EventLog; contents: ContentStore }) {
    this.#trees = trees
    this.#runs = runs
    this.#log = log
    this.#contents = contents
  }

  async tree(tree: TreeRow): Promise<TreeView> {
    return {
      id: tree.id,
      title: tree.title,
      character_ids: tree.character_ids,
      realm: { id: tree.realm_id, kind: tree.realm_kind, name: tree.realm_name },
      root_node_id: tree.root_node_id,
      head_node_id: tree.head_node_id,
      revision: tree.revision,
      node_count: await this.#trees.countNodes(tree.id),
      created_at: tree.created_at.toISOString(),
      updated_at: tree.updated_at.toISOString(),
    }
  }

  async node(node: PathNode): Promise<NodeView> {
    const [view] = await this.nodes([node], this.#trees.canonicalNodeIds(node.tree_id))
    if (!view) throw new Error('a node has one view')
    return view
  }

  /** Views of nodes of one tree, with siblings and citations looked up together. */
  async nodes(nodes: readonly PathNode[], canonicalIds: readonly string[] | Promise<readonly string[]>): Promise<NodeView[]> {
    const parents = [...new Set(nodes.flatMap((node) => node.parent_id ?? []))]
    const [siblings, citations, ids] = await Promise.all([
      this.#trees.children(parents),
      this.#trees.citations(nodes.filter((node) => node.kind === 'question').map((node) => node.id)),
      canonicalIds,
    ])
    const canonical = new Set(ids)
    return Promise.all(
      nodes.map(async (node) => {
        const parts = node.sealed ? partsOf(node) : await this.#sproutParts(node)
        return {
          id: node.id,
          tree_id: node.tree_id,
          parent_id: node.parent_id,
          kind: node.kind,
          role: node.role,
          author: node.author,
          seq: node.seq,
          depth: node.depth,
          sealed: node.sealed,
          partial: node.partial,
          deleted: node.deleted,
          canonical: canonical.has(node.id),
          speaker_character_id: node.speaker_character_id,
          speaker_name: node.speaker_name,
          run_id: node.run_id,
          edited_from_id: node.edited_from_id,
          parts,
          text: textOf(parts),
          sibling_ids: siblings
            .filter((sibling) => sibling.parent_id === node.parent_id && sibling.kind === node.kind)
            .map((sibling) => sibling.id),
          citations: citations.filter((citation) => citation.node_id === node.id).map(citationView),
          at: node.at.toISOString(),
        }
      }),
    )
  }

  /** What a sprout has said so far, from its durable deltas, with what was interjected where it took effect. */
  async #sproutParts(node: PathNode): Promise<NodeView['parts']> {
    if (node.run_id === null) return []
    const [run, segments, stored] = await Promise.all([
      this.#runs.get(node.run_id),
      this.#runs.segments(node.run_id),
      this.#log.read(`run:${node.run_id}`, { types: insertTypes }),
    ])
    const records = stored.map(({ record }) => record)
    const inserts = await insertsOfRun(run ?? { continues_run_id: null }, records, {
      log: this.#log,
      runs: this.#runs,
      contents: this.#contents,
    })
    return partsOf(foldAnswer(segments, inserts))
  }
}

export function citationView(row: CitationRow): CitationView {
  return {
    id: row.id,
    source_tree_id: row.source_tree_id,
    source_node_id: row.source_node_id,
    text: row.snapshot,
    from: row.range_from,
    to: row.range_to,
  }
}

export function canonizationView(row: CanonizationRow): CanonizationView {
  return { ...row, created_at: row.created_at.toISOString(), withdrawn_at: row.withdrawn_at?.toISOString() ?? null }
}
