import { describe, expect, it } from 'vitest'
import type { VerifyReport } from '#contracts'
import { createLogger } from '#infra/logging/logger'
import { Lifecycle } from './lifecycle.ts'
import { verifyNowAndThen } from './verify-now-and-then.ts'

const report: VerifyReport = { streams: 1, events: 1, intact: true, faults: [], anchors: { count: 0, filed: 0 }, milliseconds: 1 }

describe('verification in the background', () => {
  it('goes on by itself, past a failure, and is told when the process ends', async () => {
    const due: (() => void)[] = []
    const scheduler = {
      after: (_milliseconds: number, callback: () => void) => {
        due.push(callback)
        return () => void due.splice(due.indexOf(callback), 1)
      },
    }
    const logger = createLogger('silent')
    const lifecycle = new Lifecycle(logger)
    const signals: (AbortSignal | undefined)[] = []
    const verifyAll = ({ signal }: { signal?: AbortSignal } = {}): Promise<VerifyReport> => {
      signals.push(signal)
      return signals.length === 1 ? Promise.reject(new Error('the database is away')) : Promise.resolve(report)
    }
    const end = await verifyNowAndThen({ foundation: { scheduler, logger, lifecycle }, verify: { verifyAll } }).start()
    for (let round = 1; round <= 2; round++) {
      due.shift()?.()
      await expect.poll(() => due.length).toBe(1)
      expect(signals).toHaveLength(round)
    }
    lifecycle.beginStopping()
    expect(signals[0]?.aborted).toBe(true)
    await end()
    expect(due).toEqual([])
  })
})
