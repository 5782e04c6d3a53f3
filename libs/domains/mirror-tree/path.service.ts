import { LingtaiError, meetTrust } from '#contracts'
import type { Canonized, CanonizationView, HeadMoved, NewEvent, NodeView, Trust } from '#contracts'
import { mayCanonize, mayChangeText, mayHangBelow } from '#kernel/invariants/tree-rules'
import type { Refusal } from '#kernel/invariants/tree-rules'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { contentDigest } from '#kernel/record/chain'
import { partsOf, textOf } from '#kernel/record/content-parts'
import { isGreeting } from './context-sources.ts'
import type { InvariantRecord } from './invariant-record.ts'
import { canonizationView } from './node-views.ts'
import type { NodeViews } from './node-views.ts'
import type { PathNode, TreeRow, TreeStore } from './ports.ts'

/** Hears of what changed in the canon, inside the same unit of work. */
export interface CanonListener {
  canonized(canonization: { id: string; ownerId: string; characterId: string; treeId: string }): Promise<void>
  withdrawn(canonization: { id: string; ownerId: string; characterId: string }): Promise<void>
  /** Before their contents are erased. */
  nodesDeleted(nodes: { ids: readonly string[]; ownerId: string; treeId: string }): Promise<void>
}

export type PathDeps = {
  unitOfWork: UnitOfWork
  trees: TreeStore
  contents: ContentStore
  log: EventLog
  views: NodeViews
  invariants: InvariantRecord
  canon: CanonListener
  clock: Clock
  ids: Ids
}

/** What a person does with the nodes of a tree: switch, fork, edit an answer, canonize, delete. Nothing is ever overwritten. */
export class PathService {
  readonly #deps: PathDeps

  constructor(deps: PathDeps) {
    this.#deps = deps
  }

  async node(ownerId: string, nodeId: string): Promise<NodeView> {
    return this.#deps.views.node(await this.#find(ownerId, nodeId))
  }

  /** The row itself, for services that go on from it. */
  async row(ownerId: string, nodeId: string): Promise<PathNode> {
    return this.#find(ownerId, nodeId)
  }

  /** Switch to a candidate (采用): the head goes where its adopted path ends (case T1). Says nothing about canon (M4). */
  async adopt(ownerId: string, nodeId: string): Promise<HeadMoved> {
    const { unitOfWork, trees } = this.#deps
    return unitOfWork.run(async () => {
      const { tree, node } = await this.#allowed(ownerId, nodeId, 'adopt', mayHangBelow)
      if (node.parent_id !== null) {
        await trees.adopt(tree.id, node.parent_id, node.id)
        await this.#append(tree, [{ type: 'candidate.adopted', payload: { parent_id: node.parent_id, child_id: node.id } }])
      }
      return this.#moveHead(tree, await trees.adoptedLeaf(tree.id, node.id), 'adopt')
    })
  }

