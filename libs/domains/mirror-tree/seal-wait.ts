import { LingtaiError } from '#contracts'
import type { Ask } from '#contracts'
import { mayHangBelow } from '#kernel/invariants/tree-rules'
import type { Scheduler } from '#kernel/ports/clock'
import type { RunStore } from '#kernel/ports/run-store'
import type { InvariantRecord } from './invariant-record.ts'
import type { TreeStore } from './ports.ts'

/** How long an ask below a closing sprout waits for its seal (decision 23, case T5). */
const SEAL_WAIT_MS = 15_000
const SEAL_POLL_MS = 20

export type SealWaitDeps = { trees: TreeStore; runs: RunStore; invariants: InvariantRecord; scheduler: Scheduler }

/** Finds where an ask may hang, and waits for what is being stopped there. Everything here is called outside a unit of work. */
export class SealWait {
  readonly #deps: SealWaitDeps

  constructor(deps: SealWaitDeps) {
    this.#deps = deps
  }

  /**
   * The node to ask below: an answer that is being stopped is waited for, one that is being written is refused. Whoever named no parent
   * and has not seen the newest question gets a branch of their own beside it (case T3).
   */
  async parent(ownerId: string, treeId: string, ask: Pick<Ask, 'parent_id' | 'revision'>): Promise<string> {
    const { trees, runs, invariants } = this.#deps
    const tree = await trees.find(ownerId, treeId)
    if (!tree) throw new LingtaiError('not_found')
    const node = await trees.node(ownerId, ask.parent_id ?? tree.head_node_id)
    if (!node) return this.#reservedParent(ownerId, treeId, ask.parent_id ?? tree.head_node_id)
    if (node.tree_id !== treeId) throw noSuchParent()
    const refusal = mayHangBelow(node)
    if (refusal?.code === 'candidate_open' && node.run_id !== null && node.parent_id !== null) {
      return this.#afterSeal({ ownerId, treeId, runId: node.run_id, candidateId: node.id, questionId: node.parent_id, attempt: 'ask' })
    }
    if (refusal) return invariants.refuse(refusal, { ownerId, treeId, nodeId: node.id, attempt: 'ask' })
    const live = node.id === tree.head_node_id ? await runs.liveUnder(node.id) : null
    if (!live?.candidate_id) return node.id
    const below = { ownerId, treeId, runId: live.id, candidateId: live.candidate_id, questionId: node.id, attempt: 'ask' }
    // Named explicitly, a question may be gone on from while it is being answered: it is sealed.
    if (ask.parent_id !== undefined) return this.#afterSeal({ ...below, otherwise: node.id })
    const unseen = ask.revision !== undefined && ask.revision < tree.revision && node.parent_id !== null
    return this.#afterSeal(unseen ? { ...below, otherwise: node.parent_id ?? node.id } : below)
  }

  /** A reserved candidate without a row yet: its run tells whether it will ever have one. */
  async #reservedParent(ownerId: string, treeId: string, candidateId: string): Promise<string> {
    const run = await this.#deps.runs.byCandidate(candidateId)
    if (run?.owner_id !== ownerId || run.tree_id !== treeId || run.question_id === null) throw noSuchParent()
    return this.#afterSeal({ ownerId, treeId, runId: run.id, candidateId, questionId: run.question_id, attempt: 'ask' })
  }

  /** Waits for the answer of a node's question that is being stopped; refuses while it is being written. */
  async question(ownerId: string, nodeId: string): Promise<void> {
    const { trees, runs } = this.#deps
    const node = await trees.node(ownerId, nodeId)
    const questionId = node?.kind === 'candidate' ? node.parent_id : nodeId
    const live = questionId === null ? null : await runs.liveUnder(questionId)
    if (!live?.candidate_id || live.question_id === null || live.tree_id === null) return
    await this.#afterSeal({
      ownerId,
      treeId: live.tree_id,
      runId: live.id,
      candidateId: live.candidate_id,
      questionId: live.question_id,
      attempt: 'regenerate',
    })
  }

  /**
   * Waits for a run that is being cancelled; its candidate, or its question when it said nothing, is the parent then (case T5). One that is
   * being written gives `otherwise`, or is refused.
   */
  async #afterSeal(below: {
    ownerId: string
    treeId: string
    runId: string
    candidateId: string
    questionId: string
    attempt: string
    otherwise?: string
  }): Promise<string> {
    const { runs, trees, scheduler, invariants } = this.#deps
    for (let waited = 0; waited <= SEAL_WAIT_MS; waited += SEAL_POLL_MS) {
      const run = await runs.get(below.runId)
      if (!run || run.ended_at !== null) return (await trees.node(below.ownerId, below.candidateId)) ? below.candidateId : below.questionId
      const closing = (await runs.openCommands(below.runId)).some((command) => command.kind === 'cancel')
      if (!closing) {
        // The run may have ended between the two reads; then there is nothing left to refuse.
        const again = await runs.get(below.runId)
        if (!again || again.ended_at !== null) continue
        if (below.otherwise !== undefined) return below.otherwise
        const attempt = {
          ownerId: below.ownerId,
          treeId: below.treeId,
          nodeId: below.candidateId,
          runId: below.runId,
          attempt: below.attempt,
        }
        return invariants.refuse({ invariant: 'M1', code: 'candidate_open' }, attempt)
      }
      await new Promise<void>((resolve) => scheduler.after(SEAL_POLL_MS, resolve))
    }
    throw new LingtaiError('candidate_open', 'The answer is still being stopped.', { data: { run_id: below.runId } })
  }
}

function noSuchParent(): LingtaiError {
  return new LingtaiError('not_found', 'There is no such parent node.', { errors: [{ path: 'parent_id', message: 'unknown node' }] })
}
