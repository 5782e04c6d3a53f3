import type { NodePart } from '#contracts'
import { describe, expect, it } from 'vitest'
import { calledWith, shownParts } from './action-parts.ts'
import { readObservation } from './observation.ts'

const call = (id: string, tool: string): NodePart => ({
  kind: 'tool_call',
  text: JSON.stringify({ action_id: id, tool, content_id: 'c' }),
})
const result = (id: string, tool: string, status: string, reason: string | null = null): NodePart => ({
  kind: 'tool_result_ref',
  text: JSON.stringify({ action_id: id, tool, status, reason, content_id: null }),
})
const text = (words: string): NodePart => ({ kind: 'text', text: words })

describe('shownParts', () => {
  it('joins a proposal with its outcome, where it was proposed', () => {
    const shown = shownParts([
      text('a'),
      call('1', 'look.up'),
      call('2', 'mail.send'),
      result('1', 'look.up', 'done'),
      text('b'),
      result('2', 'mail.send', 'denied', 'approval_refused'),
    ])
    expect(
      shown.map((one) => (one.kind === 'said' ? one.part.text : `${one.action.tool} ${one.action.status} ${one.action.reason}`)),
    ).toEqual(['a', 'look.up done null', 'mail.send denied approval_refused', 'b'])
  })

  it('shows a proposal that nothing became of, and an outcome without a proposal', () => {
    expect(shownParts([call('1', 'look.up')])).toEqual([
      { kind: 'action', action: { actionId: '1', tool: 'look.up', status: null, reason: null } },
    ])
    expect(shownParts([result('1', 'look.up', 'failed', 'timeout')])).toMatchObject([{ action: { status: 'failed', reason: 'timeout' } }])
  })

  it('claims no outcome that it does not know, and never joins what it cannot read', () => {
    expect(shownParts([result('1', 'x', 'blessed')])).toMatchObject([{ action: { status: null } }])
    const broken: NodePart = { kind: 'tool_call', text: 'no json' }
    expect(shownParts([broken, broken])).toHaveLength(2)
  })
})

describe('calledWith', () => {
  const called = (id: string, text: string) => ({
    text: JSON.stringify({ role: 'assistant', content: null, tool_calls: [{ id, function: { name: 'x', arguments: text } }] }),
  })

  it('finds the arguments in the message that called it, and in no other', () => {
    const entities = [
      { text: null },
      { text: 'b is mentioned here' },
      called('a', '{"n":1}'),
      { text: '{"tool_call_id":"b"}' },
      called('b', '{"n":2}'),
    ]
    expect(calledWith(entities, 'b')).toBe('{"n":2}')
    expect(calledWith(entities, 'c')).toBeNull()
    expect(calledWith([{ text: '{"tool_calls":[null,{"id":"a"}],"a":1}' }], 'a')).toBeNull()
  })
})

describe('readObservation', () => {
  it('reads what is kept, and trusts nothing that does not say how far', () => {
    const kept = { source: 'fake', at: '2026-01-01T00:00:00.000Z', media_type: 'text/plain', trust: 'workspace', text: 'a door' }
    expect(readObservation(JSON.stringify(kept))).toEqual({
      source: 'fake',
      at: '2026-01-01T00:00:00.000Z',
      licence: null,
      trust: 'workspace',
      truncated: false,
      text: 'a door',
    })
    expect(readObservation(JSON.stringify({ ...kept, trust: 'holy', truncated: true }))).toMatchObject({
      trust: 'untrusted',
      truncated: true,
    })
  })

  it('knows what is no observation', () => {
    for (const broken of ['', 'null', '[]', '{"text":1}', '{"text":"a"}']) expect(readObservation(broken)).toBeNull()
  })
})
