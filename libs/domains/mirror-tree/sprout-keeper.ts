import type { NewEvent, Trust } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunRow } from '#kernel/ports/run-store'
import type { SproutKeeper } from '#runtime/turn/ports'
import type { TreeRow, TreeStore } from './ports.ts'

/**
 * A sprout (芽体) in its tree: opened with the first durable delta, sealed with the run's end (decision 23). A run without a tree, such as
 * maintenance, has a result and no sprout.
 */
export class TreeSproutKeeper implements SproutKeeper {
  readonly #trees: TreeStore
  readonly #log: EventLog
  readonly #clock: Clock

  constructor({ trees, log, clock }: { trees: TreeStore; log: EventLog; clock: Clock }) {
    this.#trees = trees
    this.#log = log
    this.#clock = clock
  }

  async open(run: RunRow, trust: Trust): Promise<void> {
    if (run.tree_id === null) return
    const { treeId, questionId, candidateId } = placeOf(run)
    const at = this.#clock.now()
    const seq = this.#trees.insertNode({
      id: candidateId,
      tree_id: treeId,
      owner_id: run.owner_id,
      parent_id: questionId,
      kind: 'candidate',
      role: 'character',
      sealed: false,
      partial: false,
      speaker_character_id: run.character_id,
      speaker_name: null,
      author: 'character',
      trust,
      content_id: null,
      run_id: run.id,
      edited_from_id: null,
      zone: null,
      at,
    })
    await this.#log.append({
      stream: `tree:${treeId}`,
      ownerId: run.owner_id,
      events: seq.then((nodeSeq) => [
        {
          type: 'node.added',
          payload: {
            node_id: candidateId,
            parent_id: questionId,
            kind: 'candidate',
            role: 'character',
            node_seq: nodeSeq,
            content_id: null,
            run_id: run.id,
            edited_from_id: null,
          },
          character_id: run.character_id,
          run_id: run.id,
          trace_id: run.trace_id,
          actor: 'kernel',
          at: at.toISOString(),
          cause: { tag: 'segments' },
        },
      ]),
    })
  }

  async seal({ run, contentId, partial, trust }: Parameters<SproutKeeper['seal']>[0]): Promise<void> {
    if (run.tree_id === null) return
    const { treeId, questionId, candidateId } = placeOf(run)
    // What follows is sent together and takes effect in this order, under the tree's lock.
    const [tree, { erased }, head, adopted] = await Promise.all([
      this.#trees.lock(run.owner_id, treeId),
      this.#trees.sealNode({ id: candidateId, content_id: contentId, partial, trust }),
      this.#log.head(`tree:${treeId}`),
      this.#trees.adoptedChild(treeId, questionId),
    ])
    if (!tree) throw new MissingPlaceError(run.id)
    // A broken chain takes nothing more (decision 18); the sprout is closed all the same, since nobody will ever go on with it (case Q7).
    if (head?.quarantined) return
    // What is erased before it is there was deleted before a restore: nobody comes to it any more (decision 6).
    if (erased) return this.#sealDeleted({ run, tree, candidateId, contentId, partial })
    // The head waits at the question until its answer is there; somebody who went elsewhere meanwhile stays there.
    const follows = tree.head_node_id === questionId
    await Promise.all([
      follows || adopted === null ? this.#trees.adopt(treeId, questionId, candidateId) : null,
      this.#trees.moveHead(treeId, follows ? candidateId : tree.head_node_id),
      this.#append(run, treeId, [
        { type: 'node.sealed', payload: { node_id: candidateId, content_id: contentId, partial, run_id: run.id } },
        ...(follows ? [headMoved(questionId, candidateId)] : []),
      ]),
    ])
  }

  async #sealDeleted(sealed: { run: RunRow; tree: TreeRow; candidateId: string; contentId: string; partial: boolean }): Promise<void> {
    const { run, tree, candidateId, contentId, partial } = sealed
    await Promise.all([
      this.#trees.tombstoneNodes([candidateId]),
      this.#trees.moveHead(tree.id, tree.head_node_id),
      this.#append(run, tree.id, [
        { type: 'node.sealed', payload: { node_id: candidateId, content_id: contentId, partial, run_id: run.id } },
        { type: 'node.deleted', payload: { node_id: candidateId, content_id: contentId } },
      ]),
    ])
  }

  async wither(run: RunRow): Promise<void> {
    const before = run.settings.head_before
    if (run.tree_id === null || before === undefined) return
    const { treeId, questionId } = placeOf(run)
    const tree = await this.#trees.lock(run.owner_id, treeId)
    if (!tree || tree.head_node_id !== questionId || (await this.#log.head(`tree:${treeId}`))?.quarantined) return
    const place = await this.#trees.node(run.owner_id, before)
    const headId = place && !place.deleted ? place.id : await this.#trees.adoptedLeaf(treeId, questionId)
    if (headId === questionId) return
    await this.#trees.moveHead(treeId, headId)
    await this.#append(run, treeId, [headMoved(questionId, headId)])
  }

  async noteForbidden(run: RunRow): Promise<void> {
    if (run.tree_id === null || (await this.#log.head(`tree:${run.tree_id}`))?.quarantined) return
    const payload = { invariant: 'M8' as const, node_id: run.question_id, run_id: run.id, attempt: 'project' }
    await this.#append(run, run.tree_id, [{ type: 'invariant.refused', payload }])
  }

  async #append(run: RunRow, treeId: string, events: readonly TreeEvent[]): Promise<void> {
    const at = this.#clock.now().toISOString()
    const envelope = { character_id: run.character_id, run_id: run.id, trace_id: run.trace_id, actor: 'kernel', at, cause: { tag: 'seal' } }
    await this.#log.append({
      stream: `tree:${treeId}`,
      ownerId: run.owner_id,
      events: events.map((event) => ({ ...event, ...envelope }) as NewEvent),
    })
  }
}

type TreeEvent = Pick<NewEvent<'node.sealed' | 'node.deleted' | 'head.moved' | 'invariant.refused'>, 'type' | 'payload'>

function headMoved(fromNodeId: string, toNodeId: string): TreeEvent {
  return { type: 'head.moved', payload: { from_node_id: fromNodeId, to_node_id: toNodeId, cause: 'seal' } }
}

/** The run's tree or question is not there. */
export class MissingPlaceError extends Error {
  constructor(runId: string) {
    super(`run ${runId} has no place in a tree`)
    this.name = 'MissingPlaceError'
  }
}

function placeOf(run: RunRow): { treeId: string; questionId: string; candidateId: string } {
  if (run.tree_id === null || run.question_id === null || run.candidate_id === null) throw new MissingPlaceError(run.id)
  return { treeId: run.tree_id, questionId: run.question_id, candidateId: run.candidate_id }
}
