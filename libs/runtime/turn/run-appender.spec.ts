import { describe, expect, it } from 'vitest'
import type { EventLog, FencedAppend } from '#kernel/ports/event-log'
import { RunAppender } from './run-appender.ts'

/** A log that takes batches one by one; a batch with `bad` in it fails as a whole, as one statement does. */
function scriptedLog(): { log: EventLog; batches: string[][]; release: () => void } {
  const batches: string[][] = []
  const first = Promise.withResolvers<void>()
  const log = {
    appendFenced: async (batch: readonly FencedAppend[]) => {
      const ids = batch.map((append) => append.runId)
      batches.push(ids)
      if (batches.length === 1) await first.promise
      if (ids.includes('bad')) throw new Error('one row is wrong')
      return new Set(ids.filter((id) => id !== 'fenced'))
    },
  }
  // Only the one method is asked for here.
  return { log: log as unknown as EventLog, batches, release: () => first.resolve() }
}

const append = (runId: string): FencedAppend => ({ runId, fence: 1, events: [], segments: [] })

describe('RunAppender', () => {
  it('gathers what comes while a statement is under way, and tells each run what became of its own', async () => {
    const { log, batches, release } = scriptedLog()
    const appender = new RunAppender(log)
    const first = appender.append(append('a'))
    await Promise.resolve()
    const rest = ['b', 'fenced', 'c'].map((id) => appender.append(append(id)))
    release()
    expect(await Promise.all([first, ...rest])).toEqual([true, true, false, true])
    expect(batches).toEqual([['a'], ['b', 'fenced', 'c']])
  })

  it('writes the others where one run’s rows are wrong', async () => {
    const { log, release } = scriptedLog()
    const appender = new RunAppender(log)
    const first = appender.append(append('a'))
    await Promise.resolve()
    const rest = ['b', 'bad', 'c'].map((id) => appender.append(append(id)))
    release()
    await first
    expect(await Promise.allSettled(rest)).toMatchObject([
      { status: 'fulfilled', value: true },
      { status: 'rejected', reason: { message: 'one row is wrong' } },
      { status: 'fulfilled', value: true },
    ])
    expect(await appender.append(append('d'))).toBe(true)
  })
})
