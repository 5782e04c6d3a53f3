import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RequestPatch } from '#contracts'
import { applyPatch, UnfitPatchError } from './apply-patch.ts'
import type { PatchableMessage } from './apply-patch.ts'

const messages: PatchableMessage[] = [
  { role: 'system', content: 'ours', fixed: true },
  { role: 'system', content: 'card' },
  { role: 'user', content: 'question', kept: true },
  { role: 'assistant', content: '{"role":"assistant","tool_calls":[]}', json: true },
  { role: 'tool', content: '{"role":"tool"}', json: true },
]
const patch = (...ops: RequestPatch['ops']): RequestPatch => ({ version: 1, reference: null, ops })
const applied = (...ops: RequestPatch['ops']) => applyPatch(messages, patch(...ops)).map(({ role, content }) => `${role} ${content}`)
const fault = (...ops: RequestPatch['ops']): string => {
  try {
    applyPatch(messages, patch(...ops))
  } catch (error) {
    if (error instanceof UnfitPatchError) return error.fault
    throw error
  }
  return 'none'
}

describe('a patch', () => {
  it('replaces, inserts and removes by place, one after another', () => {
    const changed = applied(
      { op: 'insert', at: 1, role: 'system', text: 'first' },
      { op: 'replace', at: 2, role: 'assistant', text: 'card 2' },
      { op: 'remove', at: 1 },
      { op: 'insert', at: 5, role: 'user', text: 'last' },
    )
    expect(changed).toEqual([
      'system ours',
      'assistant card 2',
      'user question',
      'assistant {"role":"assistant","tool_calls":[]}',
      'tool {"role":"tool"}',
      'user last',
    ])
    expect(messages).toHaveLength(5)
  })

  it('words the question otherwise, and leaves it a question', () => {
    expect(applied({ op: 'replace', at: 2, role: 'user', text: 'masked' })).toContain('user masked')
    expect(fault({ op: 'replace', at: 2, role: 'system', text: 'x' })).toBe('kept_message')
    expect(fault({ op: 'remove', at: 2 })).toBe('kept_message')
    expect(fault({ op: 'replace', at: 2, role: 'user', text: 'masked' }, { op: 'remove', at: 2 })).toBe('kept_message')
  })

  it('leaves our own contract alone, wherever others put it', () => {
    expect(fault({ op: 'replace', at: 0, role: 'system', text: 'x' })).toBe('fixed_message')
    expect(fault({ op: 'insert', at: 0, role: 'system', text: 'x' }, { op: 'remove', at: 1 })).toBe('fixed_message')
  })

  it('leaves actions and what they brought alone, and together', () => {
    expect(fault({ op: 'replace', at: 3, role: 'assistant', text: 'x' })).toBe('not_a_text')
    expect(fault({ op: 'remove', at: 4 })).toBe('not_a_text')
    expect(fault({ op: 'insert', at: 4, role: 'user', text: 'x' })).toBe('splits_an_action')
  })

  it('has places that there are, and leaves something to answer', () => {
    expect(fault({ op: 'replace', at: 5, role: 'user', text: 'x' })).toBe('no_such_message')
    expect(fault({ op: 'insert', at: 6, role: 'user', text: 'x' })).toBe('no_such_message')
    const two: PatchableMessage[] = [{ role: 'user', content: 'a' }]
    expect(() => applyPatch(two, patch({ op: 'replace', at: 0, role: 'system', text: 'x' }))).toThrow(UnfitPatchError)
  })

  it('gives the same messages for the same patch, whatever it says', () => {
    const at = fc.nat({ max: 6 })
    const role = fc.constantFrom('system', 'user', 'assistant')
    const op = fc.oneof(
      fc.record({ op: fc.constant('replace' as const), at, role, text: fc.string({ minLength: 1 }) }),
      fc.record({ op: fc.constant('insert' as const), at, role, text: fc.string({ minLength: 1 }) }),
      fc.record({ op: fc.constant('remove' as const), at }),
    ) as fc.Arbitrary<RequestPatch['ops'][number]>
    const outcome = (ops: RequestPatch['ops']): unknown => {
      try {
        return applyPatch(messages, RequestPatch.parse(JSON.parse(JSON.stringify(patch(...ops)))))
      } catch (error) {
        return error instanceof UnfitPatchError ? error.fault : 'broken'
      }
    }
    fc.assert(
      fc.property(fc.array(op, { minLength: 1, maxLength: 5 }), (ops) => {
        const once = outcome(ops)
        expect(once).not.toBe('broken')
        expect(outcome(ops)).toEqual(once)
        if (Array.isArray(once)) expect((once as PatchableMessage[]).filter(({ json, fixed }) => json || fixed)).toHaveLength(3)
      }),
    )
  })

  it.each([
    ['another version', { version: 2, reference: null, ops: [{ op: 'remove', at: 0 }] }],
    ['no change', { version: 1, reference: null, ops: [] }],
    ['an empty text', { version: 1, reference: null, ops: [{ op: 'insert', at: 0, role: 'user', text: '' }] }],
    ['the role of tools', { version: 1, reference: null, ops: [{ op: 'insert', at: 0, role: 'tool', text: 'x' }] }],
    ['a member more', { version: 1, reference: null, ops: [{ op: 'remove', at: 0 }], tools: [] }],
    ['a place below the first', { version: 1, reference: null, ops: [{ op: 'remove', at: -1 }] }],
  ])('is not read where it has %s', (_, value) => {
    expect(RequestPatch.safeParse(value).success).toBe(false)
  })
})
