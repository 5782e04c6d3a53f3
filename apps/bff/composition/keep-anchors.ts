import { ForeignAnchorError } from '#domains/record/anchor.service'
import type { AnchorService } from '#domains/record/anchor.service'
import type { Foundation } from './foundation.ts'
import type { BackgroundWork } from './lifecycle.ts'

/** How long after the start the first round is. */
export const FIRST_ANCHOR_MS = 15_000
const EVERY_MS = 300_000

/**
 * Anchors what moved, now and then and at an orderly end. Any process may: the database lets one at a time, and whoever finds nothing new
 * writes nothing but its own home's copies of what stands outside the database.
 */
export function keepAnchors({
  foundation,
  anchors,
  keepFiles,
}: {
  foundation: Foundation
  anchors: Pick<AnchorService, 'anchor'>
  keepFiles: () => Promise<void>
}): BackgroundWork {
  const { scheduler, logger } = foundation
  const round = async (): Promise<void> => {
    try {
      await anchors.anchor()
      await keepFiles()
    } catch (error) {
      if (error instanceof ForeignAnchorError) logger.error(error.message)
      else logger.warn({ err: error }, 'anchoring failed; it is tried again')
    }
  }
  return {
    name: 'anchors',
    role: 'any',
    start: () => {
      let cancel = (): void => undefined
      let running: Promise<void> = Promise.resolve()
      const plan = (milliseconds: number): void => {
        cancel = scheduler.after(milliseconds, () => {
          running = round().finally(() => plan(EVERY_MS))
        })
      }
      plan(FIRST_ANCHOR_MS)
      return Promise.resolve(async () => {
        await running
        cancel()
        await round()
      })
    },
  }
}
