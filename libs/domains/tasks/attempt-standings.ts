import type { EventPayload, NewEvent, SuspendReason } from '#contracts'
import type { RunRow } from '#kernel/ports/run-store'
import type { AttemptRow, TaskRow } from '#kernel/ports/task-store'
import { isCancelledTask } from '#kernel/tasks/task-state'
import type { AttemptCheckpoints } from './attempt-checkpoints.ts'
import type { TaskDeps } from './deps.ts'

type Standing = Pick<NewEvent<'run.suspended'>, 'type' | 'payload'> | Pick<NewEvent<'run.resumed'>, 'type' | 'payload'>
type Waiting = EventPayload<'run.suspended'>

/**
 * The run of an attempt that others drive: suspended with a checkpoint while it waits for them, for its owner or for an effect, and resumed
 * when that is there ("Events"). Its row, its stream and the checkpoint change together, inside a unit of work that holds the task.
 */
export class AttemptStandings {
  readonly #deps: TaskDeps
  readonly #checkpoints: AttemptCheckpoints

  constructor(deps: TaskDeps, checkpoints: AttemptCheckpoints) {
    this.#deps = deps
    this.#checkpoints = checkpoints
  }

  /** The run waits; where it waits for the same already, nothing changes. */
  async suspend(task: TaskRow, attempt: Pick<AttemptRow, 'id' | 'workspace_ref'>, reason: SuspendReason): Promise<void> {
    const run = await this.#lock(task, attempt)
    if (!run) return
    const waiting = await this.#waiting(run)
    if (waiting?.reason === reason && run.state === 'suspended') return
    const checkpointId = await this.#checkpoints.write(task, attempt)
    const suspended: Standing = { type: 'run.suspended', payload: { reason, checkpoint_id: checkpointId } }
    await this.#append(run, [...(waiting ? [resumed(run, waiting)] : []), suspended])
    await this.#deps.store.park(run.id, reason)
  }

  /** What the run waited for is there. It stands to be taken up again; a run that waits for nothing stays as it is. */
  async resume(task: TaskRow, attempt: Pick<AttemptRow, 'id'>, from: SuspendReason): Promise<void> {
    const run = await this.#lock(task, attempt)
    const waiting = run && (await this.#waiting(run))
    if (waiting?.reason !== from || run?.state !== 'suspended') return
    await this.#append(run, [resumed(run, waiting)])
    await this.#deps.runs.requeue(run.id)
  }

  /** The event that has to stand before the end of a run that still waits, where it does not end by being left. */
  async resumption(run: RunRow): Promise<Standing | null> {
    const waiting = await this.#waiting(run)
    return waiting && resumed(run, waiting)
  }

  /** Null for a run that is over, or that is about to be ended by a cancellation of its own: nothing is written beside that. */
  async #lock(task: TaskRow, attempt: Pick<AttemptRow, 'id'>): Promise<RunRow | null> {
    const { runs } = this.#deps
    const run = await runs.lock(task.owner_id, attempt.id)
    if (!run || run.ended_at !== null) return null
    const isLeft = !isCancelledTask(task.status) && (await runs.openCommands(run.id)).some(({ kind }) => kind === 'cancel')
    return isLeft ? null : run
  }

  /** What the run's stream says last, where that is that it waits. */
  async #waiting(run: RunRow): Promise<Waiting | null> {
    const { log } = this.#deps
    const stream = `run:${run.id}`
    const head = await log.head(stream)
    const [last] = head ? await log.read(stream, { after: head.seq - 1, limit: 1 }) : []
    return last?.record.type === 'run.suspended' ? (last.record.payload as Waiting) : null
  }

  async #append(run: RunRow, events: readonly Standing[]): Promise<void> {
    const { log, clock } = this.#deps
    const envelope = {
      run_id: run.id,
      character_id: run.character_id,
      trace_id: run.trace_id,
      actor: 'kernel',
      at: clock.now().toISOString(),
      cause: { tag: 'sync' },
    } as const
    await log.append({ stream: `run:${run.id}`, ownerId: run.owner_id, events: events.map((event) => ({ ...event, ...envelope })) })
  }
}

function resumed(run: Pick<RunRow, 'fence'>, { checkpoint_id }: Waiting): Standing {
  return { type: 'run.resumed', payload: { fence: run.fence, checkpoint_id } }
}
