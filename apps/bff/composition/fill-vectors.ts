import type { Embeddings } from '#domains/memory/embeddings'
import type { Foundation } from './foundation.ts'
import type { BackgroundWork } from './lifecycle.ts'

const EVERY_MS = 60_000
/** Each round that fails doubles the pause before the next, up to this: every one leaves a request on record. */
const SELDOM_MS = 15 * 60_000

/** Gives vectors to what has none: the embedder was away, or is another one than before (case R17). Resumable, on any replica. */
export function fillVectors({ foundation, embeddings }: { foundation: Foundation; embeddings: Embeddings }): BackgroundWork {
  const { scheduler, logger, lifecycle } = foundation
  return {
    name: 'vectors',
    role: 'worker',
    start: () => {
      let cancel = (): void => undefined
      let running: Promise<void> = Promise.resolve()
      let failures = 0
      const round = async (): Promise<void> => {
        try {
          const options = { signal: lifecycle.stopping }
          const filled = await embeddings.embedMissing(options)
          failures = 0
          if (filled > 0) logger.info({ filled }, 'memories were embedded')
        } catch (error) {
          failures += 1
          if (!lifecycle.stopping.aborted) logger.warn({ err: error }, 'embedding failed; it is tried again')
        }
        if (!lifecycle.stopping.aborted) plan(Math.min(EVERY_MS * 2 ** Math.max(0, failures - 1), SELDOM_MS))
      }
      const plan = (milliseconds: number): void => {
        cancel = scheduler.after(milliseconds, () => {
          running = round()
        })
      }
      plan(0)
      return Promise.resolve(async () => {
        cancel()
        await running
      })
    },
  }
}
