import type { SubmitAction } from '#contracts'
import type { ActionRow, TaskRow } from '#kernel/ports/task-store'
import { isSettledAction } from '#kernel/tasks/action-state'
import { ActionJudge } from './action-judge.ts'
import { ActionProposals } from './action-proposals.ts'
import { ActionSender } from './action-sender.ts'
import { ActionSettler } from './action-settler.ts'
import { AttemptCheckpoints } from './attempt-checkpoints.ts'
import { AttemptStandings } from './attempt-standings.ts'
import type { TaskDeps } from './deps.ts'
import { placeAction } from './placed-action.ts'

/**
 * The way of one action of an attempt that others drive: proposed, judged with facts of the moment, reserved and bound, sent once through
 * the broker, settled by conditional writes (`003…` §2, §3). Everything may run on any number of processes at once.
 */
export class ActionPlane {
  readonly #deps: TaskDeps
  readonly #settler: ActionSettler
  readonly #proposals: ActionProposals
  readonly #judge: ActionJudge
  readonly #sender: ActionSender

  constructor(deps: TaskDeps) {
    this.#deps = deps
    this.#settler = new ActionSettler(deps)
    this.#proposals = new ActionProposals({
      deps,
      settler: this.#settler,
      standings: new AttemptStandings(deps, new AttemptCheckpoints(deps)),
    })
    this.#judge = new ActionJudge(deps, this.#settler)
    this.#sender = new ActionSender(deps, this.#settler)
  }

  /**
   * Records an action, or finds the one that has its name. The same name for anything else is a conflict (cases E4, E5). Throws not_found,
   * wrong_state, conflict.
   */
  record(ownerId: string, taskId: string, input: Omit<SubmitAction, 'actor'> & { actor: ActionRow['actor'] }): Promise<ActionRow> {
    return this.#proposals.record(ownerId, taskId, input)
  }

  /** Takes an action as far as it can go now. Not inside a unit of work. */
  async advance(actionId: string): Promise<void> {
    // Each round ends in a later state, and there are few of them.
    for (let round = 0; round < 6; round++) {
      const placed = await placeAction(this.#deps, actionId)
      if (!placed || isSettledAction(placed.action.state)) return
      if (placed.action.state === 'dispatched' || placed.action.state === 'unknown') {
        await this.#sender.follow(placed)
        return
      }
      if ((await this.#judge.judge(placed)) === 'stays') return
    }
  }

  /** Ends what is not bound yet of a cancelled attempt. Inside a unit of work that holds the task. */
  cancelOpen(task: TaskRow, attemptId: string): Promise<void> {
    return this.#settler.cancelOpen(task, attemptId)
  }

  /** Asks what is out to stop; what becomes of it is settled as ever. */
  abort(attemptId: string): void {
    this.#sender.abort(attemptId)
  }
}
