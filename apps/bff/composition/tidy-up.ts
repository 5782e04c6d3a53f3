import type { Foundation } from './foundation.ts'
import type { BackgroundWork } from './lifecycle.ts'

const EVERY_MS = 3_600_000

/** Removes, once an hour, rows that time has made meaningless. Nothing depends on when, or on whether one replica does it or all. */
export function tidyUp({ foundation, tasks }: { foundation: Foundation; tasks: readonly (() => Promise<void>)[] }): BackgroundWork {
  const { scheduler, logger } = foundation
  return {
    name: 'tidying up',
    role: 'bff',
    start: async () => {
      let cancel = (): void => undefined
      let running: Promise<void> = Promise.resolve()
      const plan = (): void => {
        cancel = scheduler.after(EVERY_MS, () => {
          running = tidy().finally(plan)
        })
      }
      const tidy = async (): Promise<void> => {
        const results = await Promise.allSettled(tasks.map((task) => task()))
        for (const result of results)
          if (result.status === 'rejected') logger.warn({ err: result.reason as unknown }, 'tidying up failed; it is tried again')
      }
      plan()
      return async () => {
        await running
        cancel()
      }
    },
  }
}
