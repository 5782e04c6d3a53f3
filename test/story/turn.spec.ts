import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Explanation } from '#contracts'
import { startFakeUpstream } from '../support/fake-upstream.ts'
import type { FakeUpstream } from '../support/fake-upstream.ts'
import { expectReplays } from '../support/replays.ts'
import { answer, ask, askAndHear, call, follow, newTree, node, path, spoken } from '../support/story.ts'
import { startTestSystem } from '../support/system.ts'
import type { TestSystem } from '../support/system.ts'

let upstream: FakeUpstream
let system: TestSystem

beforeAll(async () => {
  upstream = await startFakeUpstream()
  system = await startTestSystem({ model: upstream.baseUrl })
})
afterAll(async () => {
  await expectReplays(system)
  await system.close()
  await upstream.close()
})

describe('a turn', () => {
  it('streams an answer, seals it, and shows it on the path', async () => {
    const tree = await newTree(system)
    upstream.script(answer('Good ', 'evening', '.'))
    const { accepted, events, text } = await askAndHear(system, tree.id, 'Good evening!')
    expect(text).toBe('Good evening.')
    expect(events.at(0)?.type).toBe('run.requested')
    expect(events.at(-1)).toMatchObject({ type: 'run.finished', candidate_id: accepted.candidate_id, partial: false })
    const candidate = await node(system, accepted.candidate_id)
    expect(candidate).toMatchObject({ sealed: true, partial: false, text: 'Good evening.', parent_id: accepted.question_id })
    const view = await path(system, tree.id)
    expect(view.nodes.slice(-2).map((entry) => entry.text)).toEqual(['Good evening!', 'Good evening.'])
    expect(view.tree.head_node_id).toBe(accepted.candidate_id)
  })

  it('M10: what was sent is what the record rebuilds, and the explanation says where it comes from', async () => {
    const tree = await newTree(system)
    upstream.script(answer('Tea?'))
    const { accepted } = await askAndHear(system, tree.id, 'What do you offer?')
    const sent = upstream.requests.at(-1)?.bodyText
    const context = await call<{ body: string; result: string }>(system, 'GET', `/v1/admin/runs/${accepted.run_id}/context`)
    expect(context.result).toBe('identical')
    expect(context.body).toBe(sent)
    const explanation = await call<Explanation>(system, 'GET', `/v1/runs/${accepted.run_id}/explanation`)
    expect(explanation.rebuilt).toBe('identical')
    expect(explanation.entities.some((entity) => entity.source === 'persona_anchor')).toBe(true)
    expect(explanation.messages.map((message) => message.text).join('\n')).toContain('What do you offer?')
  })

  it('T7: a reader that leaves after an event and comes back with its id sees every later one once', async () => {
    const tree = await newTree(system)
    const words = Array.from({ length: 100 }, (_, index) => `w${index} `)
    upstream.script(answer(...words))
    const accepted = await ask(system, tree.id, 'Count, please.')
    const first = await follow(system, accepted.run_id, { until: (event) => event.type === 'llm.delta' })
    const last = first.at(-1)?.seq ?? 0
    const rest = await follow(system, accepted.run_id, { after: last })
    const all = [...first, ...rest]
    const seqs = all.map((event) => event.seq)
    expect(new Set(seqs).size).toBe(all.length)
    expect(seqs).toEqual(seqs.toSorted((left, right) => left - right))
    expect(spoken(all)).toBe(words.join(''))
    expect((await node(system, accepted.candidate_id)).text).toBe(words.join(''))
    expect(spoken(await follow(system, accepted.run_id))).toBe(words.join(''))
  })
})
