import type { NewEvent } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunCommandRow, RunRow, RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { chainEvents, contentDigest } from '#kernel/record/chain'
import type { ChainedEvent, StreamHead } from '#kernel/record/chain'
import type { RunAction, RunEvent } from '#kernel/reducer/actions'
import { foldAnswer } from './fold-answer.ts'
import type { FoldSegment, FoldSteer } from './fold-answer.ts'
import type { SproutKeeper } from './ports.ts'

/** Puts the run's envelope on what the reducer decided. */
export function envelopEvents(run: RunRow, events: readonly RunEvent[], options: { at: string; cause: NewEvent['cause']; actor: string }): NewEvent[] {
  return events.map((event) => ({
    ...event,
    run_id: run.id,
    character_id: run.character_id,
    trace_id: run.trace_id,
    trust: 'workspace',
    ...options,
  }))
}

export type RunSealerDeps = { unitOfWork: UnitOfWork; log: EventLog; runs: RunStore; contents: ContentStore; sprouts: SproutKeeper; clock: Clock }

/**
 * The end of a run in one transaction: the answer folded and its candidate sealed, the last events written, the run closed, the seat free
 * (M7, M9). Used by the run's owner and by whoever takes a dead one over.
 */
export class RunSealer {
  readonly #deps: RunSealerDeps

  constructor(deps: RunSealerDeps) {
    this.#deps = deps
  }

  /** Answers the events written, or null when the run is somebody else's by now. */
  async seal(input: {
    run: RunRow
    head: StreamHead
    action: Extract<RunAction, { type: 'seal' }>
    cause: NewEvent['cause']
    segments: readonly FoldSegment[]
    steers: readonly FoldSteer[]
    /** The salt under which the answer's digest was already announced (result.pre_accept). */
    answerSalt?: Uint8Array
  }): Promise<ChainedEvent[] | null> {
    const { run, action } = input
    const { unitOfWork, log, runs, contents, sprouts, clock } = this.#deps
    return unitOfWork.run(async () => {
      if (!(await runs.holdFence(run.id, run.fence))) return null
      const candidateId = input.segments.length > 0 ? run.candidate_id : null
      if (candidateId !== null) {
        const folded = foldAnswer(input.segments, input.steers)
        await contents.put({
          id: candidateId,
          owner_id: run.owner_id,
          media_type: 'text/plain',
          content: folded.body,
          layout: folded.layout,
          derived_from: folded.derivedFrom,
          ...(input.answerSalt ? { salt: input.answerSalt } : {}),
        })
        await sprouts.seal({ run, contentId: candidateId, partial: action.partial })
        await runs.deleteSegments(run.id)
      }
      const open = await runs.openCommands(run.id)
      const events = [...(await this.#lateSteers(open, action.events, input.segments.length)), ...action.events]
      const { chained } = chainEvents({
        stream: `run:${run.id}`,
        ownerId: run.owner_id,
        head: input.head,
        events: envelopEvents(run, events, { at: clock.now().toISOString(), cause: input.cause, actor: 'kernel' }),
      })
      await log.write(chained)
      await runs.recordCommands(
        open.map((command) => command.id),
        false,
      )
      if (!(await runs.end({ id: run.id, fence: run.fence, state: action.outcome, reason: action.reason }))) throw new FenceLostError(run.id)
      return chained
    })
  }

  /** Interjections that were accepted while the run was ending: in the record as unused, not lost (case Q6). */
  async #lateSteers(open: readonly RunCommandRow[], events: readonly RunEvent[], afterSegments: number): Promise<RunEvent[]> {
    const told = new Set(events.flatMap((event) => (event.type === 'steer.received' ? [event.payload.command_id] : [])))
    const late = open.filter((command) => command.kind === 'steer' && !told.has(command.id))
    const contents = await this.#deps.contents.get(late.flatMap((command) => command.content_id ?? []))
    return late.flatMap((command): RunEvent[] => {
      const content = command.content_id === null ? undefined : contents.get(command.content_id)
      if (!content) return []
      return [
        {
          type: 'steer.received',
          payload: { command_id: command.id, content_id: content.id, used: false, after_segments: afterSegments },
          content_digests: [contentDigest(content.id, content.digest)],
        },
      ]
    })
  }
}

/** Cannot happen while the run's row is locked; if it does, the transaction must not commit. */
export class FenceLostError extends Error {
  constructor(runId: string) {
    super(`run ${runId} was taken over while it was being sealed`)
    this.name = 'FenceLostError'
  }
}
