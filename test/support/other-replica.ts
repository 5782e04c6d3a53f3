/** Somebody else who looks after runs on the same database, for stories in which a run's owner is lost. */
import { SeatKeeper } from '#runtime/seat/seat-keeper'
import type { TestSystem } from './system.ts'

export type OtherReplica = {
  /** The owner of a run is gone, as far as everybody can tell: its lease is over, and the run is looked after. Its own host knows nothing. */
  losesOwner(runId: string): Promise<void>
  /** Another round of looking after runs: what waits is looked at again, however short ago that was. */
  looksAgain(runId: string): Promise<void>
}

export function otherReplica({ system }: Pick<TestSystem, 'system'>): OtherReplica {
  const { database, conversation } = system
  const keeper = new SeatKeeper({
    deps: conversation.host,
    seat: {
      announce: (characterId) => conversation.seats.wake(characterId),
      onAnnounce: () => undefined,
      note: () => undefined,
      close: () => Promise.resolve(),
    },
    holder: 'somebody-else',
    alone: false,
  })
  const past = `clock_timestamp() - interval '1 hour'`
  return {
    losesOwner: async (runId) => {
      await database.execute(`UPDATE runs SET lease_until = ${past} WHERE id = $1::uuid AND state = 'running'`, [runId])
      await keeper.sweep()
    },
    looksAgain: async (runId) => {
      const run = await conversation.runStore.get(runId)
      if (run?.state === 'suspended') await keeper.requeue(run)
    },
  }
}
