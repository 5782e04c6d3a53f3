import { LingtaiError } from '#contracts'
import type { Ask, NewEvent, RunAccepted } from '#contracts'
import { mayHangBelow } from '#kernel/invariants/tree-rules'
import type { Clock, Ids, Scheduler } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunStore } from '#kernel/ports/run-store'
import type { Seat } from '#kernel/ports/seat'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { contentDigest } from '#kernel/record/chain'
import type { InvariantRecord } from './invariant-record.ts'
import { partsOf, textOf } from './node-content.ts'
import type { NodeViews } from './node-views.ts'
import type { PathNode, TreeRow, TreeStore } from './ports.ts'

/** A queued run gives up after this long (decision 22). */
const QUEUE_EXPIRY_MS = 10 * 60_000
/** Runs of one owner that may wait or run at once. */
const WAITING_MAX = 50
/** How long an ask below a closing sprout waits for its seal (decision 23, case T5). */
const SEAL_WAIT_MS = 5_000
const SEAL_POLL_MS = 20

export type AskDeps = {
  unitOfWork: UnitOfWork
  trees: TreeStore
  runs: RunStore
  contents: ContentStore
  log: EventLog
  seat: Seat
  views: NodeViews
  invariants: InvariantRecord
  clock: Clock
  ids: Ids
  scheduler: Scheduler
}

type Place = { tree: TreeRow; parent: PathNode }

/** Step 1 of a turn: question, run and their events in one transaction (spec/1). */
export class AskService {
  readonly #deps: AskDeps

  constructor(deps: AskDeps) {
    this.#deps = deps
  }

