import { expect, it } from 'vitest'
import { Maintenance } from './maintenance.ts'

const MB = 1024 * 1024

/** A database whose log, worn tables and use are given, and that notes what is done to it. */
function fakeDatabase({ walBytes = 0, wornTables = [] as string[], failing = '' } = {}) {
  const state = { now: 0, usedAt: 0, free: true, walBytes, wornTables: [...wornTables], looks: 0, done: [] as string[] }
  const backend = {
    query: async (sql: string): Promise<Record<string, unknown>[]> => {
      if (sql.includes('pg_wal_lsn_diff')) {
        state.looks++
        return [{ bytes: state.walBytes }]
      }
      if (sql.includes('pg_stat_user_tables')) return state.wornTables.slice(0, 1).map((name) => ({ name }))
      state.done.push(sql)
      if (sql === failing) throw new Error(`${sql} failed`)
      if (sql === 'CHECKPOINT') state.walBytes = 0
      state.wornTables = state.wornTables.filter((name) => !sql.endsWith(name))
      return []
    },
  }
  const front = {
    idleMs: () => state.now - state.usedAt,
    runWhileFree: async (task: () => Promise<void>): Promise<boolean> => {
      if (state.free) await task()
      return state.free
    },
  }
  const maintenance = new Maintenance({ backend, front, now: () => state.now })
  const tickAt = async (now: number): Promise<void> => {
    state.now = now
    await maintenance.tick()
  }
  return { state, tickAt }
}

it('checkpoints in a quiet moment once 32 MB are written', async () => {
  const { state, tickAt } = fakeDatabase({ walBytes: 40 * MB })
  await tickAt(1_000)
  expect(state.done).toEqual([])
  await tickAt(2_000)
  expect(state.done).toEqual(['CHECKPOINT'])
})

it('waits for no quiet moment once 256 MB are written, but for the backend to be free', async () => {
  const { state, tickAt } = fakeDatabase({ walBytes: 300 * MB })
  state.free = false
  await tickAt(500)
  expect(state.done).toEqual([])
  state.free = true
  await tickAt(600)
  expect(state.done).toEqual(['CHECKPOINT'])
})

it('vacuums one worn table per tick after a minute, then rests until the database is used again', async () => {
  const { state, tickAt } = fakeDatabase({ wornTables: ['a', 'b'] })
  await tickAt(30_000)
  expect(state.done).toEqual([])
  await tickAt(60_000)
  expect(state.done).toEqual(['VACUUM (ANALYZE) a'])
  await tickAt(61_000)
  expect(state.done).toEqual(['VACUUM (ANALYZE) a', 'VACUUM (ANALYZE) b'])
  await tickAt(62_000)
  const looks = state.looks
  await tickAt(200_000)
  expect(state.looks).toBe(looks)
  state.usedAt = 201_000
  await tickAt(203_000)
  expect(state.looks).toBe(looks + 1)
})

it('does not try a vacuum that fails again at once', async () => {
  const { state, tickAt } = fakeDatabase({ wornTables: ['a'], failing: 'VACUUM (ANALYZE) a' })
  await expect(tickAt(60_000)).rejects.toThrow('VACUUM (ANALYZE) a failed')
  await tickAt(61_000)
  expect(state.done).toHaveLength(1)
  await expect(tickAt(121_000)).rejects.toThrow('VACUUM (ANALYZE) a failed')
})
