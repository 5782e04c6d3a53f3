import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openInstance, openPortTier, portTiers } from '../support/port-tier.ts'
import type { Instance, PortTier, Stores } from '../support/port-tier.ts'
import { endLease, queueRun, startRun } from '../support/record.ts'

describe.each(portTiers)('the seat on the %s tier', (name) => {
  let tier: PortTier
  let other: Stores
  beforeAll(async () => {
    tier = await openPortTier(name)
    other = tier.replica()
  })
  afterAll(() => tier.close())

  const claim = (characterId: string, stores: Stores = tier, holder = 'somebody') =>
    stores.database.run(() => stores.runs.claimNext(characterId, holder))
  const end = (run: { id: string; fence: number }) => tier.runs.end({ ...run, state: 'finished', reason: null })
  const raceFor = (characterId: string, times: number) =>
    Promise.all(Array.from({ length: times }, (_, index) => claim(characterId, index % 2 === 0 ? tier : other, `process ${index % 2}`)))

  describe('Postgres decides (RunStore)', () => {
    it('gives the seat to one run of a character, whoever asks how often at once, and the next in line when it is free (M5)', async () => {
      const who = await tier.character()
      const queued = [await queueRun(tier, who), await queueRun(tier, who), await queueRun(tier, who)]
      expect(queued.map((run) => run.ahead)).toEqual([0, 1, 2])
      const seated: string[] = []
      for (let turn = 0; turn < 3; turn++) {
        const won = (await raceFor(who.characterId, 8)).filter((run) => run !== null)
        expect(won).toHaveLength(1)
        const [run] = won
        if (!run) throw new Error('nobody has the seat')
        expect(run).toMatchObject({ state: 'running', character_id: who.characterId })
        expect(await tier.runs.seatHolder(who.characterId)).toMatchObject({ id: run.id })
        seated.push(run.id)
        expect(await end(run)).toBe(true)
      }
      expect(seated).toEqual(queued.map((run) => run.id))
      expect(await claim(who.characterId)).toBeNull()
    })

    it('says how many stand before a run, also when many are queued at once', async () => {
      const who = await tier.character()
      const places = await Promise.all(
        Array.from({ length: 6 }, (_, index) => queueRun(index % 2 === 0 ? tier : { ...other, ids: tier.ids }, who)),
      )
      expect(new Set(places.map((place) => place.ahead))).toEqual(new Set([0, 1, 2, 3, 4, 5]))
      const running = await claim(who.characterId)
      const second = await tier.runs.get(places.find((place) => place.ahead === 1)?.id ?? '')
      expect(second && (await tier.runs.ahead(second))).toBe(1)
      if (running) await end(running)
      expect(second && (await tier.runs.ahead(second))).toBe(0)
    })

    it('keeps the seats of different characters apart', async () => {
      const [first, second] = [await startRun(tier), await startRun(tier)]
      expect(first.character_id).not.toBe(second.character_id)
      expect([first.state, second.state]).toEqual(['running', 'running'])
    })

    it('is held by the database itself: a second seated run cannot be made to run', async () => {
      const who = await tier.character()
      await queueRun(tier, who)
      const waiting = await queueRun(tier, who)
      await claim(who.characterId)
      const force = `UPDATE runs SET state = 'running', holder = 'x', lease_until = now(), fence = 99 WHERE id = $1::uuid`
      await expect(tier.database.execute(force, [waiting.id])).rejects.toThrow(/unique|duplicate/i)
    })

    it('hands out fences that only rise, over take-overs and over runs (case Q2)', async () => {
      const run = await startRun(tier)
      const taken = await other.runs.takeOver(run.id, run.fence, 'another')
      expect(taken?.fence).toBeGreaterThan(run.fence)
      expect(await other.runs.takeOver(run.id, run.fence, 'a third one')).toBeNull()
      expect(await tier.database.run(() => tier.runs.holdFence(run.id, run.fence))).toBe(false)
      expect(await end({ id: run.id, fence: run.fence })).toBe(false)
      expect(await tier.runs.heartbeat([{ id: run.id, fence: run.fence }])).toEqual([])
      expect(await end({ id: run.id, fence: taken?.fence ?? 0 })).toBe(true)
      await queueRun(tier, { ownerId: run.owner_id, characterId: run.character_id })
      const next = await claim(run.character_id)
      expect(next?.fence).toBeGreaterThan(taken?.fence ?? 0)
      await expect(tier.database.execute('UPDATE runs SET fence = fence - 1 WHERE id = $1::uuid', [next?.id ?? ''])).rejects.toThrow(
        /never goes back/,
      )
    })

    it('lets one of two processes take over a run whose owner is gone', async () => {
      const run = await startRun(tier)
      expect((await tier.runs.expired({})).map((row) => row.id)).not.toContain(run.id)
      await endLease(tier, run.id)
      expect((await other.runs.expired({})).map((row) => row.id)).toContain(run.id)
      const taken = await Promise.all([tier.runs.takeOver(run.id, run.fence, 'one'), other.runs.takeOver(run.id, run.fence, 'two')])
      expect(taken.filter((row) => row !== null)).toHaveLength(1)
      expect((await tier.runs.expired({})).map((row) => row.id)).not.toContain(run.id)
      expect(await claim(run.character_id)).toBeNull()
    })

    it('keeps the seat while its owner shows signs of life, and tells it of the kill switch', async () => {
      const run = await startRun(tier)
      await endLease(tier, run.id)
      expect(await tier.runs.heartbeat([{ id: run.id, fence: run.fence }])).toMatchObject([{ id: run.id, fence: run.fence, killed: false }])
      expect((await tier.runs.expired({})).map((row) => row.id)).not.toContain(run.id)
      await tier.database.execute(`INSERT INTO kill_flags (scope, scope_id, set_by) VALUES ('character', $1::uuid, $2::uuid)`, [
        run.character_id,
        run.owner_id,
      ])
      expect(await tier.runs.heartbeat([{ id: run.id, fence: run.fence }])).toMatchObject([{ killed: true }])
    })

    it('knows the runs of other boots where one process is alone (decision 4)', async () => {
      const run = await startRun(tier, 'boot-1:7')
      const dead = async (alive: string) => (await tier.runs.expired({ holderPrefixAlive: alive })).map((row) => row.id).includes(run.id)
      expect([await dead('boot-1'), await dead('boot-2')]).toEqual([false, true])
    })

    it('gives no seat to a run that has waited too long, and names it', async () => {
      const who = await tier.character()
      const late = await queueRun(tier, who, { expiresAt: new Date(Date.now() - 1_000) })
      const next = await queueRun(tier, who, { expiresAt: new Date(Date.now() + 60_000) })
      expect((await tier.runs.queueExpired()).map((run) => run.id)).toContain(late.id)
      expect((await claim(who.characterId))?.id).toBe(next.id)
    })

    it('takes a run out of the queue or gives it the seat: one of the two may write', async () => {
      for (let round = 0; round < 6; round++) {
        const who = await tier.character()
        const queued = await queueRun(tier, who)
        const [claimed, taken] = await Promise.all([claim(who.characterId), other.runs.takeQueued(queued.id, 'another')])
        // Whoever comes second has the higher fence, or nothing; the other one's fence is worth nothing then.
        const row = await tier.runs.get(queued.id)
        const owner = [claimed, taken].filter((candidate) => candidate?.fence === row?.fence)
        expect(owner).toHaveLength(1)
        expect(await end({ id: queued.id, fence: row?.fence ?? 0 })).toBe(true)
      }
    })

    it('starts runs that need no seat once, beside the seated one', async () => {
      const run = await startRun(tier)
      const job = await queueRun(tier, { ownerId: run.owner_id, characterId: run.character_id }, { seated: false })
      const claims = await Promise.all([tier.runs.claimUnseated(job.id, 'one'), other.runs.claimUnseated(job.id, 'two')])
      expect(claims.filter((row) => row !== null)).toHaveLength(1)
    })

    it('finds the characters that somebody waits for', async () => {
      const who = await tier.character()
      const isStartable = async () => (await tier.runs.startable()).includes(who.characterId)
      expect(await isStartable()).toBe(false)
      await queueRun(tier, who)
      expect(await isStartable()).toBe(true)
      await claim(who.characterId)
      await queueRun(tier, who)
      expect(await isStartable()).toBe(false)
    })
  })

  describe('wake-ups (Seat)', () => {
    let instance: Instance
    beforeAll(() => {
      instance = openInstance(name)
    })
    afterAll(() => instance.close())

    it('tells every process of an announcement', async () => {
      const [here, there] = [await instance.process(), await instance.process()]
      const characterId = tier.ids.next()
      const heard = [here, there].map(
        ({ seat }) =>
          new Promise<string>((resolve) => {
            seat.onAnnounce((announced) => {
              if (announced === characterId) resolve(announced)
            })
          }),
      )
      // The subscriptions of a seat are not waited for by anybody; each announcement may come before they stand.
      const again = setInterval(() => here.seat.announce(characterId), 20)
      expect(await Promise.all(heard)).toEqual([characterId, characterId])
      clearInterval(again)
    })

    it('takes notes of who holds a seat, of which nothing depends', async () => {
      const { seat, reports } = await instance.process()
      seat.note(tier.ids.next(), tier.ids.next(), 1_000)
      expect(reports).toEqual([])
    })
  })
})
