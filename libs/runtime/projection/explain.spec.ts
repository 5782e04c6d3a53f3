import { describe, expect, it } from 'vitest'
import { EntitySource, Explanation } from '#contracts'
import { assemble } from '../prompt/assemble.ts'
import { inChat, loaderOf, path, recorded, request, testId } from '../prompt/test-prompts.ts'
import { personaEntities } from '../prompt/persona-entities.ts'
import { readings } from '../prompt/test-prompts.ts'
import { explainProjection, labelOf } from './explain.ts'
import { rebuildRequest } from './rebuild-request.ts'

const card = {
  name: 'Lin',
  description: 'Keeps a tea house.',
  personality: '',
  scenario: '',
  exampleMessages: '',
  systemPrompt: '',
  postHistoryInstructions: '',
}
const { entities, values } = personaEntities({
  persona: { versionId: testId(21), contentId: testId(22), trust: 'workspace', card },
  user: { versionId: null, contentId: null, trust: 'workspace', name: 'Ada', description: '' },
  readings,
  chatKey: testId(5000),
})
const conversation = path([
  { role: 'character', text: 'x'.repeat(9000) },
  { role: 'user', text: 'q0' },
  { role: 'character', text: 'cut sh', partial: true },
  { role: 'user', text: 'q1' },
  { role: 'character', text: 'a1' },
  { role: 'user', text: 'q2' },
])
const input = request({ entities: [...entities, inChat('note', 2, 0)], values, conversation, window: 6000 })
const stored = recorded(input, assemble(input))

describe('explainProjection', () => {
  const explain = (erased: readonly string[] = []) => {
    const loader = loaderOf(stored, new Set(erased))
    return explainProjection({
      projected: stored.projected,
      rebuilt: rebuildRequest(stored.projected, loader),
      textOf: (id) => (erased.includes(id) ? null : (stored.contents.get(id) ?? null)),
    })
  }

  it('tells each entity in sent order, its text, and how many messages a stretch of the conversation holds', () => {
    const { entities: explained, messages } = explain()
    expect(explained.map(({ label, nodes, text }) => [label, nodes, text?.slice(0, 12) ?? null])).toEqual([
      ['Rules of the system', undefined, 'These rules '],
      ['Main prompt', undefined, "Write Lin's "],
      ['Character description', undefined, 'Keeps a tea '],
      ['Conversation', 1, null],
      ['Interrupted answer', 1, null],
      ['Conversation', 1, null],
      ['World note', undefined, 'note'],
      ['Conversation', 1, null],
      ['Your message', 1, null],
    ])
    expect(messages.at(-1)).toEqual({ role: 'user', text: 'q2' })
  })

  it('tells what was left out and why', () => {
    expect(explain().dropped).toEqual([
      {
        identifier: 'history',
        source: 'conversation',
        source_id: testId(1),
        tokens: 9004,
        reason: 'message_too_large',
        nodes: 1,
        label: 'Conversation',
      },
    ])
  })

  it('shows an erased text as absent', () => {
    const erased = explain([testId(4000)])
    expect(erased.entities[0]?.text).toBeNull()
    expect(erased.messages[0]).toEqual({ role: 'system', text: null })
  })

  it('fits the API', () => {
    const whole = {
      ...explain(),
      run_id: testId(1),
      turn: 1,
      turns: 1,
      model: 'demo',
      demo: true,
      usage: null,
      rebuilt: 'identical',
      request_digest: 'd',
    }
    expect(Explanation.parse(whole)).toEqual(whole)
  })

  it('has words for every source', () => {
    for (const source of EntitySource.options) expect(labelOf({ identifier: 'plugin.x', source })).toMatch(/^[A-Z]/)
  })
})
