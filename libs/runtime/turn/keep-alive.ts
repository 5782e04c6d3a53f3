import type { Scheduler } from '#kernel/ports/clock'
import type { RunStore } from '#kernel/ports/run-store'
import type { RunHost } from './run-host.ts'

/** A sign of life this often (decision 22). */
const HEARTBEAT_MS = 5_000

/** Keeps the lease of a run that holds no seat, and tells it what the database knows meanwhile. The answer ends it. */
export function keepAlive(
  host: RunHost,
  { runs, scheduler, report }: { runs: RunStore; scheduler: Scheduler; report(error: unknown, runId: string): void },
): () => void {
  let stopped = false
  let cancel: () => void = () => undefined
  const beat = (): void => {
    runs
      .heartbeat([host.run])
      .then(async ([held]) => {
        if (!held) host.fence()
        else if (held.killed) host.kill()
        else await host.pollCommands()
      })
      .catch((error: unknown) => report(error, host.run.id))
      .finally(() => {
        if (!stopped) cancel = scheduler.after(HEARTBEAT_MS, beat)
      })
  }
  cancel = scheduler.after(HEARTBEAT_MS, beat)
  return () => {
    stopped = true
    cancel()
  }
}
