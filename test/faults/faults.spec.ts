/**
 * Two servers on one database, each killed again and again at moments that a seed decides, while their owners ask, act, approve, canonize and
 * are remembered (spec/7 "Reliability"; invariants M7, M9, M10; K3, K5). Rounds overlap: while one comes to rest, the next one's server dies.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { expectAllAnswer } from './afterwards.ts'
import { checkRound } from './checks.ts'
import { Coverage } from './coverage.ts'
import { faultSeeds } from '../support/environment.ts'
import { planRound } from './plan.ts'
import type { Plan } from './plan.ts'
import { Round } from './round.ts'
import type { Played } from './round.ts'
import { openStage } from './stage.ts'
import type { Stage } from './stage.ts'

/** Rounds that come to rest at the same time. */
const AT_ONCE = 10

const { first, count } = faultSeeds()
const plans = Array.from({ length: count }, (_, index) => planRound(first + index))
vi.setConfig({ testTimeout: 60_000 * (5 + count), hookTimeout: 300_000 })

let stage: Stage
let rounds: Map<number, Promise<Played>>
const coverage = new Coverage()

beforeAll(async () => {
  stage = await openStage()
  rounds = playAll()
})
afterAll(() => stage.close())

/** Starts every round when it is its turn: one kill after the other. */
function playAll(): Map<number, Promise<Played>> {
  const playing = new Map<number, Promise<Played>>()
  const resting: Promise<unknown>[] = []
  let before: Promise<unknown> = Promise.resolve()
  for (const [index, plan] of plans.entries()) {
    const house = Promise.resolve(resting[index - AT_ONCE]).then(() => stage.household(`s${plan.seed}`, plan.characters))
    const killed = Promise.all([house, before]).then(async ([household]) => {
      const round = new Round(stage, plan, household)
      await round.playUntilKilled()
      return round
    })
    before = killed.catch(() => undefined)
    const played = killed.then((round) => round.rest())
    resting.push(played.catch(() => undefined))
    playing.set(plan.seed, played)
  }
  return playing
}

function told({ seed, kill, characters, asks }: Plan): string {
  const neighbours = first + count > first + 1 ? `; with its neighbours: --seed ${Math.max(1, seed - 4)} --seeds 5` : ''
  return `seed ${seed} (npm run test:faults -- --seed ${seed}${neighbours})\nkill ${JSON.stringify(kill)}\n${characters} characters\n${asks
    .map((ask) => JSON.stringify(ask))
    .join('\n')}`
}

describe('a server that dies', () => {
  it.for(plans.map((plan) => [plan.seed, plan.kill.kind, plan.kill.name, plan] as const))(
    'seed %i, in %s at %s: everything comes to rest, nothing is lost, doubled or made up',
    async ([seed, , , plan]) => {
      let faults: string[]
      try {
        const played = await rounds.get(seed)
        if (!played) throw new Error('the round was not played')
        faults = await checkRound(stage, played)
        await coverage.note(stage, played)
      } catch (error) {
        throw new Error(`${error instanceof Error ? error.message : String(error)}\n${told(plan)}`, { cause: error })
      }
      expect(faults, told(plan)).toEqual([])
    },
  )

  it('leaves a record that is whole, and characters that answer', async () => {
    await Promise.allSettled(rounds.values())
    expect((await stage.observer.conversation.verify.verifyAll()).faults).toEqual([])
    await expectAllAnswer(stage, await Promise.all([...rounds.values()].map((round) => round.catch(() => null))))
  })

  it('has been killed in the middle of everything', async () => {
    await Promise.allSettled(rounds.values())
    console.log(coverage.told())
    if (count >= 40) expect(coverage.missing()).toEqual([])
  })
})
