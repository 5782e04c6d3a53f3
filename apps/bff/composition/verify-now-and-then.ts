import type { VerifyService } from '#domains/record/verify.service'
import type { Foundation } from './foundation.ts'
import type { BackgroundWork } from './lifecycle.ts'

const FIRST_MS = 3_600_000
const EVERY_MS = 24 * 3_600_000

/** Verifies the whole record in the background, so that a broken chain is quarantined though nobody asked (decision 18). */
export function verifyNowAndThen({
  foundation,
  verify,
}: {
  foundation: Pick<Foundation, 'scheduler' | 'logger' | 'lifecycle'>
  verify: Pick<VerifyService, 'verifyAll'>
}): BackgroundWork {
  const { scheduler, logger, lifecycle } = foundation
  const round = async (): Promise<void> => {
    try {
      const { intact, faults, streams, events, milliseconds } = await verify.verifyAll({ signal: lifecycle.stopping })
      if (intact) logger.info({ streams, events, milliseconds }, 'the record was verified')
      else logger.error({ faults: faults.slice(0, 20), count: faults.length }, 'the record has faults; what they lie in is quarantined')
    } catch (error) {
      if (!lifecycle.stopping.aborted) logger.warn({ err: error }, 'the record could not be verified; it is tried again')
    }
  }
  return {
    name: 'verification',
    role: 'worker',
    start: () => {
      let cancel = (): void => undefined
      let running: Promise<void> = Promise.resolve()
      const plan = (milliseconds: number): void => {
        cancel = scheduler.after(milliseconds, () => {
          running = round().finally(() => plan(EVERY_MS))
        })
      }
      plan(FIRST_MS)
      return Promise.resolve(async () => {
        await running
        cancel()
      })
    },
  }
}
