import { LingtaiError } from '#contracts'
import type { EvidencePackage } from '#contracts'
import { isSettled } from '#kernel/effects/effect'
import type { StoredEvent } from '#kernel/ports/event-log'
import type { StoredContent } from '#kernel/ports/content-store'
import type { TaskRow } from '#kernel/ports/task-store'
import type { AnchorSigner } from '#kernel/record/anchor'
import { canonicalJson } from '#kernel/record/canonical-json'
import { chainHash, GENESIS_HASH } from '#kernel/record/chain'
import type { TaskDeps } from './deps.ts'
import { taskStream } from './task-stream.ts'
import {
  actionOf,
  artifactView,
  attemptView,
  checkpointView,
  decisionView,
  observationView,
  taskView,
  verificationView,
} from './task-views.ts'

const PAGE = 1_000

export type EvidenceDeps = Pick<TaskDeps, 'unitOfWork' | 'store' | 'contents' | 'log'> & { signer: AnchorSigner }

/** How a task's result came about, from its rows and its streams (`003…` §1). */
export class EvidencePackages {
  readonly #deps: EvidenceDeps

  constructor(deps: EvidenceDeps) {
    this.#deps = deps
  }

  /** As it stands at one moment: whoever changes a task locks its row first. Throws not_found. */
  async of(ownerId: string, taskId: string): Promise<EvidencePackage> {
    const { unitOfWork, store } = this.#deps
    return unitOfWork.run(async () => {
      const task = (await store.find(ownerId, taskId)) && (await store.lock(taskId))
      if (!task) throw new LingtaiError('not_found')
      return this.build(task, { texts: true })
    })
  }

  /** `texts` false: digests alone, so that nothing is copied that can be erased. */
  async build(task: TaskRow, { texts }: { texts: boolean }): Promise<EvidencePackage> {
    const { store } = this.#deps
    const [attempts, actions, observations, decisions, artifacts, verifications, checkpoints, effects, approvals, commit] =
      await Promise.all([
        store.attempts(task.id),
        store.actionsOfTask(task.id),
        store.observations(task.id),
        store.decisions(task.id),
        store.artifacts(task.id),
        store.verifications(task.id),
        store.checkpoints(task.id),
        store.effects(task.id),
        store.approvals(task.id),
        store.evidence(task.id),
      ])
    const ids = [task.instruction_content_id, ...task.input_refs]
    const seen = observations.flatMap(({ content_id: id }) => id ?? [])
    const stored = await this.#deps.contents.get([...ids, task.acceptance_content_id, ...seen])
    const shown = texts ? stored : new Map<string, StoredContent>()
    const verification = verifications.at(-1) ?? null
    return this.#signed({
      lingtai_task_evidence: 1,
      task: taskView(task, shown),
      attempts: attempts.map(attemptView),
      inputs: ids.flatMap((id) => {
        const content = stored.get(id)
        return content ? [{ content_id: id, digest: hex(content.digest), text: shown.get(id)?.body ?? null }] : []
      }),
      candidate: artifacts.filter(({ candidate_id: id }) => id === verification?.candidate_id).map(artifactView),
      actions: actions.map((row) =>
        actionOf(
          row,
          actions.filter(({ attempt_id: id }) => id === row.attempt_id),
        ),
      ),
      observations: observations.map((row) => observationView(row, shown)),
      effects: effects.map((effect) => ({
        effect_id: effect.id,
        action_id: effect.action_id,
        attempt_id: effect.run_id,
        tool: effect.tool,
        state: effect.state,
        code: effect.code,
        constraints: [...effect.constraints],
        reserved_micros: effect.reserved_micros,
        cost_micros: effect.cost_micros,
        settled_at: (isSettled(effect.state) && effect.settled_at?.toISOString()) || null,
      })),
      policies: decisions.map(decisionView),
      verification: verification && verificationView(verification),
      approvals: approvals.map((approval) => ({
        approval_id: approval.id,
        action_id: approval.action_id,
        state: approval.state,
        arguments_hash: approval.arguments_hash,
        decided_by: approval.decided_by,
        decided_at: approval.decided_at?.toISOString() ?? null,
      })),
      checkpoints: checkpoints.map(checkpointView),
      final_commit: commit && { by: commit.committed_by, at: commit.at.toISOString(), digest: commit.digest },
      lineage: {
        requested_by: task.requested_by,
        commit_authority: task.commit_authority,
        character_id: task.character_id,
        parent_run_id: task.parent_run_id,
        attempt_ids: attempts.map(({ id }) => id),
      },
      proof: [await this.#proof(taskStream(task.id)), ...(await Promise.all(attempts.map(({ id }) => this.#proof(`run:${id}`))))],
    })
  }

  /** By the instance's key, as the evidence of a run is: whoever has the key can tell who said this. */
  #signed(unsigned: Omit<EvidencePackage, 'public_key' | 'signature'>): EvidencePackage {
    const { signer } = this.#deps
    return { ...unsigned, public_key: signer.publicKey, signature: signer.sign(canonicalJson(unsigned)) }
  }

  async #proof(stream: string): Promise<EvidencePackage['proof'][number]> {
    const events: StoredEvent[] = []
    for (let after = 0; ;) {
      const page = await this.#deps.log.read(stream, { after, limit: PAGE })
      events.push(...page)
      if (page.length < PAGE) break
      after = page.at(-1)?.record.seq ?? after
    }
    let hash: Uint8Array = GENESIS_HASH
    const whole = events.every((event, index) => {
      hash = chainHash(hash, event.canonical)
      return event.record.seq === index + 1 && Buffer.compare(hash, event.hash) === 0
    })
    return { stream, events: events.map(({ record, canonical, hash: own }) => ({ seq: record.seq, canonical, hash: hex(own) })), whole }
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