  /** The current path goes on from this node; what hung below stays where it is (P3: one pointer). */
  async fork(ownerId: string, nodeId: string): Promise<HeadMoved> {
    return this.#deps.unitOfWork.run(async () => {
      const { tree, node } = await this.#allowed(ownerId, nodeId, 'fork', mayHangBelow)
      return this.#moveHead(tree, node.id, 'fork')
    })
  }

  /** An edited answer is a new sibling candidate written by the owner (decision 40, M1). */
  async editCandidate(ownerId: string, nodeId: string, text: string): Promise<NodeView> {
    const { unitOfWork, trees, contents, ids, clock } = this.#deps
    return unitOfWork.run(async () => {
      const { tree, node } = await this.#allowed(ownerId, nodeId, 'edit', mayHangBelow)
      if (node.parent_id === null) throw new LingtaiError('wrong_state', 'The root has no text.')
      const content = await contents.put({ owner_id: ownerId, media_type: 'text/plain', content: text })
      const id = ids.next()
      const seq = await trees.insertNode({
        id,
        tree_id: tree.id,
        owner_id: ownerId,
        parent_id: node.parent_id,
        kind: 'candidate',
        role: node.role,
        sealed: true,
        partial: false,
        speaker_character_id: node.speaker_character_id,
        speaker_name: node.speaker_name,
        author: 'owner',
        trust: editedTrust(node),
        content_id: content.id,
        run_id: null,
        edited_from_id: node.id,
        zone: tree.zone,
        at: clock.now(),
      })
      await this.#append(tree, [
        {
          type: 'node.added',
          payload: {
            node_id: id,
            parent_id: node.parent_id,
            kind: 'candidate',
            role: node.role,
            node_seq: seq,
            content_id: content.id,
            run_id: null,
            edited_from_id: node.id,
          },
          content_digests: [contentDigest(content.id, content.digest)],
        },
      ])
      await trees.adopt(tree.id, node.parent_id, id)
      await this.#moveHead(tree, id, 'edit')
      return this.node(ownerId, id)
    })
  }

  /** M2: there is no way to change what was sent. */
  async refuseChange(ownerId: string, nodeId: string): Promise<never> {
    const node = await this.#find(ownerId, nodeId)
    const refusal = mayChangeText()
    return this.#deps.invariants.refuse(refusal ?? { invariant: 'M2', code: 'edit_forks' }, {
      ownerId,
      treeId: node.tree_id,
      nodeId,
      attempt: 'node.patch',
    })
  }

  /** Makes everything since the nearest canonical ancestor true for the character (归真, decision 26). */
  async canonize(ownerId: string, nodeId: string): Promise<Canonized> {
    const { unitOfWork, trees, canon, ids } = this.#deps
    return unitOfWork.run(async () => {
      const { tree, node } = await this.#allowed(ownerId, nodeId, 'canonize', mayCanonize)
      const characterId = node.speaker_character_id ?? tree.character_ids[0]
      if (characterId === undefined) throw new LingtaiError('wrong_state', 'No character lives in this tree.')
      const canonical = new Set(await trees.canonicalNodeIds(tree.id))
      if (canonical.has(node.id)) throw new LingtaiError('already_canonical')
      const path = await trees.pathIds(ownerId, node.id)
      const fromNodeId = path.findLast((id) => canonical.has(id)) ?? tree.root_node_id
      const live = (await trees.canonizations(tree.id)).filter((row) => row.withdrawn_at === null)
      const onPath = new Set(path)
      const diverging = live.filter((row) => !onPath.has(row.to_node_id))
      const canonization = await trees.insertCanonization({
        id: ids.next(),
        owner_id: ownerId,
        tree_id: tree.id,
        character_id: characterId,
        from_node_id: fromNodeId,
        to_node_id: node.id,
      })
      await this.#append(tree, [
        {
          type: 'canon.extended',
          payload: {
            canonization_id: canonization.id,
            character_id: characterId,
            from_node_id: fromNodeId,
            to_node_id: node.id,
            diverges: diverging.length > 0,
          },
          character_id: characterId,
          trust: 'trusted',
        },
      ])
      await trees.moveHead(tree.id, tree.head_node_id)
      await canon.canonized({ id: canonization.id, ownerId, characterId, treeId: tree.id })
      return {
        canonization: canonizationView(canonization),
        warnings: diverging.map((row) => ({ code: 'diverging_canon' as const, canonization_id: row.id })),
      }
    })
  }

  async canonizations(ownerId: string, treeId: string): Promise<CanonizationView[]> {
    const { trees } = this.#deps
    if (!(await trees.find(ownerId, treeId))) throw new LingtaiError('not_found')
    return (await trees.canonizations(treeId)).map(canonizationView)
  }

  async canonization(ownerId: string, id: string): Promise<CanonizationView> {
    const row = await this.#deps.trees.canonization(ownerId, id)
    if (!row) throw new LingtaiError('not_found')
    return canonizationView(row)
  }

  /** A node as somebody's head, as it stands now. */
  async head(ownerId: string, nodeId: string): Promise<HeadMoved> {
    const { trees, views } = this.#deps
    const node = await this.#find(ownerId, nodeId)
    const tree = await trees.find(ownerId, node.tree_id)
    if (!tree) throw new LingtaiError('not_found')
    return { tree: await views.tree(tree), head: await views.node(node) }
  }

  /** Explicit, and flags the memories whose only sources lay there (decision 26, M4). */
  async withdraw(ownerId: string, canonizationId: string): Promise<CanonizationView> {
    return this.#deps.unitOfWork.run(() => this.#withdraw(ownerId, canonizationId))
  }

  async #withdraw(ownerId: string, canonizationId: string): Promise<CanonizationView> {
    const { trees, canon } = this.#deps
    const treeId = (await trees.canonization(ownerId, canonizationId))?.tree_id
    const tree = treeId === undefined ? null : await trees.lock(ownerId, treeId)
    // Read again now that the tree is locked: somebody else may have withdrawn it meanwhile.
    const found = tree && (await trees.canonization(ownerId, canonizationId))
    if (!found) throw new LingtaiError('not_found')
    if (found.withdrawn_at === null) {
      await trees.withdraw(found.id)
      await this.#append(tree, [
        { type: 'canon.withdrawn', payload: { canonization_id: found.id }, character_id: found.character_id, trust: 'trusted' },
      ])
      await trees.moveHead(tree.id, tree.head_node_id)
      await canon.withdrawn({ id: found.id, ownerId, characterId: found.character_id })
    }
    const row = await trees.canonization(ownerId, canonizationId)
    if (!row) throw new LingtaiError('not_found')
    return canonizationView(row)
  }

  /** Tombstones a node and erases its text; nothing below moves, a deleted inner node projects as nothing (decision 24). */
  async delete(ownerId: string, nodeId: string, options: { withdraw: boolean }): Promise<void> {
    const { unitOfWork, trees, contents, canon } = this.#deps
    await unitOfWork.run(async () => {
      const { tree, node } = await this.#locked(ownerId, nodeId)
      if (node.kind === 'root') throw new LingtaiError('wrong_state', 'The root is not a message.')
      if (node.deleted) return
      // A question goes with nobody's answer to it still to come.
      if (!node.sealed || (await trees.hasLiveRun(tree.id, node.id))) throw new LingtaiError('candidate_open')
      await this.#leaveCanon(tree, node, options)
      await trees.tombstoneNodes([node.id])
      // Before the text goes: memories are locked before the log's heads, and look at what they rested on.
      await canon.nodesDeleted({ ids: [node.id], ownerId, treeId: tree.id })
      // All that the node says: its own content, and what was interjected while it was written, or while an answer to it was that never came.
      const interjected = await trees.interjections(node.run_id === null ? { unansweredUnder: node.id } : { runId: node.run_id })
      await contents.erase({ ids: [...interjected, ...(node.content_id === null ? [] : [node.content_id])], cause: 'node_deleted' })
      if (repeatsBeginning(tree.title, textOf(partsOf(node)))) await trees.rename(tree.id, '')
      await this.#append(tree, [{ type: 'node.deleted', payload: { node_id: node.id, content_id: node.content_id }, trust: 'trusted' }])
      await this.#leaveDeleted(tree, node)
    })
  }

  /** Withdraws the ranges that a node lies in, where that was asked for (decision 26). */
  async #leaveCanon(tree: TreeRow, node: PathNode, { withdraw }: { withdraw: boolean }): Promise<void> {
    const { trees, invariants } = this.#deps
    if (!(await trees.canonicalNodeIds(tree.id)).includes(node.id)) return
    if (!withdraw) {
      const attempt = { ownerId: tree.owner_id, treeId: tree.id, nodeId: node.id, attempt: 'delete' }
      const errors = [{ path: 'withdraw', message: 'must be true to withdraw the canon' }]
      return invariants.refuse({ invariant: 'M4', code: 'canonical_node' }, attempt, errors)
    }
    for (const row of await trees.canonizations(tree.id)) {
      if (row.withdrawn_at !== null || !(await trees.isAncestorOrSelf(node.id, row.to_node_id))) continue
      if (!(await trees.isAncestorOrSelf(node.id, row.from_node_id))) await this.#withdraw(tree.owner_id, row.id)
    }
  }

  /** Tombstones a tree and erases its texts; memories whose only source it was go with it. Refused while an answer is being written. */
  async deleteTree(ownerId: string, treeId: string): Promise<void> {
    const { unitOfWork, trees, contents, canon } = this.#deps
    await unitOfWork.run(async () => {
      const tree = await trees.lock(ownerId, treeId)
      if (!tree) throw new LingtaiError('not_found')
      const nodes = await trees.livingNodes(treeId)
      if (nodes.some((node) => !node.sealed) || (await trees.hasLiveRun(treeId))) throw new LingtaiError('candidate_open')
      for (const row of await trees.canonizations(treeId)) if (row.withdrawn_at === null) await this.#withdraw(ownerId, row.id)
      await trees.tombstoneNodes(nodes.map((node) => node.id))
      await canon.nodesDeleted({ ids: nodes.map((node) => node.id), ownerId, treeId })
      const interjected = await trees.interjections({ treeId })
      await contents.erase({ ids: [...interjected, ...nodes.flatMap((node) => node.content_id ?? [])], cause: 'tree_deleted' })
      await this.#append(
        tree,
        nodes.map((node) => ({ type: 'node.deleted', payload: { node_id: node.id, content_id: node.content_id }, trust: 'trusted' })),
      )
      await trees.tombstoneTree(treeId)
    })
  }

  /**
   * Where the current path ended at the deleted node it goes to the last sealed sibling instead, or back to what it answered (case T1). A path
   * that goes on below the node stays: nothing below moves.
   */
  async #leaveDeleted(tree: TreeRow, node: PathNode): Promise<void> {
    const { trees } = this.#deps
    const { id, kind, parent_id: parentId } = node
    if (parentId === null) return
    const adopted = await trees.adoptedChild(tree.id, parentId)
    const siblings = (await trees.children([parentId])).filter((child) => child.kind === kind && child.sealed)
    const next = siblings.find((child) => child.id === adopted) ?? siblings.at(-1)
    const passes = tree.head_node_id !== id && (await trees.isAncestorOrSelf(id, tree.head_node_id))
    if (next && adopted === id && !passes) await trees.adopt(tree.id, parentId, next.id)
    if (tree.head_node_id !== id) await this.#moveHead(tree, tree.head_node_id, 'delete')
    else await this.#moveHead(tree, next ? await trees.adoptedLeaf(tree.id, next.id) : await trees.livingAncestor(id), 'delete')
  }

  async #find(ownerId: string, nodeId: string): Promise<PathNode> {
    const node = await this.#deps.trees.node(ownerId, nodeId)
    if (!node) throw new LingtaiError('not_found')
    return node
  }

  /** A node of a locked tree, as it stands under the lock. Inside a unit of work. */
  async #locked(ownerId: string, nodeId: string): Promise<{ tree: TreeRow; node: PathNode }> {
    const { tree_id: treeId } = await this.#find(ownerId, nodeId)
    const tree = await this.#deps.trees.lock(ownerId, treeId)
    if (!tree) throw new LingtaiError('not_found')
    return { tree, node: await this.#find(ownerId, nodeId) }
  }

  /** As `#locked`; where a rule stands against the attempt it is refused and put on record. */
  async #allowed(
    ownerId: string,
    nodeId: string,
    attempt: string,
    rule: (node: PathNode) => Refusal,
  ): Promise<{ tree: TreeRow; node: PathNode }> {
    const { tree, node } = await this.#locked(ownerId, nodeId)
    const refusal = rule(node)
    if (refusal) return this.#deps.invariants.refuse(refusal, { ownerId, treeId: tree.id, nodeId, attempt })
    if (await this.#deps.trees.hasBrokenRecord(tree.id, nodeId)) throw new LingtaiError('chain_broken')
    return { tree, node }
  }

  async #moveHead(tree: TreeRow, headId: string, cause: 'adopt' | 'fork' | 'edit' | 'delete'): Promise<HeadMoved> {
    const { trees, views } = this.#deps
    await trees.moveHead(tree.id, headId)
    if (headId !== tree.head_node_id) {
      await this.#append(tree, [{ type: 'head.moved', payload: { from_node_id: tree.head_node_id, to_node_id: headId, cause } }])
    }
    const moved = await trees.find(tree.owner_id, tree.id)
    const head = await trees.node(tree.owner_id, headId)
    if (!moved || !head) throw new LingtaiError('not_found')
    return { tree: await views.tree(moved), head: await views.node(head) }
  }

  async #append(tree: TreeRow, events: Omit<NewEvent, 'actor' | 'at' | 'cause'>[]): Promise<void> {
    const at = this.#deps.clock.now().toISOString()
    await this.#deps.log.append({
      stream: `tree:${tree.id}`,
      ownerId: tree.owner_id,
      events: events.map((event) => ({ ...event, actor: 'owner', at, cause: { tag: event.type } }) as NewEvent),
    })
  }
}

/**
 * Words of the owner's that were made of others are to be believed as far as those (K1). A greeting is as its card, which stands in every
 * context beside it and whose trust governs there until the card is accepted.
 */
function editedTrust(node: PathNode): Trust {
  return isGreeting(node) ? 'workspace' : meetTrust(['trusted', node.trust])
}

/** Whether a title says nothing but how a text begins, as the page names a conversation: it goes with the text then (decision 13). */
function repeatsBeginning(title: string, text: string): boolean {
  const said = lettersOf(title)
  return said !== '' && lettersOf(text).startsWith(said)
}

function lettersOf(text: string): string {
  return text.normalize('NFKC').replaceAll(/[^\p{L}\p{N}]/gu, '')
}
