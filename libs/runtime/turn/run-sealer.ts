import type { EventPayload, NewEvent, Trust } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import type { RunCommandRow, RunRow, RunStore } from '#kernel/ports/run-store'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { chainEvents, contentDigest } from '#kernel/record/chain'
import type { ChainedEvent, StreamHead } from '#kernel/record/chain'
import type { RunAction, RunEvent } from '#kernel/reducer/actions'
import { REDUCER_VERSION } from '#kernel/reducer/state'
import { applyEffectEvents } from './effect-events.ts'
import { foldAnswer } from './fold-answer.ts'
import type { FoldInsert, FoldSegment } from './fold-answer.ts'
import type { PendingContent, SproutKeeper } from './ports.ts'
import type { ActionDeps } from './action-facts.ts'

/** Puts the run's envelope on what the reducer decided. */
export function envelopEvents(
  run: RunRow,
  events: readonly RunEvent[],
  options: { at: string; cause: NewEvent['cause']; actor: string },
): NewEvent[] {
  return events.map((event) => ({
    ...event,
    run_id: run.id,
    character_id: run.character_id,
    trace_id: run.trace_id,
    trust: 'workspace',
    ...options,
  }))
}

export type RunSealerDeps = {
  unitOfWork: UnitOfWork
  log: EventLog
  runs: RunStore
  contents: ContentStore
  sprouts: SproutKeeper
  actions: Pick<ActionDeps, 'ledger' | 'approvals' | 'checkpoints'>
  clock: Clock
  ids: Pick<Ids, 'next'>
}

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
    inserts: readonly FoldInsert[]
    /** The meet of all contexts in which the answer was made; null for none (K1). */
    trust: Trust | null
    /** The salt under which the answer's digest was already announced (result.pre_accept). */
    answerSalt?: Uint8Array
    /** Contents that the last events refer to and that are not stored yet. */
    contents?: readonly PendingContent[]
    /** Milliseconds that the run has been at work, for its checkpoint. */
    spentWallMs?: number
  }): Promise<ChainedEvent[] | null> {
    const { run, action } = input
    const { unitOfWork, log, runs, contents, sprouts, actions, clock, ids } = this.#deps
    return unitOfWork.run(async () => {
      // Sent together: what comes after the first begins once that has the run's row.
      const [isOurs, open, stream] = await Promise.all([
        runs.holdFence(run.id, run.fence),
        runs.openCommands(run.id),
        log.head(`run:${run.id}`),
      ])
      if (!isOurs) return null
      const isBroken = stream?.quarantined === true
      await this.#sealAnswer({ ...input, partial: action.partial || isBroken })
      if (action.reason === 'forbidden') await sprouts.noteForbidden(run)
      if (isBroken) {
        // A broken chain takes nothing more (decision 18), but the seat must not wait for whoever looks at it.
        await endRun(runs, run, { state: 'failed', reason: 'chain_broken' })
        return []
      }
      for (const content of input.contents ?? []) await contents.put(content)
      await applyEffectEvents(run, action.events, { ...actions, now: clock.now() })
      const events = [...(await this.#lateSteers(open, action.events, input.segments.length)), ...action.events]
      const { chained, head } = chainEvents({
        stream: `run:${run.id}`,
        ownerId: run.owner_id,
        head: input.head,
        events: envelopEvents(run, events, { at: clock.now().toISOString(), cause: input.cause, actor: 'kernel' }),
      })
      const checkpoint = action.checkpoint && {
        id: ids.next(),
        run_id: run.id,
        owner_id: run.owner_id,
        event_offset: head.seq,
        reducer_version: REDUCER_VERSION,
        state: action.checkpoint,
        spent_wall_ms: input.spentWallMs ?? 0,
      }
      const used = open.map((command) => command.id)
      // Sent together and done in this order: the run's end comes last.
      await Promise.all([
        log.write(chained),
        checkpoint && actions.checkpoints.write(checkpoint),
        runs.recordCommands(used, false),
        actions.approvals.revokeOf(run.id, clock.now()),
        endRun(runs, run, { state: action.outcome, reason: action.reason }),
      ])
      return chained
    })
  }

  /** The answer as one content under its candidate; a run that said nothing leaves its tree as it found it (spec/2). */
  async #sealAnswer(
    input: Pick<Parameters<RunSealer['seal']>[0], 'run' | 'action' | 'segments' | 'inserts' | 'trust' | 'answerSalt'> & {
      partial: boolean
    },
  ): Promise<void> {
    const { contents, sprouts, runs } = this.#deps
    const { run, segments, inserts, partial, trust, answerSalt } = input
    if (!input.action.said || run.candidate_id === null) {
      // What it began with was another run's words.
      await runs.deleteSegments(run.id)
      return sprouts.wither(run)
    }
    const folded = foldAnswer(segments, inserts)
    await contents.put({
      id: run.candidate_id,
      owner_id: run.owner_id,
      media_type: 'text/plain',
      content: folded.body,
      layout: folded.layout,
      derived_from: [...new Set([...folded.derivedFrom, ...(await this.#workedOn(run))])],
      ...(answerSalt ? { salt: answerSalt } : {}),
    })
    await Promise.all([sprouts.seal({ run, contentId: run.candidate_id, partial, trust }), runs.deleteSegments(run.id)])
  }

  /**
   * What a run outside of any tree said is working material: it goes with anything that the run was shown. An answer is a message of its own,
   * which its owner keeps or deletes (decision 13).
   */
  async #workedOn(run: RunRow): Promise<string[]> {
    if (run.tree_id !== null) return []
    const contexts = await this.#deps.log.read(`run:${run.id}`, { types: ['context.projected'] })
    return contexts.flatMap(({ record }) => piecesOf(record.payload as EventPayload<'context.projected'>))
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

/** The contents that a context was made of; a run outside of any tree has no path in it. */
function piecesOf({ pieces }: EventPayload<'context.projected'>): string[] {
  return pieces.flatMap((piece) => (piece.kind === 'path' ? [] : [piece.content_id]))
}

async function endRun(
  runs: RunStore,
  run: RunRow,
  ending: { state: 'finished' | 'interrupted' | 'failed'; reason: string | null },
): Promise<void> {
  if (!(await runs.end({ id: run.id, fence: run.fence, ...ending }))) throw new FenceLostError(run.id)
}

/** Cannot happen while the run's row is locked; if it does, the transaction must not commit. */
export class FenceLostError extends Error {
  constructor(runId: string) {
    super(`run ${runId} was taken over while it was being sealed`)
    this.name = 'FenceLostError'
  }
}