  /** A person asks below a node of the tree: the one that `settledParent` answered. */
  async ask(ownerId: string, treeId: string, ask: Ask): Promise<RunAccepted> {
    const accepted = await this.#deps.unitOfWork.run(async () => {
      const parentId = ask.parent_id ?? (await this.#deps.trees.find(ownerId, treeId))?.head_node_id
      if (parentId === undefined) throw new LingtaiError('not_found')
      const place = await this.#place(ownerId, treeId, parentId)
      const question = await this.#addQuestion(place, ask, null)
      return this.#request(place.tree, question, ask.effort, ask.revision !== undefined && ask.revision < place.tree.revision)
    })
    return this.#announce(accepted)
  }

  /** What was answered when a run was accepted, as it stands now. */
  async accepted(ownerId: string, runId: string): Promise<RunAccepted> {
    const { runs, trees, views } = this.#deps
    const run = await runs.find(ownerId, runId)
    const tree = run?.tree_id ? await trees.find(ownerId, run.tree_id) : null
    if (!run || !tree || run.question_id === null || run.candidate_id === null) throw new LingtaiError('not_found')
    const question = await trees.node(ownerId, run.question_id)
    return {
      run_id: run.id,
      tree_id: tree.id,
      question: question && (await views.node(question)),
      question_id: run.question_id,
      candidate_id: run.candidate_id,
      state: run.state,
      queue_position: await runs.ahead(run),
      revision: tree.revision,
      newer_head: false,
      events_url: eventsUrl(run.id),
    }
  }

  /** Another candidate beside the ones a question has (M1: none is overwritten). */
  async regenerate(ownerId: string, nodeId: string, options: { effort?: Ask['effort'] }): Promise<RunAccepted> {
    const { trees, unitOfWork } = this.#deps
    const node = await trees.node(ownerId, nodeId)
    if (!node) throw new LingtaiError('not_found')
    const questionId = node.kind === 'candidate' ? node.parent_id : node.id
    const parent = questionId === null ? null : await trees.node(ownerId, questionId)
    if (!parent || parent.kind === 'root') throw new LingtaiError('wrong_state', 'A greeting has no question to answer again.')
    const accepted = await unitOfWork.run(async () => {
      const { tree, parent: question } = await this.#place(ownerId, node.tree_id, parent.id)
      if (await this.#deps.runs.liveUnder(question.id)) throw new LingtaiError('candidate_open')
      await this.#moveHead(tree, question.id, 'ask')
      return this.#request(tree, question, options.effort, false)
    })
    return this.#announce(accepted)
  }

  /** Editing a question forks: a new question beside it, answered anew (M2). */
  async editQuestion(ownerId: string, node: PathNode, edit: { text: string; effort?: Ask['effort'] }): Promise<RunAccepted> {
    const parentId = node.parent_id
    if (parentId === null) throw new LingtaiError('wrong_state', 'The root has no text.')
    const accepted = await this.#deps.unitOfWork.run(async () => {
      const place = await this.#place(ownerId, node.tree_id, parentId)
      const question = await this.#addQuestion(place, { text: edit.text, citations: [] }, node.id)
      return this.#request(place.tree, question, edit.effort, false)
    })
    return this.#announce(accepted)
  }

  /**
   * The node to ask below: an answer that is being stopped is waited for, one that is being written is refused. Waits, so it is called
   * outside a unit of work.
   */
  async settledParent(ownerId: string, treeId: string, parentId: string | undefined): Promise<string> {
    const { trees, runs, invariants } = this.#deps
    const tree = await trees.find(ownerId, treeId)
    if (!tree) throw new LingtaiError('not_found')
    const wanted = parentId ?? tree.head_node_id
    const node = await trees.node(ownerId, wanted)
    if (!node) {
      // A reserved candidate without a row yet: its run tells whether it will ever have one.
      const run = await runs.byCandidate(wanted)
      if (run?.owner_id !== ownerId || run.tree_id !== treeId || run.question_id === null) throw new LingtaiError('not_found', 'There is no such parent node.', { errors: [{ path: 'parent_id', message: 'unknown node' }] })
      return this.#afterSeal(ownerId, run.id, wanted, run.question_id)
    }
    if (node.tree_id !== treeId) throw new LingtaiError('not_found', 'There is no such parent node.', { errors: [{ path: 'parent_id', message: 'unknown node' }] })
    const refusal = mayHangBelow(node)
    if (refusal?.code === 'candidate_open' && node.run_id !== null && node.parent_id !== null) {
      return this.#afterSeal(ownerId, node.run_id, node.id, node.parent_id)
    }
    if (refusal) return invariants.refuse(refusal, { ownerId, treeId, nodeId: node.id, attempt: 'ask' })
    const live = parentId === undefined ? await runs.liveUnder(node.id) : null
    return live?.candidate_id ? this.#afterSeal(ownerId, live.id, live.candidate_id, node.id) : node.id
  }

  /** Waits for the answer of a node's question that is being stopped; refuses while it is being written. Outside a unit of work. */
  async settledQuestion(ownerId: string, nodeId: string): Promise<void> {
    const { trees, runs } = this.#deps
    const node = await trees.node(ownerId, nodeId)
    const questionId = node?.kind === 'candidate' ? node.parent_id : nodeId
    const live = questionId === null ? null : await runs.liveUnder(questionId)
    if (live?.candidate_id && live.question_id !== null) await this.#afterSeal(ownerId, live.id, live.candidate_id, live.question_id)
  }

  /** Waits for a run that is being cancelled; its candidate, or its question when it said nothing, is the parent then (case T5). */
  async #afterSeal(ownerId: string, runId: string, candidateId: string, questionId: string): Promise<string> {
    const { runs, trees, scheduler } = this.#deps
    for (let waited = 0; waited <= SEAL_WAIT_MS; waited += SEAL_POLL_MS) {
      const run = await runs.get(runId)
      if (!run || run.ended_at !== null) return (await trees.node(ownerId, candidateId)) ? candidateId : questionId
      const closing = (await runs.openCommands(runId)).some((command) => command.kind === 'cancel')
      if (!closing) {
        // The run may have ended between the two reads; then there is nothing left to refuse.
        const again = await runs.get(runId)
        if (again && again.ended_at === null) throw new LingtaiError('candidate_open', undefined, { data: { run_id: runId } })
        continue
      }
      await new Promise<void>((resolve) => scheduler.after(SEAL_POLL_MS, resolve))
    }
    throw new LingtaiError('candidate_open', 'The answer is still being stopped.', { data: { run_id: runId } })
  }

  async #place(ownerId: string, treeId: string, parentId: string): Promise<Place> {
    const { trees, runs } = this.#deps
    const tree = await trees.lock(ownerId, treeId)
    const parent = await trees.node(ownerId, parentId)
    if (!tree || !parent || parent.tree_id !== tree.id) throw new LingtaiError('not_found')
    const refusal = mayHangBelow(parent)
    if (refusal) throw new LingtaiError(refusal.code)
    if ((await runs.countWaiting(ownerId)) >= WAITING_MAX) throw new LingtaiError('queue_full')
    return { tree, parent }
  }

  async #addQuestion({ tree, parent }: Place, ask: Pick<Ask, 'text' | 'citations'>, editedFromId: string | null): Promise<PathNode> {
    const { trees, contents, ids, clock, log } = this.#deps
    const content = await contents.put({ owner_id: tree.owner_id, media_type: 'text/plain', content: ask.text })
    const id = ids.next()
    const at = clock.now()
    const seq = await trees.insertNode({
      id,
      tree_id: tree.id,
      owner_id: tree.owner_id,
      parent_id: parent.id,
      kind: 'question',
      role: 'user',
      depth: parent.depth + 1,
      sealed: true,
      partial: false,
      speaker_character_id: null,
      speaker_name: null,
      author: 'owner',
      trust: 'trusted',
      content_id: content.id,
      run_id: null,
      edited_from_id: editedFromId,
      zone: tree.zone,
      at,
    })
    await log.append({
      stream: `tree:${tree.id}`,
      ownerId: tree.owner_id,
      events: [
        this.#event({
          type: 'node.added',
          payload: {
            node_id: id,
            parent_id: parent.id,
            kind: 'question',
            role: 'user',
            node_seq: seq,
            content_id: content.id,
            run_id: null,
            edited_from_id: editedFromId,
          },
          trust: 'trusted',
          content_digests: [contentDigest(content.id, content.digest)],
        }),
      ],
    })
    await this.#cite(tree, id, ask.citations)
    await trees.adopt(tree.id, parent.id, id)
    await this.#moveHead(tree, id, editedFromId === null ? 'ask' : 'edit')
    const question = await trees.node(tree.owner_id, id)
    if (!question) throw new LingtaiError('internal_error')
    return question
  }

  /** Quoted passages, kept as they are now (引文锚). */
  async #cite(tree: TreeRow, nodeId: string, citations: Ask['citations']): Promise<void> {
    const { trees, contents, ids, log } = this.#deps
    for (const [index, citation] of citations.entries()) {
      const source = await trees.node(tree.owner_id, citation.node_id)
      const text = source ? textOf(partsOf(source)) : ''
      if (!source || !source.sealed || source.deleted || source.content_id === null || citation.to > text.length) {
        const path = `citations[${index}].${source && citation.to > text.length ? 'to' : 'node_id'}`
        throw new LingtaiError('validation_failed', 'A cited passage is not there.', { errors: [{ path, message: 'no such passage' }] })
      }
      const snapshot = await contents.put({
        owner_id: tree.owner_id,
        media_type: 'text/plain',
        content: text.slice(citation.from, citation.to).toWellFormed(),
        derived_from: [source.content_id],
      })
      const id = ids.next()
      await trees.insertCitation({
        id,
        owner_id: tree.owner_id,
        node_id: nodeId,
        source_tree_id: source.tree_id,
        source_node_id: source.id,
        range_from: citation.from,
        range_to: citation.to,
        list_position: index,
        snapshot_content_id: snapshot.id,
      })
      await log.append({
        stream: `tree:${tree.id}`,
        ownerId: tree.owner_id,
        events: [
          this.#event({
            type: 'citation.created',
            payload: { citation_id: id, node_id: nodeId, source_node_id: source.id, snapshot_content_id: snapshot.id },
            content_digests: [contentDigest(snapshot.id, snapshot.digest)],
          }),
        ],
      })
    }
  }

  async #moveHead(tree: TreeRow, nodeId: string, cause: 'ask' | 'edit'): Promise<void> {
    const { trees, log } = this.#deps
    tree.revision = await trees.moveHead(tree.id, nodeId)
    await log.append({
      stream: `tree:${tree.id}`,
      ownerId: tree.owner_id,
      events: [this.#event({ type: 'head.moved', payload: { from_node_id: tree.head_node_id, to_node_id: nodeId, cause } })],
    })
    tree.head_node_id = nodeId
  }

  async #request(tree: TreeRow, question: PathNode, effort: Ask['effort'], newerHead: boolean): Promise<RunAccepted & { characterId: string }> {
    const { runs, ids, log, clock, views } = this.#deps
    const characterId = tree.character_ids[0]
    if (characterId === undefined) throw new LingtaiError('wrong_state', 'No character lives in this tree.')
    if (await runs.isKilled({ owner_id: tree.owner_id, character_id: characterId })) throw new LingtaiError('killed')
    const runId = ids.next()
    const candidateId = ids.next()
    const queueExpiresAt = new Date(clock.now().getTime() + QUEUE_EXPIRY_MS)
    const { ticket, ahead } = await runs.insert({
      id: runId,
      owner_id: tree.owner_id,
      kind: 'answer',
      seated: true,
      character_id: characterId,
      tree_id: tree.id,
      question_id: question.id,
      candidate_id: candidateId,
      trace_id: ids.next(),
      settings: { seed: ids.seed(), ...(effort ? { effort } : {}) },
      queueExpiresAt,
    })
    const envelope = { run_id: runId, character_id: characterId }
    await log.append({
      stream: `run:${runId}`,
      ownerId: tree.owner_id,
      events: [
        this.#event({
          type: 'run.requested',
          payload: { kind: 'answer', tree_id: tree.id, question_id: question.id, candidate_id: candidateId, parent_run_id: null, ticket },
          trust: 'trusted',
          ...envelope,
        }),
        ...(ahead > 0 ? [this.#event({ type: 'run.queued', payload: { position: ahead, expires_at: queueExpiresAt.toISOString() }, ...envelope })] : []),
      ],
    })
    return {
      characterId,
      run_id: runId,
      tree_id: tree.id,
      question: await views.node(question),
      question_id: question.id,
      candidate_id: candidateId,
      state: 'queued',
      queue_position: ahead,
      revision: tree.revision,
      newer_head: newerHead,
      events_url: eventsUrl(runId),
    }
  }

  /** After the commit: whoever can run it may start. */
  #announce({ characterId, ...accepted }: RunAccepted & { characterId: string }): RunAccepted {
    this.#deps.unitOfWork.afterCommit(() => this.#deps.seat.announce(characterId))
    return accepted
  }

  #event<T extends Omit<NewEvent, 'actor' | 'at' | 'cause'>>(event: T): T & Pick<NewEvent, 'actor' | 'at' | 'cause'> {
    return { actor: 'owner', at: this.#deps.clock.now().toISOString(), cause: { tag: 'ask' }, ...event }
  }
}

function eventsUrl(runId: string): string {
  return `/v1/runs/${runId}/events`
}
