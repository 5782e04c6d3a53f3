import type { Scheduler } from '#kernel/ports/clock'
import type { RunStore } from '#kernel/ports/run-store'
import type { RunHost } from './run-host.ts'

/** A sign of life this often (decision 22). */
const HEARTBEAT_MS = 5_000

type Beating = { scheduler: Scheduler; report(error: unknown, subject: string): void }

/** Gives signs of life of something that is held by lease, one after another; one that fails is told of, and the next is tried. The answer ends it. */
export function keepBeating(subject: string, { scheduler, report }: Beating, beat: () => Promise<unknown>): () => void {
  let stopped = false
  let cancel: () => void = () => undefined
  const round = (): void => {
    beat()
      .catch((error: unknown) => report(error, subject))
      .finally(() => {
        if (!stopped) cancel = scheduler.after(HEARTBEAT_MS, round)
      })
  }
  cancel = scheduler.after(HEARTBEAT_MS, round)
  return () => {
    stopped = true
    cancel()
  }
}

/** Keeps the lease of a run that holds no seat, and tells it what the database knows meanwhile. The answer ends it. */
export function keepAlive(host: RunHost, deps: Beating & { runs: RunStore }): () => void {
  return keepBeating(host.run.id, deps, async () => {
    const [held] = await deps.runs.heartbeat([host.run])
    if (!held) host.fence()
    else if (held.killed) host.kill()
    else await host.pollCommands()
  })
}
