import { LingtaiError } from '#contracts'
import type { FieldError } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { EventLog } from '#kernel/ports/event-log'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { Refusal } from '#kernel/invariants/tree-rules'

/** Who tried what, where; `attempt` is a slug. */
export type InvariantAttempt = { ownerId: string; treeId: string; nodeId: string | null; runId?: string; attempt: string }

/** An attempt against a mirror-tree invariant: refused, and recorded in a transaction of its own (spec/2). */
export class InvariantRecord {
  readonly #unitOfWork: UnitOfWork
  readonly #log: EventLog
  readonly #clock: Clock

  constructor({ unitOfWork, log, clock }: { unitOfWork: UnitOfWork; log: EventLog; clock: Clock }) {
    this.#unitOfWork = unitOfWork
    this.#log = log
    this.#clock = clock
  }

  /** Throws the refusal; it is recorded at once, or after the unit of work that it stands in has rolled back. */
  async refuse(refusal: NonNullable<Refusal>, attempt: InvariantAttempt, errors: readonly FieldError[] = []): Promise<never> {
    await this.#unitOfWork.afterRollback(() => this.#record(refusal, attempt))
    throw new LingtaiError(refusal.code, undefined, { errors, data: { invariant: refusal.invariant } })
  }

  async #record(refusal: NonNullable<Refusal>, attempt: InvariantAttempt): Promise<void> {
    await this.#unitOfWork.run(() =>
      this.#log.append({
        stream: `tree:${attempt.treeId}`,
        ownerId: attempt.ownerId,
        events: [
          {
            type: 'invariant.refused',
            payload: { invariant: refusal.invariant, node_id: attempt.nodeId, run_id: attempt.runId ?? null, attempt: attempt.attempt },
            actor: 'owner',
            at: this.#clock.now().toISOString(),
            cause: { tag: attempt.attempt },
          },
        ],
      }),
    )
  }
}
