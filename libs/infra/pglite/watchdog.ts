/** Notices that the database worker no longer turns: a statement in it cannot be interrupted (decision 4). */

const LOOKS_PER_LIMIT = 10

export interface WatchdogOptions {
  /** A number that the watched one keeps raising. */
  beats: () => bigint
  /** Milliseconds without a beat after which `onStuck` is called; once, until beats come again. */
  limitMs: number
  onStuck: () => void
}

export interface Watchdog {
  /** Ignores silence while `work` goes on, for statements known to be long. */
  pauseDuring<T>(work: () => Promise<T>): Promise<T>
  stop(): void
}

/**
 * Counts its own looks rather than comparing clocks: where this thread itself was held up, or the machine slept, one late look is one
 * silent look and not thirty seconds of silence.
 */
export function startWatchdog({ beats, limitMs, onStuck }: WatchdogOptions): Watchdog {
  let lastBeats = beats()
  let silentLooks = 0
  let pauses = 0
  const look = (): void => {
    const current = beats()
    silentLooks = current === lastBeats && pauses === 0 ? silentLooks + 1 : 0
    lastBeats = current
    if (silentLooks === LOOKS_PER_LIMIT) onStuck()
  }
  const timer = setInterval(look, limitMs / LOOKS_PER_LIMIT)
  timer.unref()
  return {
    pauseDuring: async (work) => {
      pauses++
      try {
        return await work()
      } finally {
        pauses--
      }
    },
    stop: () => clearInterval(timer),
  }
}
