import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { openInstance, portTiers } from '../support/port-tier.ts'
import type { Instance, Wakeups } from '../support/port-tier.ts'
import { eventually } from '../support/story.ts'

describe.each(portTiers)('JobQueue on the %s tier', (name) => {
  let instance: Instance
  let wakeups: Wakeups
  afterEach(() => instance.close())

  /** A queue of its own with a worker whose work the test decides. */
  async function work(handler: (id: string) => Promise<void> = () => Promise.resolve(), concurrency = 4) {
    instance = openInstance(name)
    wakeups = await instance.process()
    const begun: string[] = []
    const start = () =>
      wakeups.queue.work((id) => {
        begun.push(id)
        return handler(id)
      }, concurrency)
    const isBegun = (id: string, times = 1) =>
      eventually(() => Promise.resolve(begun.filter((one) => one === id).length >= times), `work number ${times} on ${id}`)
    return { begun, start, isBegun }
  }

  it('wakes a worker with the row that is to be done', async () => {
    const { begun, start, isBegun } = await work()
    await start()
    const ids = Array.from({ length: 10 }, () => randomUUID())
    for (const outboxId of ids) await wakeups.queue.wake({ outboxId })
    for (const id of ids) await isBegun(id)
    expect(begun.toSorted()).toEqual(ids.toSorted())
  })

  it('keeps what was woken before anybody worked', async () => {
    const { start, isBegun } = await work()
    const outboxId = randomUUID()
    await wakeups.queue.wake({ outboxId })
    await start()
    await isBegun(outboxId)
  })

  it('wakes a row that is due later not before it is due', async () => {
    const times = new Map<string, number>()
    const { start, isBegun } = await work((id) => {
      times.set(id, Date.now())
      return Promise.resolve()
    })
    await start()
    const [later, now, past] = [randomUUID(), randomUUID(), randomUUID()]
    const dueAt = new Date(Date.now() + 400)
    await wakeups.queue.wake({ outboxId: later, dueAt })
    await wakeups.queue.wake({ outboxId: past, dueAt: new Date(Date.now() - 60_000) })
    await wakeups.queue.wake({ outboxId: now })
    for (const id of [now, past, later]) await isBegun(id)
    expect(times.get(later)).toBeGreaterThanOrEqual(dueAt.getTime())
  })

  it('works on a row once at a time, however often it is woken, and again when it is woken afterwards', async () => {
    const gate = Promise.withResolvers<void>()
    let atOnce = 0
    let most = 0
    const [outboxId, marker] = [randomUUID(), randomUUID()]
    const { begun, start, isBegun } = await work(async (id) => {
      if (id !== outboxId) return
      most = Math.max(most, ++atOnce)
      await gate.promise
      atOnce -= 1
    })
    await start()
    for (let times = 0; times < 5; times++) await wakeups.queue.wake({ outboxId })
    await isBegun(outboxId)
    for (let times = 0; times < 5; times++) await wakeups.queue.wake({ outboxId })
    expect(most).toBe(1)
    gate.resolve()
    await eventually(() => Promise.resolve(atOnce === 0), 'the end of the work')
    // A wake-up while the row is worked on may be lost; one afterwards is not.
    await eventually(async () => {
      await wakeups.queue.wake({ outboxId })
      return begun.filter((id) => id === outboxId).length >= 2
    }, 'work after the work')
    await wakeups.queue.wake({ outboxId: marker })
    await isBegun(marker)
    expect(most).toBe(1)
  })

  it('goes on after a handler has thrown, tells of it, and takes the row again', async () => {
    const failing = new Set<string>()
    const { start, isBegun } = await work((id) => (failing.delete(id) ? Promise.reject(new Error(`${id} failed`)) : Promise.resolve()))
    await start()
    const [bad, good] = [randomUUID(), randomUUID()]
    failing.add(bad)
    await wakeups.queue.wake({ outboxId: bad })
    await wakeups.queue.wake({ outboxId: good })
    await isBegun(good)
    await eventually(
      () => Promise.resolve(wakeups.reports.some((error) => String(error).includes(`${bad} failed`))),
      'the report of the failure',
    )
    await eventually(async () => {
      await wakeups.queue.wake({ outboxId: bad })
      await isBegun(bad, 2)
      return true
    }, 'another try')
  })

  it('works on no more rows at once than it was told', async () => {
    const gate = Promise.withResolvers<void>()
    const { begun, start } = await work(() => gate.promise, 2)
    await start()
    const ids = Array.from({ length: 6 }, () => randomUUID())
    for (const outboxId of ids) await wakeups.queue.wake({ outboxId })
    await eventually(() => Promise.resolve(begun.length === 2), 'work on two rows')
    gate.resolve()
    await eventually(() => Promise.resolve(begun.length === 6), 'work on the others')
  })

  it('closes when what it works on is done, and begins nothing more', async () => {
    const gate = Promise.withResolvers<void>()
    let done = false
    const { begun, start, isBegun } = await work(async () => {
      await gate.promise
      done = true
    }, 1)
    await start()
    const [first, second] = [randomUUID(), randomUUID()]
    await wakeups.queue.wake({ outboxId: first })
    await isBegun(first)
    await wakeups.queue.wake({ outboxId: second })
    const closed = wakeups.queue.close().then(() => done)
    gate.resolve()
    expect(await closed).toBe(true)
    expect(begun).toEqual([first])
  })
})
