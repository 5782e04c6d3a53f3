import { expect } from 'vitest'
import type { RunAccepted } from '#contracts'
import { runEnded } from '../support/story.ts'
import { callUrl } from '../support/replica.ts'
import { Moments } from './moments.ts'
import type { AskPlan } from './plan.ts'
import { marked } from './provider.ts'
import type { Played } from './round.ts'
import type { Stage } from './stage.ts'

/** One character of each round is asked once more, now that nobody dies any more: its seat is free, and the answer is whole. */
export async function expectAllAnswer(stage: Stage, rounds: readonly (Played | null)[]): Promise<void> {
  for (const played of rounds) {
    if (!played) continue
    const { household, plan } = played
    const id = `r${plan.seed}a99`
    const ask: AskPlan = {
      id,
      character: plan.asks[0]?.character ?? 0,
      via: plan.seed % 2,
      startAfterMs: 0,
      turns: [{ pieces: [{ text: 'Still here.', pauseMs: 0 }], calls: [] }],
      canonize: false,
    }
    stage.provider.know(ask, new Moments(), household.sourceName)
    const tree = await stage.newTree(household, ask.character)
    const { person } = household
    const answer = await person.act({ via: ask.via, path: `/v1/trees/${tree.id}/runs`, body: { text: marked(id) }, key: `ask-${id}` })
    const { run_id: runId } = answer.json() as RunAccepted
    const client = {
      baseUrl: stage.apiUrl,
      token: person.token,
      call: (method: string, path: string) => callUrl({ url: stage.apiUrl + path, method, token: person.token }),
    }
    expect(await runEnded(client, runId), `the last ask of seed ${plan.seed}`).toMatchObject({ state: 'finished' })
  }
}
