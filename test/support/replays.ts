import { expect } from 'vitest'
import type { TestSystem } from './system.ts'

/** Every run that this system holds: its commands decide again what was recorded, its contexts rebuild to what was sent (K4, M10). */
export async function expectReplays({ system }: Pick<TestSystem, 'system'>): Promise<void> {
  const { runStore, replays } = system.conversation
  for (const run of await runStore.sample(1_000)) {
    expect(await replays.commands(run), `the commands of run ${run.id}`).toMatchObject({ result: 'identical' })
    for (const { turn, result } of await replays.everyContext(run)) {
      expect(result, `the context of turn ${turn} of run ${run.id}`).not.toBe('different')
    }
  }
}

/** The end of a file's story: the record is whole, every run replays, and the world is closed whatever of that fails. */
export async function closeWhole(world: { system: Pick<TestSystem, 'system'>; close(): Promise<void> }): Promise<void> {
  try {
    expect((await world.system.system.conversation.verify.verifyAll()).faults).toEqual([])
    await expectReplays(world.system)
  } finally {
    await world.close()
  }
}
