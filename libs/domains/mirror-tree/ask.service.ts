import { Effort, LingtaiError } from '#contracts'
import type { Ask, EventPayload, NewEvent, RunAccepted } from '#contracts'
import { CONTINUATIONS_MAX, lineageOf } from '#runtime/turn/inheritance'
import { mayHangBelow } from '#kernel/invariants/tree-rules'
import type { Refusal } from '#kernel/invariants/tree-rules'
import type { CheckpointStore } from '#kernel/ports/approval-store'
import type { Clock, Ids, Scheduler } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import type { Seat } from '#kernel/ports/seat'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { contentDigest } from '#kernel/record/chain'
import { CitationKeeper } from './citation-keeper.ts'
import type { InvariantRecord } from './invariant-record.ts'
import type { NodeViews } from './node-views.ts'
import type { PathNode, TreeRow, TreeStore } from './ports.ts'
import { SealWait } from './seal-wait.ts'

/** A queued run gives up after this long (decision 22). */
const QUEUE_EXPIRY_MS = 10 * 60_000
/** Runs of one owner that may wait or run at once. */
const WAITING_MAX = 50

export type AskDeps = {
  unitOfWork: UnitOfWork
  trees: TreeStore
  runs: RunStore
  checkpoints: CheckpointStore
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

/** The question to answer, and what the tree's stream is told of it when the run is requested. */
type Asked = { question: PathNode; events: readonly NewEvent[] }

/** Step 1 of a turn: question, run and their events in one transaction (spec/1). */
export class AskService {
  readonly #deps: AskDeps
  readonly #citations: CitationKeeper
  readonly #wait: SealWait

  constructor(deps: AskDeps) {
    this.#deps = deps
    this.#citations = new CitationKeeper(deps)
    this.#wait = new SealWait(deps)
  }

  /** The node to ask below. Waits for an answer that is being stopped, so it is called outside a unit of work. */
  settledParent(ownerId: string, treeId: string, ask: Pick<Ask, 'parent_id' | 'revision'>): Promise<string> {
    return this.#wait.parent(ownerId, treeId, ask)
  }

  /** Waits for a question's answer that is being stopped; refuses while it is being written. Outside a unit of work. */
  settledQuestion(ownerId: string, nodeId: string): Promise<void> {
    return this.#wait.question(ownerId, nodeId)
  }

  /** A person asks below a node of the tree: the one that `settledParent` answered. */
  async ask(ownerId: string, treeId: string, ask: Ask): Promise<RunAccepted> {
    const accepted = await this.#deps.unitOfWork.run(async () => {
      const parentId = ask.parent_id ?? (await this.#deps.trees.find(ownerId, treeId))?.head_node_id
      if (parentId === undefined) throw new LingtaiError('not_found')
      const place = await this.#place(ownerId, treeId, parentId, 'ask')
      // Against the tree as it was before this question moved it on (case T3).
      const newerHead = ask.revision !== undefined && ask.revision < place.tree.revision
      const asked = await this.#addQuestion(place, ask)
      return this.#request(place.tree, asked, { effort: ask.effort, newerHead })
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
      const { tree, parent: question } = await this.#place(ownerId, node.tree_id, parent.id, 'regenerate')
      if (await this.#deps.runs.liveUnder(question.id))
        return this.#refuse({ invariant: 'M1', code: 'candidate_open' }, question, 'regenerate')
      const headBefore = tree.head_node_id
      const events = [await this.#moveHead(tree, question.id, 'ask')]
      return this.#request(tree, { question, events }, { effort: options.effort, headBefore })
    })
    return this.#announce(accepted)
  }

  /**
   * Goes on with an answer that ended before it was done, out of budget or length or because its process left, in a run with a budget of its
   * own: another candidate, which begins with what the partial says (K5, K6; M1: the partial stays).
   */
  async continue(ownerId: string, runId: string): Promise<RunAccepted> {
    const { runs, unitOfWork } = this.#deps
    const former = await runs.find(ownerId, runId)
    if (!former) throw new LingtaiError('not_found')
    const { tree_id: treeId, question_id: questionId } = former
    if (treeId === null || questionId === null) throw new LingtaiError('wrong_state', 'Only an answer can be continued.')
    const accepted = await unitOfWork.run(async () => {
      const { tree, parent: question } = await this.#place(ownerId, treeId, questionId, 'continue')
      if (await runs.liveUnder(question.id)) return this.#refuse({ invariant: 'M1', code: 'candidate_open' }, question, 'continue')
      const shared = await this.#sharedPrefix(former)
      const headBefore = tree.head_node_id
      const events = [await this.#moveHead(tree, question.id, 'ask')]
      return this.#request(
        tree,
        { question, events },
        { effort: effortOf(former), headBefore, continues: { run_id: former.id, ...shared } },
      )
    })
    return this.#announce(accepted)
  }

  /** Where a run's chain ends that left a checkpoint there; refuses what cannot be gone on with. */
  async #sharedPrefix(former: RunRow): Promise<{ seq: number; hash: string }> {
    const { runs, trees, checkpoints, log } = this.#deps
    const [checkpoint, head, answer, lineage] = await Promise.all([
      checkpoints.latest(former.id),
      log.head(`run:${former.id}`),
      former.candidate_id === null ? null : trees.node(former.owner_id, former.candidate_id),
      lineageOf(former, runs),
    ])
    if (former.state !== 'interrupted' || !head || checkpoint?.event_offset !== head.seq)
      throw new LingtaiError(
        'wrong_state',
        'Only an answer that ran out of budget or length, or whose process had to leave, can be continued.',
      )
    if (head.quarantined) throw new LingtaiError('chain_broken')
    if (answer?.deleted) throw new LingtaiError('wrong_state', 'What it said was deleted.')
    if (lineage.length >= CONTINUATIONS_MAX) throw new LingtaiError('wrong_state', 'It was continued as often as an answer can be.')
    return { seq: head.seq, hash: Buffer.from(head.hash).toString('hex') }
  }

  /** Editing a question forks: a new question beside it, answered anew (M2). */
  async editQuestion(ownerId: string, node: PathNode, edit: { text: string; effort?: Ask['effort'] }): Promise<RunAccepted> {
    const parentId = node.parent_id
    if (parentId === null) throw new LingtaiError('wrong_state', 'The root has no text.')
    const accepted = await this.#deps.unitOfWork.run(async () => {
      const place = await this.#place(ownerId, node.tree_id, parentId, 'edit')
      const original = await this.#deps.trees.node(ownerId, node.id)
      if (!original) throw new LingtaiError('not_found')
      if (original.deleted) return this.#refuse({ invariant: 'M6', code: 'node_deleted' }, original, 'edit')
      const asked = await this.#addQuestion(place, { text: edit.text, citations: [] }, original.id)
      return this.#request(place.tree, asked, { effort: edit.effort })
    })
    return this.#announce(accepted)
  }

  async #refuse(refusal: NonNullable<Refusal>, node: PathNode, attempt: string): Promise<never> {
    return this.#deps.invariants.refuse(refusal, { ownerId: node.owner_id, treeId: node.tree_id, nodeId: node.id, attempt })
  }

  async #place(ownerId: string, treeId: string, parentId: string, attempt: string): Promise<Place> {
    const { trees, runs } = this.#deps
    const [tree, parent, waiting, isBroken] = await Promise.all([
      trees.lock(ownerId, treeId),
      trees.node(ownerId, parentId),
      runs.countWaiting(ownerId),
      trees.hasBrokenRecord(treeId, parentId),
    ])
    if (!tree || !parent || parent.tree_id !== tree.id) throw new LingtaiError('not_found')
    const refusal = mayHangBelow(parent)
    if (refusal) return this.#refuse(refusal, parent, attempt)
    if (isBroken) throw new LingtaiError('chain_broken')
    if (waiting >= WAITING_MAX) throw new LingtaiError('queue_full')
    return { tree, parent }
  }

  async #addQuestion({ tree, parent }: Place, ask: Pick<Ask, 'text' | 'citations'>, editedFromId: string | null = null): Promise<Asked> {
    const { trees, contents, ids, clock } = this.#deps
    const id = ids.next()
    const contentId = ids.next()
    // Sent together, in this order: each finds what the ones before it wrote.
    const [content, seq, , moved, question] = await Promise.all([
      contents.put({ id: contentId, owner_id: tree.owner_id, media_type: 'text/plain', content: ask.text }),
      trees.insertNode({
        id,
        tree_id: tree.id,
        owner_id: tree.owner_id,
        parent_id: parent.id,
        kind: 'question',
        role: 'user',
        sealed: true,
        partial: false,
        speaker_character_id: null,
        speaker_name: null,
        author: 'owner',
        trust: 'trusted',
        content_id: contentId,
        run_id: null,
        edited_from_id: editedFromId,
        zone: tree.zone,
        at: clock.now(),
      }),
      trees.adopt(tree.id, parent.id, id),
      this.#moveHead(tree, id, editedFromId === null ? 'ask' : 'edit'),
      trees.node(tree.owner_id, id),
    ])
    if (!question) throw new LingtaiError('internal_error')
    const added = this.#event({
      type: 'node.added',
      payload: {
        node_id: id,
        parent_id: parent.id,
        kind: 'question',
        role: 'user',
        node_seq: seq,
        content_id: contentId,
        run_id: null,
        edited_from_id: editedFromId,
      },
      trust: 'trusted',
      content_digests: [contentDigest(contentId, content.digest)],
    })
    const cited = await this.#citations.cite(tree, id, ask.citations)
    const citedAgain = editedFromId === null ? [] : await this.#citations.citeAgain(tree, id, editedFromId)
    return { question, events: [added, ...cited, ...citedAgain, moved] }
  }

  async #moveHead(tree: TreeRow, nodeId: string, cause: 'ask' | 'edit'): Promise<NewEvent> {
    const from = tree.head_node_id
    tree.revision = await this.#deps.trees.moveHead(tree.id, nodeId)
    tree.head_node_id = nodeId
    return this.#event({ type: 'head.moved', payload: { from_node_id: from, to_node_id: nodeId, cause } })
  }

  async #request(
    tree: TreeRow,
    { question, events: treeEvents }: Asked,
    {
      effort,
      newerHead = false,
      headBefore,
      continues,
    }: { effort?: Ask['effort']; newerHead?: boolean; headBefore?: string; continues?: EventPayload<'run.requested'>['continues'] },
  ): Promise<RunAccepted & { characterId: string }> {
    const { runs, ids, log, clock, views } = this.#deps
    const characterId = tree.character_ids[0]
    if (characterId === undefined) throw new LingtaiError('wrong_state', 'No character lives in this tree.')
    const runId = ids.next()
    const candidateId = ids.next()
    const traceId = ids.next()
    const queueExpiresAt = new Date(clock.now().getTime() + QUEUE_EXPIRY_MS)
    const requested = runs.insert({
      id: runId,
      owner_id: tree.owner_id,
      kind: 'answer',
      seated: true,
      character_id: characterId,
      tree_id: tree.id,
      question_id: question.id,
      candidate_id: candidateId,
      trace_id: traceId,
      ...(continues ? { continues_run_id: continues.run_id } : {}),
      settings: { seed: ids.seed(), ...(effort ? { effort } : {}), ...(headBefore === undefined ? {} : { head_before: headBefore }) },
      queueExpiresAt,
    })
    const envelope = { run_id: runId, character_id: characterId, trace_id: traceId }
    const runEvents = requested.then(({ ticket, ahead }) => [
      this.#event({
        type: 'run.requested',
        payload: {
          kind: 'answer',
          tree_id: tree.id,
          question_id: question.id,
          candidate_id: candidateId,
          parent_run_id: null,
          ticket,
          ...(continues ? { continues } : {}),
        },
        trust: 'trusted',
        ...envelope,
      }),
      ...(ahead > 0
        ? [this.#event({ type: 'run.queued', payload: { position: ahead, expires_at: queueExpiresAt.toISOString() }, ...envelope })]
        : []),
    ])
    // Sent together; whatever is refused takes the rest back with it.
    const [{ ahead }, killed, view] = await Promise.all([
      requested,
      runs.isKilled({ owner_id: tree.owner_id, character_id: characterId }),
      views.node(question),
      log.append(
        { stream: `run:${runId}`, ownerId: tree.owner_id, events: runEvents },
        { stream: `tree:${tree.id}`, ownerId: tree.owner_id, events: treeEvents },
      ),
    ])
    if (killed) throw new LingtaiError('killed')
    return {
      characterId,
      run_id: runId,
      tree_id: tree.id,
      question: view,
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

/** The effort that was chosen for a run. */
function effortOf({ settings: { effort } }: RunRow): Ask['effort'] {
  return Effort.safeParse(effort).data
}

function eventsUrl(runId: string): string {
  return `/v1/runs/${runId}/events`
}
