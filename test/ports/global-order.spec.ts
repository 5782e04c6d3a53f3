import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { GLOBAL_START } from '#kernel/ports/event-log'
import type { GlobalCursor, GlobalPage } from '#kernel/ports/event-log'
import { EventLogRepository } from '#infra/prisma/event-log.repository'
import type { HeldReader } from '#infra/prisma/event-log.repository'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier, Stores } from '../support/port-tier.ts'
import { turnStarted } from '../support/record.ts'

vi.setConfig({ testTimeout: 60_000 })

describe.each(portTiers)('the global order on the %s tier', (name) => {
  let tier: PortTier
  let cursor: GlobalCursor
  beforeAll(async () => {
    tier = await openPortTier(name)
  })
  afterAll(() => tier.close())
  beforeEach(async () => {
    cursor = { position: await newest(), horizon: null }
  })

  const newest = async (): Promise<number> => {
    const [row] = await tier.database.query<{ newest: number }>('SELECT coalesce(max(position), 0) AS newest FROM events')
    return row?.newest ?? 0
  }
  const append = (stores: Stores, stream: string, ...turns: number[]) =>
    stores.log.append({ stream, ownerId: null, events: turns.map(turnStarted) })
  const freshStream = (): string => `run:${tier.ids.next()}`
  const read = async (limit?: number): Promise<GlobalPage> => {
    const page = await tier.log.readGlobal({ after: cursor, ...(limit === undefined ? {} : { limit }) })
    cursor = structuredClone(page.next)
    return page
  }
  const names = (page: GlobalPage): string[] => page.events.map(({ record }) => `${record.stream}#${record.seq}`)
  /** Reads on until so much has come. The server may have other databases, whose transactions hold a reader back for a moment as well. */
  const arrives = async (count: number): Promise<string[]> => {
    const got: string[] = []
    await vi.waitFor(
      async () => {
        got.push(...names(await read()))
        expect(got.length).toBeGreaterThanOrEqual(count)
      },
      { timeout: 20_000, interval: 20 },
    )
    return got
  }
  /** A position that nobody will ever take: its transaction was rolled back. */
  const leaveGap = () =>
    tier.database
      .run(async () => {
        await append(tier, freshStream(), 1)
        throw new Error('taken back')
      })
      .catch(() => undefined)

  it('delivers every event of every stream once, in order, in pages, and nothing twice', async () => {
    const streams = [freshStream(), freshStream()]
    const expected: string[] = []
    for (let seq = 1; seq <= 5; seq++) {
      for (const stream of streams) {
        await tier.database.run(() => append(tier, stream, seq))
        expected.push(`${stream}#${seq}`)
      }
    }
    const got: string[] = []
    while (got.length < expected.length) got.push(...names(await read(3)))
    expect(got).toEqual(expected)
    expect(await read()).toMatchObject({ events: [], heldMs: 0 })
    const all: string[] = []
    cursor = GLOBAL_START
    for (let page = await read(); page.events.length > 0; page = await read()) all.push(...names(page))
    expect(all.slice(-10)).toEqual(expected)
    expect(new Set(all).size).toBe(all.length)
  })

  it('passes a gap that nobody is about to fill at once', async () => {
    const stream = freshStream()
    await leaveGap()
    await tier.database.run(() => append(tier, stream, 1))
    await leaveGap()
    await leaveGap()
    await tier.database.run(() => append(tier, stream, 2))
    expect(await arrives(2)).toEqual([`${stream}#1`, `${stream}#2`])
  })

  it('takes what was written before a restore for settled, whatever its transaction was', async () => {
    const stream = freshStream()
    await leaveGap()
    await tier.database.run(() => append(tier, stream, 1))
    // As a restore leaves it: rows of an older epoch, xids of another cluster, a reader that waited for one of them.
    await tier.database.execute('UPDATE instance SET cluster_epoch = cluster_epoch + 1')
    cursor = {
      position: cursor.position,
      horizon: { position: cursor.position + 2, epoch: 1, xid: '18446744073709551000', since: '2026-01-01T00:00:00Z' },
    }
    expect(names(await read())).toEqual([`${stream}#1`])
    await tier.database.run(() => append(tier, stream, 2))
    expect(names(await read())).toEqual([`${stream}#2`])
  })

  if (name === 'full') {
    /** A transaction that stays open until it is told how to end; `begun` once its event has its position. */
    function hold(stores: Stores, stream: string, before: () => Promise<unknown> = () => Promise.resolve()) {
      const begun = Promise.withResolvers<void>()
      const go = Promise.withResolvers<'commit' | 'roll back'>()
      const done = stores.database
        .run(async () => {
          await before()
          await append(stores, stream, 1)
          begun.resolve()
          if ((await go.promise) === 'roll back') throw new Error('taken back')
        })
        .catch(() => undefined)
      return { begun: begun.promise, end: (how: 'commit' | 'roll back') => (go.resolve(how), done) }
    }

    it('waits for an event that commits after others with higher positions (Q4)', async () => {
      const [late, early] = [freshStream(), freshStream()]
      const held = hold(tier.replica(), late)
      await held.begun
      await tier.database.run(() => append(tier, early, 1, 2))
      expect(names(await read())).toEqual([])
      expect(names(await read())).toEqual([])
      await held.end('commit')
      expect(await arrives(3)).toEqual([`${late}#1`, `${early}#1`, `${early}#2`])
      expect(names(await read())).toEqual([])
    })

    it('waits for it also where its transaction began after that of the higher position', async () => {
      const [late, early] = [freshStream(), freshStream()]
      // The one that takes the higher position and commits first has the lower xid, so that xids alone would say all is settled.
      const older = tier.replica()
      const ready = Promise.withResolvers<void>()
      const go = Promise.withResolvers<void>()
      const first = older.database.run(async () => {
        await older.database.query('SELECT pg_current_xact_id()')
        ready.resolve()
        await go.promise
        await append(older, early, 1)
      })
      await ready.promise
      const held = hold(tier.replica(), late)
      await held.begun
      go.resolve()
      await first
      for (let attempt = 0; attempt < 3; attempt++) expect(names(await read())).toEqual([])
      await held.end('commit')
      expect(await arrives(2)).toEqual([`${late}#1`, `${early}#1`])
    })

    it('goes on past it where it is rolled back, and delivers what stands before the gap meanwhile', async () => {
      const [before, lost, after] = [freshStream(), freshStream(), freshStream()]
      await tier.database.run(() => append(tier, before, 1))
      const held = hold(tier.replica(), lost)
      await held.begun
      await tier.database.run(() => append(tier, after, 1))
      expect(names(await read())).toEqual([`${before}#1`])
      expect(names(await read())).toEqual([])
      await held.end('roll back')
      expect(await arrives(1)).toEqual([`${after}#1`])
    })

    it('is not held up for ever by transactions that keep coming', async () => {
      const stream = freshStream()
      const first = hold(tier.replica(), freshStream())
      await first.begun
      await tier.database.run(() => append(tier, stream, 1))
      expect(names(await read())).toEqual([])
      const second = hold(tier.replica(), freshStream())
      await second.begun
      await first.end('roll back')
      // The second began after the gap was seen: what lies before it does not wait for it.
      expect(await arrives(1)).toEqual([`${stream}#1`])
      await second.end('commit')
    })

    it('tells once of a transaction that holds it back for long', async () => {
      const told: HeldReader[] = []
      const log = new EventLogRepository(tier.database, { onHeld: (held) => told.push(held) })
      const held = hold(tier.replica(), freshStream())
      await held.begun
      await tier.database.run(() => append(tier, freshStream(), 1))
      const { next } = await log.readGlobal({ after: cursor })
      expect(told).toEqual([])
      // As if it had been waiting since then.
      const waited: GlobalCursor = {
        ...next,
        horizon: next.horizon && { ...next.horizon, since: new Date(Date.now() - 11_000).toISOString() },
      }
      expect((await log.readGlobal({ after: waited })).heldMs).toBeGreaterThan(10_000)
      await log.readGlobal({ after: waited })
      expect(told).toHaveLength(1)
      expect(told[0]).toMatchObject({ position: cursor.position })
      await held.end('roll back')
    })

    it('loses and doubles nothing while many write, some of them in vain', async () => {
      const writers = [tier, tier.replica(), tier.replica(), tier.replica()]
      const written: string[] = []
      let writing = true
      const work = Promise.all(
        writers.map(async (stores, writer) => {
          for (let round = 0; round < 25; round++) {
            const stream = freshStream()
            const seqs = [1, 2, 3].slice(0, 1 + ((round + writer) % 3))
            await stores.database
              .run(async () => {
                await append(stores, stream, ...seqs)
                await stores.database.query('SELECT pg_sleep(0.001 * ((random() * 5)::int))')
                if ((round + writer) % 5 === 0) throw new Error('in vain')
              })
              .then(
                () => written.push(...seqs.map((seq) => `${stream}#${seq}`)),
                () => undefined,
              )
          }
        }),
      ).finally(() => {
        writing = false
      })
      const got: string[] = []
      let lastPosition = cursor.position
      while (writing || got.length < written.length) {
        const page = await read(7)
        for (const event of page.events) {
          expect(event.position).toBeGreaterThan(lastPosition)
          lastPosition = event.position
        }
        got.push(...names(page))
      }
      await work
      got.push(...names(await read()))
      expect(got.toSorted()).toEqual(written.toSorted())
    })
  }
})
