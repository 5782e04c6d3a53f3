import type { Embeddings } from '#domains/memory/embeddings'
import type { Foundation } from './foundation.ts'
import type { BackgroundWork } from './lifecycle.ts'

const EVERY_MS = 60_000

/** Gives vectors to what has none: the embedder was away, or is another one than before (case R17). Resumable, on any replica. */
export function fillVectors({ foundation, embeddings }: { foundation: Foundation; embeddings: Embeddings }): BackgroundWork {
  const { scheduler, logger, lifecycle } = foundation
  return {
    name: 'vectors',
    role: 'worker',
    start: () => {
      let cancel = (): void => undefined
      let running: Promise<void> = Promise.resolve()
      const round = async (): Promise<void> => {
        try {
          const options = { signal: lifecycle.stopping }
          const filled = await embeddings.embedMissing(options)
          if (filled > 0) logger.info({ filled }, 'memories were embedded')
        } catch (error) {
          if (!lifecycle.stopping.aborted) logger.warn({ err: error }, 'embedding failed; it is tried again')
        }
        if (!lifecycle.stopping.aborted) plan(EVERY_MS)
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
