import { useEffect, useEffectEvent, useState } from 'react'
import type { RunStreamEvent, RunView } from '#contracts'
import { followRun, SequenceBroken } from '../../api/follow-run.ts'
import { runApi } from '../../api/endpoints.ts'
import { actionsChanged } from '../actions/data.ts'
import type { LiveState } from './live-state.ts'
import { foldRunEvent, initialLiveState } from './live-state.ts'

const sayAfterMilliseconds = 3000
const queuePollMilliseconds = 2000
const runPollMilliseconds = 3000

/** Events after which other questions wait, or other outcomes are open, than before. */
const changesActions: ReadonlySet<string> = new Set<RunStreamEvent['type']>([
  'approval.requested',
  'run.suspended',
  'run.resumed',
  'run.interrupted',
  'run.failed',
])

export type LiveRun = {
  state: LiveState
  /** The line has been down for three seconds. */
  reconnecting: boolean
  /** The events cannot be joined; the answer appears when it is done. */
  broken: boolean
  /** Who holds the seat, while the run waits for it. */
  queue: Pick<RunView, 'queue_position' | 'seat_held_by'> | null
}

/**
 * Follows one run while it is shown: one fetch stream per tab, only while the run lives (decision 29). `onEnd` is called once, after the
 * terminal event or when the run is gone.
 */
export function useLiveRun(runId: string | null, onEnd: (runId: string, state: LiveState) => void): LiveRun | null {
  const [live, setLive] = useState<LiveRun | null>(null)
  const ended = useEffectEvent(onEnd)

  useEffect(() => {
    if (runId === null) {
      setLive(null)
      return
    }
    const abort = new AbortController()
    let state = initialLiveState(runId)
    let waiting: RunStreamEvent[] = []
    let frame = 0
    let sayTimer: ReturnType<typeof setTimeout> | undefined
    setLive({ state, reconnecting: false, broken: false, queue: null })
    const change = (part: Partial<LiveRun>) => setLive((before) => (before === null ? before : { ...before, ...part }))

    // Many deltas may come within one frame: they are folded together, once per frame.
    const flush = () => {
      cancelAnimationFrame(frame)
      frame = 0
      for (const event of waiting) state = foldRunEvent(state, event)
      if (waiting.some((event) => changesActions.has(event.type))) actionsChanged()
      waiting = []
      change({ state })
    }
    const finish = () => {
      if (!abort.signal.aborted) ended(runId, state)
    }

    followRun({
      runId,
      signal: abort.signal,
      listener: {
        onEvent(event) {
          waiting.push(event)
          if (document.visibilityState === 'hidden') flush()
          else if (frame === 0) frame = requestAnimationFrame(flush)
        },
        onConnected(connected) {
          if (connected) {
            clearTimeout(sayTimer)
            sayTimer = undefined
            setLive((before) => (before === null || !before.reconnecting ? before : { ...before, reconnecting: false }))
          } else {
            sayTimer ??= setTimeout(() => change({ reconnecting: true }), sayAfterMilliseconds)
          }
        },
        onRestart() {
          waiting = []
          state = initialLiveState(runId)
        },
      },
    }).then(
      () => {
        flush()
        finish()
      },
      (error: unknown) => {
        if (abort.signal.aborted) return
        if (error instanceof SequenceBroken) {
          change({ broken: true })
          void waitForEnd(runId, abort.signal).then(finish, finish)
        } else {
          // The run is not to be had (deleted, another owner's, signed out): what the log holds is read again.
          finish()
        }
      },
    )
    return () => {
      abort.abort()
      clearTimeout(sayTimer)
      cancelAnimationFrame(frame)
    }
  }, [runId])

  const queued = live?.state.phase === 'queued' ? live.state.runId : null
  useEffect(() => {
    if (queued === null) return
    const abort = new AbortController()
    const look = () => {
      runApi.read(queued, abort.signal).then(
        (run) =>
          setLive((before) =>
            before?.state.runId === run.id
              ? { ...before, queue: { queue_position: run.queue_position, seat_held_by: run.seat_held_by } }
              : before,
          ),
        () => undefined, // the stream tells what becomes of the run; this only names who is before it
      )
    }
    look()
    const timer = setInterval(look, queuePollMilliseconds)
    return () => {
      abort.abort()
      clearInterval(timer)
    }
  }, [queued])

  return live
}

async function waitForEnd(runId: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const run = await runApi.read(runId, signal)
    if (run.ended_at !== null) return
    await new Promise((resolve) => setTimeout(resolve, runPollMilliseconds))
    signal.throwIfAborted()
  }
}
