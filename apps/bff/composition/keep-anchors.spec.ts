import { describe, expect, it } from 'vitest'
import { createLogger } from '#infra/logging/logger'
import type { Foundation } from './foundation.ts'
import { keepAnchors } from './keep-anchors.ts'

describe('anchoring', () => {
  it('goes on by itself, past a failure, and once more at the end', async () => {
    const due: (() => void)[] = []
    const scheduler = {
      after: (_milliseconds: number, callback: () => void) => {
        due.push(callback)
        return () => void due.splice(due.indexOf(callback), 1)
      },
    }
    let calls = 0
    let kept = 0
    const anchor = (): Promise<null> => {
      calls += 1
      return calls === 1 ? Promise.reject(new Error('the database is away')) : Promise.resolve(null)
    }
    const end = await keepAnchors({
      foundation: { scheduler, logger: createLogger('silent') } as unknown as Foundation,
      anchors: { anchor },
      keepFiles: () => Promise.resolve(void (kept += 1)),
    }).start()
    for (let round = 1; round <= 3; round++) {
      due.shift()?.()
      await expect.poll(() => due.length).toBe(1)
      expect(calls).toBe(round)
    }
    await end()
    expect([calls, kept]).toEqual([4, 3])
    expect(due).toEqual([])
  })
})
