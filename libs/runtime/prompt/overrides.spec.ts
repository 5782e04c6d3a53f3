import { describe, expect, it } from 'vitest'
import { applyOverrides } from './overrides.ts'
import type { PromptOverride } from './overrides.ts'
import { contentOf, entity, testId } from './test-prompts.ts'

const main = entity({ identifier: 'main', text: 'P', expand: true, trust: 'trusted', contentRef: contentOf(1, 'P'), sourceId: testId(10) })
const card = (text: string | null | undefined, changes: Partial<PromptOverride> = {}): PromptOverride => ({
  by: 'card.system_prompt',
  text,
  sourceId: testId(20),
  contentRef: null,
  derivedFrom: [testId(2)],
  trust: 'untrusted',
  ...changes,
})

describe('overrides (case C1)', () => {
  it('C1: {{original}} expands once', () => {
    const { entity: result, replacedBy } = applyOverrides(main, [card('X {{original}} Y {{original}}')])
    expect(result.text).toBe('X P Y ')
    expect(result.overriddenBy).toBe('card.system_prompt')
    expect(replacedBy).toEqual(['card.system_prompt'])
  })

  it('C1: forbid_override keeps the original and names who tried', () => {
    const result = applyOverrides({ ...main, forbidOverride: true }, [card('X {{original}} Y {{original}}'), card('')])
    expect(result.entity).toEqual({ ...main, forbidOverride: true })
    expect(result.refused).toEqual(['card.system_prompt', 'card.system_prompt'])
    expect(result.replacedBy).toEqual([])
  })

  it('takes an explicit empty text as removal, white space and nothing as no override', () => {
    expect(applyOverrides(main, [card('')]).entity).toMatchObject({ text: '', overriddenBy: 'card.system_prompt' })
    for (const text of [' \n\t', null, undefined]) expect(applyOverrides(main, [card(text)]).entity).toBe(main)
  })

  it('lays one override on the other', () => {
    const tree = card('T({{ORIGINAL}})', { by: 'tree', trust: 'trusted' })
    const { entity: result, replacedBy } = applyOverrides(main, [card('C({{ original }})'), tree])
    expect(result.text).toBe('T(C(P))')
    expect(result.overriddenBy).toBe('tree')
    expect(replacedBy).toEqual(['card.system_prompt', 'tree'])
  })

  it('puts the original in as it is', () => {
    const odd = { ...main, text: "$& $1 $' {{original}}" }
    expect(applyOverrides(odd, [card('<{{original}}>')]).entity.text).toBe("<$& $1 $' {{original}}>")
  })

  it('carries source, trust and origin of what is sent', () => {
    expect(applyOverrides(main, [card('mine')]).entity).toMatchObject({
      trust: 'untrusted',
      sourceId: testId(20),
      derivedFrom: [testId(2)],
      contentRef: null,
    })
    const quoting = applyOverrides(main, [
      card('mine, {{original}}', { trust: 'trusted', contentRef: contentOf(2, 'mine, {{original}}'), derivedFrom: [] }),
    ])
    expect(quoting.entity).toMatchObject({ trust: 'trusted', derivedFrom: [testId(2), testId(1)], contentRef: null })
    const laundered = applyOverrides({ ...main, trust: 'untrusted' }, [card('{{original}}', { trust: 'trusted' })])
    expect(laundered.entity.trust).toBe('untrusted')
  })
})
