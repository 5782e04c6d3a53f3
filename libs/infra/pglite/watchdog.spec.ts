import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { startWatchdog } from './watchdog.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function watch(): { beat: () => void; onStuck: ReturnType<typeof vi.fn<() => void>>; watchdog: ReturnType<typeof startWatchdog> } {
  let beats = 0n
  const onStuck = vi.fn<() => void>()
  const watchdog = startWatchdog({ beats: () => beats, limitMs: 30_000, onStuck })
  return { beat: () => void beats++, onStuck, watchdog }
}

it('tells once when the beats stop for the limit, and again after they had come back', () => {
  const { beat, onStuck } = watch()
  vi.advanceTimersByTime(27_000)
  expect(onStuck).not.toHaveBeenCalled()
  vi.advanceTimersByTime(60_000)
  expect(onStuck).toHaveBeenCalledTimes(1)
  beat()
  vi.advanceTimersByTime(60_000)
  expect(onStuck).toHaveBeenCalledTimes(2)
})

it('is content while beats come, however slowly', () => {
  const { beat, onStuck } = watch()
  for (let at = 0; at < 20; at++) {
    vi.advanceTimersByTime(26_000)
    beat()
  }
  expect(onStuck).not.toHaveBeenCalled()
})

it('says nothing during announced work, and counts afresh after it', async () => {
  const { onStuck, watchdog } = watch()
  await watchdog.pauseDuring(async () => void vi.advanceTimersByTime(300_000))
  expect(onStuck).not.toHaveBeenCalled()
  vi.advanceTimersByTime(30_000)
  expect(onStuck).toHaveBeenCalledTimes(1)
})

it('stops', () => {
  const { onStuck, watchdog } = watch()
  watchdog.stop()
  vi.advanceTimersByTime(300_000)
  expect(onStuck).not.toHaveBeenCalled()
})
