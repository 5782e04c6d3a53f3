import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { StaleHeadError, StreamQuarantinedError } from '#kernel/ports/event-log'
import { EMPTY_HEAD } from '#kernel/record/chain'
import { openPortTier, portTiers } from '../support/port-tier.ts'
import type { PortTier } from '../support/port-tier.ts'
import { assertWholeChain, endLease, headAfter, nextTurns, openStream, startRun, turnStarted } from '../support/record.ts'

describe.each(portTiers)('EventLog on the %s tier', (name) => {
  let tier: PortTier
  beforeAll(async () => {
    tier = await openPortTier(name)
  })
  afterAll(() => tier.close())

  const freshStream = (): string => `run:${tier.ids.next()}`
  const append = (stream: string, ...turns: number[]) =>
    tier.database.run(() => tier.log.append({ stream, ownerId: null, events: turns.map(turnStarted) }))
  const segmentCount = async (runId: string): Promise<number> => (await tier.runs.segments(runId)).length
  const segment = (runId: string, ordinal: number) => ({
    run_id: runId,
    ordinal,
    part: 0,
    kind: 'text' as const,
    body: `灵 ${ordinal}`,
    salt: tier.ids.bytes(32),
  })

  describe('append', () => {
    it('numbers, chains and reads back what was handed over', async () => {
      const stream = freshStream()
      const first = await append(stream, 1, 2)
      const second = await append(stream, 3)
      expect([...first, ...second].map((event) => event.seq)).toEqual([1, 2, 3])
      const stored = await assertWholeChain(tier.log, stream, 3)
      expect(stored.map((event) => event.canonical)).toEqual([...first, ...second].map((event) => event.canonical))
      expect(stored.map((event) => event.record.payload)).toEqual([{ turn: 1 }, { turn: 2 }, { turn: 3 }])
      expect(await tier.log.head(freshStream())).toBeNull()
    })

    it('reads after a number, up to a limit, of some types', async () => {
      const stream = freshStream()
      await append(stream, 1, 2, 3, 4, 5)
      const seqs = async (options: Parameters<typeof tier.log.read>[1]) =>
        (await tier.log.read(stream, options)).map((event) => event.record.seq)
      expect(await seqs({ after: 2, limit: 2 })).toEqual([3, 4])
      expect(await seqs({ types: ['run.finished'] })).toEqual([])
      expect(await seqs({ types: ['turn.started'], after: 4 })).toEqual([5])
      expect(await seqs({ after: 5 })).toEqual([])
    })

    it('belongs to its unit of work: rolled back, neither events nor head moved', async () => {
      const stream = freshStream()
      await append(stream, 1)
      await expect(
        tier.database.run(async () => {
          await tier.log.append({ stream, ownerId: null, events: [turnStarted(2)] })
          throw new Error('no')
        }),
      ).rejects.toThrow('no')
      await assertWholeChain(tier.log, stream, 1)
    })

    it('has no gap and no fork when two processes append to one stream at once', async () => {
      const stream = freshStream()
      const other = tier.replica()
      const processes = [tier, other]
      await Promise.all(
        Array.from({ length: 40 }, (_, index) => {
          const { database, log } = processes[index % 2] ?? tier
          return database.run(() => log.append({ stream, ownerId: null, events: [turnStarted(index + 1)] }))
        }),
      )
      const stored = await assertWholeChain(tier.log, stream, 40)
      expect(new Set(stored.map((event) => event.record.payload['turn'])).size).toBe(40)
    })

    it('has none when fifty streams are appended to at once', async () => {
      const streams = Array.from({ length: 50 }, freshStream)
      await Promise.all(streams.flatMap((stream) => [append(stream, 1), append(stream, 2, 3)]))
      for (const stream of streams) await assertWholeChain(tier.log, stream, 3)
    })

    it('refuses a stream whose chain was found broken (decision 18)', async () => {
      const stream = freshStream()
      await append(stream, 1)
      await tier.database.execute('UPDATE streams SET quarantined_at = now() WHERE stream = $1', [stream])
      await expect(append(stream, 2)).rejects.toThrow(StreamQuarantinedError)
      expect(await tier.log.head(stream)).toMatchObject({ seq: 1, quarantined: true })
    })

    it('writes chained events only where the stream still stands where the writer believes', async () => {
      const stream = freshStream()
      await append(stream, 1)
      const run = { id: stream.slice(4), owner_id: tier.ids.next() }
      const write = (events: ReturnType<typeof nextTurns>) => tier.database.run(() => tier.log.write(events))
      const stale = nextTurns(run, EMPTY_HEAD, [1, 2])
      await expect(write(stale)).rejects.toThrow(StaleHeadError)
      const head = await tier.log.head(stream)
      if (!head) throw new Error('there is no head')
      await expect(write(nextTurns(run, { ...head, hash: new Uint8Array(32).fill(1) }, [2]))).rejects.toThrow(StaleHeadError)
      await write(nextTurns(run, head, [2, 3]))
      await assertWholeChain(tier.log, stream, 3)
    })
  })

  describe('appendFenced', () => {
    it('writes the events and segments of many runs at once and names them', async () => {
      const runs = await Promise.all([startRun(tier), startRun(tier), startRun(tier)])
      const heads = await Promise.all(runs.map((run) => openStream(tier, run)))
      const written = await tier.log.appendFenced(
        runs.map((run, index) => ({
          runId: run.id,
          fence: run.fence,
          events: nextTurns(run, heads[index] ?? EMPTY_HEAD, [2, 3]),
          segments: [segment(run.id, 0), segment(run.id, 1)],
        })),
      )
      expect(written).toEqual(new Set(runs.map((run) => run.id)))
      for (const run of runs) {
        await assertWholeChain(tier.log, `run:${run.id}`, 3)
        expect((await tier.runs.segments(run.id)).map(({ ordinal, body }) => [ordinal, body])).toEqual([
          [0, '灵 0'],
          [1, '灵 1'],
        ])
      }
    })

    it('extends the lease of the runs that it writes (decision 22)', async () => {
      const run = await startRun(tier)
      const head = await openStream(tier, run)
      await endLease(tier, run.id)
      await tier.log.appendFenced([{ runId: run.id, fence: run.fence, events: nextTurns(run, head, [2]), segments: [] }])
      expect((await tier.runs.expired({})).map((row) => row.id)).not.toContain(run.id)
    })

    /** A run that may write and one that may not, for a reason; the first is written, of the second there is no trace. */
    async function expectLeftOut(
      spoil: (run: Awaited<ReturnType<typeof startRun>>) => Promise<Partial<{ fence: number; head: typeof EMPTY_HEAD }>>,
    ) {
      const [good, bad] = [await startRun(tier), await startRun(tier)]
      const heads = [await openStream(tier, good), await openStream(tier, bad)]
      const changed = await spoil(bad)
      const before = await tier.log.head(`run:${bad.id}`)
      const written = await tier.log.appendFenced([
        {
          runId: bad.id,
          fence: changed.fence ?? bad.fence,
          events: nextTurns(bad, changed.head ?? heads[1] ?? EMPTY_HEAD, [2]),
          segments: [segment(bad.id, 0)],
        },
        { runId: good.id, fence: good.fence, events: nextTurns(good, heads[0] ?? EMPTY_HEAD, [2]), segments: [segment(good.id, 0)] },
      ])
      expect(written).toEqual(new Set([good.id]))
      await assertWholeChain(tier.log, `run:${good.id}`, 2)
      expect(await segmentCount(good.id)).toBe(1)
      expect(await tier.log.head(`run:${bad.id}`)).toEqual(before)
      expect(await tier.log.read(`run:${bad.id}`, {})).toHaveLength(before?.seq ?? 0)
      expect(await segmentCount(bad.id)).toBe(0)
    }

    it('leaves out a run that another process took over, and writes the others (case Q2)', () =>
      expectLeftOut(async (run) => {
        expect((await tier.replica().runs.takeOver(run.id, run.fence, 'another'))?.fence).toBeGreaterThan(run.fence)
        return {}
      }))

    it('leaves out a fence that was never given out', () => expectLeftOut((run) => Promise.resolve({ fence: run.fence + 1 })))

    it('leaves out a run that has ended', () =>
      expectLeftOut(async (run) => {
        expect(await tier.runs.end({ id: run.id, fence: run.fence, state: 'interrupted', reason: 'cancelled' })).toBe(true)
        return {}
      }))

    it('leaves out a run of another version of the protocol (K7)', () =>
      expectLeftOut(async (run) => {
        await tier.database.run(async () => {
          await tier.database.execute('ALTER TABLE runs DISABLE TRIGGER runs_protocol_guard')
          await tier.database.execute('UPDATE runs SET protocol_version = protocol_version + 1 WHERE id = $1::uuid', [run.id])
          await tier.database.execute('ALTER TABLE runs ENABLE TRIGGER runs_protocol_guard')
        })
        return {}
      }))

    it('leaves out a run whose stream is elsewhere than it believes', () => expectLeftOut(() => Promise.resolve({ head: EMPTY_HEAD })))

    it('leaves out a quarantined stream', () =>
      expectLeftOut(async (run) => {
        await tier.database.execute('UPDATE streams SET quarantined_at = now() WHERE stream = $1', [`run:${run.id}`])
        return {}
      }))

    it.each(['owner', 'character'] as const)('leaves out what the kill switch of its %s stops, as soon as it is set', (scope) =>
      expectLeftOut(async (run) => {
        const scopeId = scope === 'owner' ? run.owner_id : run.character_id
        await tier.database.execute('INSERT INTO kill_flags (scope, scope_id, set_by) VALUES ($1, $2::uuid, $3::uuid)', [
          scope,
          scopeId,
          run.owner_id,
        ])
        return {}
      }),
    )

    it('writes nothing at all under the global kill switch', async () => {
      const run = await startRun(tier)
      const head = await openStream(tier, run)
      const append = { runId: run.id, fence: run.fence, events: nextTurns(run, head, [2]), segments: [] }
      await tier.database.execute(
        `INSERT INTO kill_flags (scope, scope_id, set_by) VALUES ('global', '00000000-0000-0000-0000-000000000000', $1::uuid)`,
        [run.owner_id],
      )
      expect(await tier.log.appendFenced([append])).toEqual(new Set())
      await tier.database.execute(`DELETE FROM kill_flags WHERE scope = 'global'`)
      expect(await tier.log.appendFenced([append])).toEqual(new Set([run.id]))
    })

    it('keeps two processes that append for the same run apart: one chain, whoever wins', async () => {
      const run = await startRun(tier)
      const head = await openStream(tier, run)
      const other = tier.replica()
      const append = { runId: run.id, fence: run.fence, events: nextTurns(run, head, [2]), segments: [] }
      const answers = await Promise.all([tier.log.appendFenced([append]), other.log.appendFenced([append])])
      expect(answers.map((answer) => answer.size)).toSatisfy((sizes: number[]) => sizes.includes(0) && sizes.includes(1))
      await assertWholeChain(tier.log, `run:${run.id}`, 2)
    })

    it('does not deadlock with other batches, heartbeats and take-overs over the same runs', async () => {
      const runs = await Promise.all(Array.from({ length: 8 }, () => startRun(tier)))
      const heads = new Map(await Promise.all(runs.map(async (run) => [run.id, await openStream(tier, run)] as const)))
      const other = tier.replica()
      const rounds = Array.from({ length: 10 }, async (_, round) => {
        const shuffled = round % 2 === 0 ? runs : runs.toReversed()
        const log = round % 2 === 0 ? tier.log : other.log
        await Promise.all([
          log.appendFenced(
            shuffled.map((run) => {
              const events = nextTurns(run, heads.get(run.id) ?? EMPTY_HEAD, [round + 2])
              return { runId: run.id, fence: run.fence, events, segments: [] }
            }),
          ),
          other.runs.heartbeat(shuffled.map(({ id, fence }) => ({ id, fence }))),
          round % 3 === 0 ? tier.runs.takeOver(shuffled[round % 8]?.id ?? '', 1, 'another') : undefined,
        ])
      })
      await Promise.all(rounds)
      for (const run of runs) {
        const head = await tier.log.head(`run:${run.id}`)
        await assertWholeChain(tier.log, `run:${run.id}`, head?.seq ?? 0)
      }
    })
  })

  describe('the table itself', () => {
    it.each([
      ['changing', `UPDATE events SET type = 'turn.finished' WHERE stream = $1`],
      ['removing', 'DELETE FROM events WHERE stream = $1'],
      ['emptying', `TRUNCATE events /* for $1 */`],
    ])('refuses %s events, whoever asks', async (_what, sql) => {
      const stream = freshStream()
      await append(stream, 1)
      await expect(sql.includes('TRUNCATE') ? tier.database.execute(sql) : tier.database.execute(sql, [stream])).rejects.toThrow(
        /append-only/,
      )
      await assertWholeChain(tier.log, stream, 1)
    })

    it('refuses a row that does not continue its chain, and a head without its row', async () => {
      const stream = freshStream()
      const run = { id: stream.slice(4), owner_id: tier.ids.next() }
      await append(stream, 1)
      const head = (await tier.log.head(stream)) ?? EMPTY_HEAD
      const insert = (event: ReturnType<typeof nextTurns>[number]) =>
        tier.database.execute(
          `INSERT INTO events (cluster_epoch, stream, seq, type, visibility, canonical, payload, prev_hash, hash)
           VALUES (1, $1, $2, $3, $4, $5, '{}', $6, $7)`,
          [event.stream, event.seq, event.type, event.visibility, event.canonical, event.prev_hash, event.hash],
        )
      const [next, skipping] = [nextTurns(run, head, [2]), nextTurns(run, { ...head, seq: head.seq + 1 }, [3])]
      for (const events of [next, skipping]) {
        for (const event of events) await expect(insert(event)).rejects.toThrow(/continue its chain/)
      }
      await expect(tier.database.execute('UPDATE streams SET seq = seq - 1 WHERE stream = $1', [stream])).rejects.toThrow(/never goes back/)
      await expect(tier.database.execute('DELETE FROM streams WHERE stream = $1', [stream])).rejects.toThrow(/cannot be deleted/)
      expect(headAfter(next).seq).toBe(2)
      await assertWholeChain(tier.log, stream, 1)
    })
  })
})
