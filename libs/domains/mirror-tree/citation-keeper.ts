import { LingtaiError } from '#contracts'
import type { CitationInput, NewEvent } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import { contentDigest } from '#kernel/record/chain'
import { partsOf, textOf } from '#kernel/record/content-parts'
import type { CitationRow, TreeRow, TreeStore } from './ports.ts'

export type CitationKeeperDeps = { trees: TreeStore; contents: ContentStore; clock: Clock; ids: Ids }

/** Passages that a question quotes (引文锚). Inside the caller's unit of work; answers the events that belong on the tree's stream. */
export class CitationKeeper {
  readonly #deps: CitationKeeperDeps

  constructor(deps: CitationKeeperDeps) {
    this.#deps = deps
  }

  /** Quoted passages, kept as they are now (引文锚). */
  async cite(tree: TreeRow, nodeId: string, citations: readonly CitationInput[]): Promise<NewEvent[]> {
    const { trees, contents } = this.#deps
    const events: NewEvent[] = []
    for (const [index, citation] of citations.entries()) {
      const source = await trees.node(tree.owner_id, citation.node_id)
      const text = source && source.sealed && !source.deleted ? textOf(partsOf(source)) : ''
      const faulty = faultyEnd(text, citation)
      if (!source || source.content_id === null || faulty) {
        const path = `citations[${index}].${source && text !== '' && faulty ? faulty : 'node_id'}`
        throw new LingtaiError('validation_failed', 'A cited passage is not there.', { errors: [{ path, message: 'no such passage' }] })
      }
      const snapshot = await contents.put({
        owner_id: tree.owner_id,
        media_type: 'text/plain',
        content: text.slice(citation.from, citation.to),
        derived_from: [source.content_id],
      })
      const kept = await this.#keep(tree, nodeId, {
        source_tree_id: source.tree_id,
        source_node_id: source.id,
        range_from: citation.from,
        range_to: citation.to,
        list_position: index,
        snapshot_content_id: snapshot.id,
        digest: snapshot.digest,
      })
      events.push(kept)
    }
    return events
  }

  /** An edited question quotes what the one before it quoted, as far as it is still there. */
  async citeAgain(tree: TreeRow, nodeId: string, editedFromId: string): Promise<NewEvent[]> {
    const events: NewEvent[] = []
    for (const citation of await this.#deps.trees.citations([editedFromId])) {
      if (citation.snapshot !== null) events.push(await this.#keep(tree, nodeId, citation))
    }
    return events
  }

  async #keep(
    tree: TreeRow,
    nodeId: string,
    citation: Pick<
      CitationRow,
      'source_tree_id' | 'source_node_id' | 'range_from' | 'range_to' | 'list_position' | 'snapshot_content_id' | 'digest'
    >,
  ): Promise<NewEvent> {
    const { trees, ids, clock } = this.#deps
    const id = ids.next()
    await trees.insertCitation({ ...citation, id, owner_id: tree.owner_id, node_id: nodeId })
    return {
      type: 'citation.created',
      payload: {
        citation_id: id,
        node_id: nodeId,
        source_node_id: citation.source_node_id,
        snapshot_content_id: citation.snapshot_content_id,
      },
      content_digests: [contentDigest(citation.snapshot_content_id, citation.digest)],
      actor: 'owner',
      at: clock.now().toISOString(),
      cause: { tag: 'ask' },
    }
  }
}

/** Which end of a passage is not in the text, or stands in the middle of a character; null when both are right. */
function faultyEnd(text: string, { from, to }: { from: number; to: number }): 'from' | 'to' | null {
  if (from >= text.length || splitsPair(text, from)) return 'from'
  return to > text.length || splitsPair(text, to) ? 'to' : null
}

function splitsPair(text: string, offset: number): boolean {
  return /[\uD800-\uDBFF]/.test(text[offset - 1] ?? '') && /[\uDC00-\uDFFF]/.test(text[offset] ?? '')
}
