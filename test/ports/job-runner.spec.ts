import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { JobAwayError, JobRunner, JobStoppedError } from '#runtime/jobs/job-runner'
import type { JobHandler } from '#runtime/jobs/job-runner'
import { openInstance, openPortTier, portTiers } from '../support/port-tier.ts'
import type { Instance, PortTier, Stores, Wakeups } from '../support/port-tier.ts'
import { eventually } from '../support/story.ts'

type Row = { attempts: number; last_error: string | null; outcome: string | null; due: boolean }

describe.each(portTiers)('the outbox and its JobRunner on the %s tier', (name) => {
  let tier: PortTier
  let instance: Instance
  beforeAll(async () => {
    tier = await openPortTier(name)
  })
  afterAll(() => tier.close())
  beforeEach(() => {
    instance = openInstance(name)
  })
  afterEach(() => instance.close())

  /** A runner as one process has it. Its sweeps come when the test says so. */
  function runner(wakeups: Wakeups, handlers: Record<string, JobHandler>, stores: Stores = tier) {
    let due: (() => void) | undefined
    const scheduler = {
      after: (_milliseconds: number, callback: () => void) => {
        due = callback
        return () => undefined
      },
    }
    const reports: unknown[] = []
    const jobs = new JobRunner({
      outbox: stores.outbox,
      queue: wakeups.queue,
      unitOfWork: stores.database,
      ids: tier.ids,
      scheduler,
      handlers,
      report: (error) => void reports.push(error),
    })
    const sweep = (): void => {
      const round = due
      due = undefined
      round?.()
    }
    return { jobs, reports, sweep }
  }

  /** What a job leaves behind: one row, in the transaction that closes its outbox row. */
  const leave = (id: string): Promise<number> =>
    tier.database.execute(`INSERT INTO owners (id, name, role) VALUES ($1::uuid, $2, 'user')`, [id, id])
  const isLeft = async (id: string): Promise<boolean> =>
    (await tier.database.query('SELECT 1 FROM owners WHERE id = $1::uuid', [id])).length === 1
  const settle: JobHandler = (row) =>
    tier.database.run(async () => {
      if (await tier.outbox.close(row.id, 'done')) await leave(row.payload['leave'] ?? '')
    })
  const rowOf = async (effect: string): Promise<Row & { id: string }> => {
    const [row] = await tier.database.query<Row & { id: string }>(
      `SELECT id::text, attempts, last_error, outcome, due_at <= clock_timestamp() AS due FROM outbox WHERE payload ->> 'leave' = $1`,
      [effect],
    )
    if (!row) throw new Error('there is no such row')
    return row
  }
  const makeDue = (id: string): Promise<number> =>
    tier.database.execute(
      `UPDATE outbox SET due_at = now() - interval '1 second', claimed_until = now() - interval '1 second' WHERE id = $1::uuid`,
      [id],
    )
  const job = (effect: string, more: { topic?: string; dueAt?: Date } = {}) => ({
    topic: 'test.leave',
    ownerId: null,
    payload: { leave: effect },
    ...more,
  })

  it('does what a transaction decided after its commit, and nothing of one that rolled back', async () => {
    const { jobs } = runner(await instance.process(), { 'test.leave': settle })
    await jobs.start(2)
    const [kept, dropped] = [tier.ids.next(), tier.ids.next()]
    await tier.database
      .run(async () => {
        await jobs.add(job(dropped))
        throw new Error('no')
      })
      .catch(() => undefined)
    await tier.database.run(() => jobs.add(job(kept)))
    await eventually(() => isLeft(kept), 'the work')
    expect(await rowOf(kept)).toMatchObject({ attempts: 1, outcome: 'done', last_error: null })
    await expect(rowOf(dropped)).rejects.toThrow('there is no such row')
    await jobs.stop()
  })

  it('does a row once, however often and by however many processes it is woken (case Q1)', async () => {
    const [here, there] = [await instance.process(), await instance.process()]
    let begun = 0
    const slow: JobHandler = async (row, attempt) => {
      begun += 1
      await settle(row, attempt)
    }
    const first = runner(here, { 'test.leave': slow })
    const second = runner(there, { 'test.leave': slow }, tier.replica())
    const effects = Array.from({ length: 5 }, () => tier.ids.next())
    for (const effect of effects) await tier.database.run(() => first.jobs.add(job(effect)))
    const ids = await Promise.all(effects.map(async (effect) => (await rowOf(effect)).id))
    await Promise.all(ids.flatMap((id) => [first.jobs.perform(id), second.jobs.perform(id), first.jobs.perform(id)]))
    expect(begun).toBe(5)
    for (const effect of effects) expect(await isLeft(effect)).toBe(true)
    await Promise.all(ids.map((id) => second.jobs.perform(id)))
    expect(begun).toBe(5)
  })

  it('stores nothing of a handler that fails before its transaction is over, and tries again', async () => {
    let tries = 0
    const flaky: JobHandler = (row) =>
      tier.database.run(async () => {
        await tier.outbox.close(row.id, 'done')
        await leave(row.payload['leave'] ?? '')
        if (++tries < 3) throw new RangeError('lost on the way')
      })
    const { jobs, reports } = runner(await instance.process(), { 'test.leave': flaky })
    const effect = tier.ids.next()
    await tier.database.run(() => jobs.add(job(effect)))
    const { id } = await rowOf(effect)
    await jobs.perform(id)
    expect(await rowOf(effect)).toMatchObject({ attempts: 1, last_error: 'RangeError', outcome: null, due: false })
    expect(await isLeft(effect)).toBe(false)
    await jobs.perform(id)
    expect((await rowOf(effect)).attempts).toBe(1)
    await makeDue(id)
    await jobs.perform(id)
    await makeDue(id)
    await jobs.perform(id)
    expect(await rowOf(effect)).toMatchObject({ attempts: 3, outcome: 'done' })
    expect(await isLeft(effect)).toBe(true)
    expect(reports).toHaveLength(2)
  })

  it('takes a row again whose worker died in the middle, when its claim is over and not before', async () => {
    const { jobs } = runner(await instance.process(), { 'test.leave': settle })
    const effect = tier.ids.next()
    await tier.database.run(() => jobs.add(job(effect)))
    const { id } = await rowOf(effect)
    expect(await tier.replica().outbox.claim(id, 60)).toMatchObject({ id, attempts: 1, payload: { leave: effect } })
    await jobs.perform(id)
    expect(await isLeft(effect)).toBe(false)
    expect(await tier.outbox.open(100)).not.toContain(id)
    await makeDue(id)
    expect(await tier.outbox.open(100)).toContain(id)
    await jobs.perform(id)
    expect(await rowOf(effect)).toMatchObject({ attempts: 2, outcome: 'done' })
  })

  it('gives a row up after six tries, visibly', async () => {
    const { jobs } = runner(await instance.process(), { 'test.leave': () => Promise.reject(new TypeError('never')) })
    const effect = tier.ids.next()
    await tier.database.run(() => jobs.add(job(effect)))
    const { id } = await rowOf(effect)
    for (let tries = 0; tries < 8; tries++) {
      await makeDue(id)
      await jobs.perform(id)
    }
    expect(await rowOf(effect)).toMatchObject({ attempts: 6, outcome: 'given_up', last_error: 'TypeError' })
  })

  it('counts no attempt of what is stopped, and goes on with it when it may', async () => {
    let isStopped = true
    const obeying: JobHandler = (row, attempt) => {
      if (isStopped) throw new JobStoppedError('stopped')
      return settle(row, attempt)
    }
    const { jobs, reports } = runner(await instance.process(), { 'test.leave': obeying })
    const effect = tier.ids.next()
    await tier.database.run(() => jobs.add(job(effect)))
    const { id } = await rowOf(effect)
    for (let tries = 0; tries < 8; tries++) {
      await makeDue(id)
      await jobs.perform(id)
    }
    expect(await rowOf(effect)).toMatchObject({ attempts: 0, outcome: null, last_error: 'JobStoppedError', due: false })
    expect(reports).toEqual([])
    isStopped = false
    await makeDue(id)
    await jobs.perform(id)
    expect(await rowOf(effect)).toMatchObject({ attempts: 1, outcome: 'done' })
  })

  it('is patient with what is away, and gives its row up all the same, visibly', async () => {
    const lasts: boolean[] = []
    const waiting: JobHandler = (_, { isLastAway }) => {
      lasts.push(isLastAway)
      throw new JobAwayError('away', { cause: new RangeError('nobody there') })
    }
    const { jobs } = runner(await instance.process(), { 'test.leave': waiting })
    const effect = tier.ids.next()
    await tier.database.run(() => jobs.add(job(effect)))
    const { id } = await rowOf(effect)
    for (let tries = 0; tries < 32; tries++) {
      await makeDue(id)
      await jobs.perform(id)
      if (tries === 28) expect(await rowOf(effect)).toMatchObject({ attempts: 29, outcome: null, due: false })
    }
    expect(await rowOf(effect)).toMatchObject({ attempts: 30, outcome: 'given_up', last_error: 'RangeError' })
    expect(lasts).toEqual(Array.from({ length: 30 }, (_, index) => index === 29))
  })

  it('tells a handler which attempt is the last, and hands its row back when the process stops, also after that one', async () => {
    const lasts: boolean[] = []
    const begun = Promise.withResolvers<void>()
    const stuck: JobHandler = async (_, { isLast, signal }) => {
      lasts.push(isLast)
      if (!isLast) throw new TypeError('never')
      begun.resolve()
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('told to stop'))))
    }
    const { jobs, reports } = runner(await instance.process(), { 'test.leave': stuck })
    const effect = tier.ids.next()
    await tier.database.run(() => jobs.add(job(effect)))
    const { id } = await rowOf(effect)
    for (let tries = 0; tries < 5; tries++) {
      await makeDue(id)
      await jobs.perform(id)
    }
    await makeDue(id)
    const performed = jobs.perform(id)
    await begun.promise
    await jobs.stop()
    await performed
    expect(lasts).toEqual([false, false, false, false, false, true])
    expect(await rowOf(effect)).toMatchObject({ attempts: 6, outcome: null, last_error: 'stopped', due: true })
    expect(reports).toHaveLength(5)
    const next = runner(await instance.process(), { 'test.leave': settle })
    await next.jobs.perform(id)
    expect(await rowOf(effect)).toMatchObject({ attempts: 7, outcome: 'done' })
  })

  it('fails a row that nobody here knows how to do, so that it is seen', async () => {
    const { jobs, reports } = runner(await instance.process(), {})
    const effect = tier.ids.next()
    await tier.database.run(() => jobs.add(job(effect, { topic: 'test.unknown' })))
    await jobs.perform((await rowOf(effect)).id)
    expect(await rowOf(effect)).toMatchObject({ attempts: 1, last_error: 'Error', outcome: null })
    expect(String(reports[0])).toContain('test.unknown')
  })

  it('sweeps up rows whose wake-up was lost (case Q5)', async () => {
    const { jobs, sweep } = runner(await instance.process(), { 'test.leave': settle })
    const effect = tier.ids.next()
    await tier.outbox.add({ id: tier.ids.next(), ...job(effect) })
    await jobs.start(2)
    await eventually(() => {
      sweep()
      return isLeft(effect)
    }, 'the work of a row that nobody woke')
    await jobs.stop()
  })

  it('does a row that is due later when it is due', async () => {
    const { jobs, sweep } = runner(await instance.process(), { 'test.leave': settle })
    await jobs.start(2)
    const effect = tier.ids.next()
    await tier.database.run(() => jobs.add(job(effect, { dueAt: new Date(Date.now() + 300) })))
    expect(await tier.outbox.claim((await rowOf(effect)).id, 1)).toBeNull()
    // The two clocks may differ by a little; then a sweep finds it.
    await eventually(() => {
      sweep()
      return isLeft(effect)
    }, 'the work')
    expect(await rowOf(effect)).toMatchObject({ attempts: 1, outcome: 'done' })
    await jobs.stop()
  })

  it('closes a row once', async () => {
    const id = tier.ids.next()
    await tier.outbox.add({ id, ...job(tier.ids.next()) })
    const answers = await Promise.all([tier.outbox.close(id, 'done'), tier.outbox.close(id, 'obsolete')])
    expect(answers.filter(Boolean)).toHaveLength(1)
    expect(await tier.outbox.claim(id, 1)).toBeNull()
  })
})
