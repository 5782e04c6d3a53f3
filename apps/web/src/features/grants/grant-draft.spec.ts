import type { CapabilityClass, GrantView } from '#contracts'
import { describe, expect, it } from 'vitest'
import type { GrantedTool } from './grant-draft.ts'
import { characterDraft, characterGrant, isExactMeaningful, judgedClass, ownerDraft, ownerGrant, toggled } from './grant-draft.ts'

const clock: GrantedTool = { name: 'clock', capability: 'read_only', egress: 'none' }
const notes: GrantedTool = { name: 'notes.write', capability: 'reversible_local', egress: 'none' }
const fetches: GrantedTool = { name: 'web.fetch', capability: 'read_only', egress: 'free' }
const mail: GrantedTool = { name: 'mail.send', capability: 'irreversible_external', egress: 'declared' }
const listed = [clock, notes, fetches, mail]

const grant = (changes: Partial<GrantView> = {}): GrantView => ({
  scope: 'character',
  scope_id: '0196f000-0000-7000-8000-000000000001',
  mode: 'default',
  classes: [],
  tools: null,
  exact: null,
  class_rules: [],
  max_cost_micros: null,
  version: 3,
  ...changes,
})

describe('a character’s grant', () => {
  it('gives the chosen tools and no class beyond what they need', () => {
    const draft = { ...characterDraft(grant(), []), tools: ['clock', 'web.fetch'] }
    expect(characterGrant(draft, grant(), listed)).toEqual({
      mode: 'default',
      classes: ['read_only', 'irreversible_external'],
      tools: ['clock', 'web.fetch'],
      exact: [],
      class_rules: [],
      max_cost_micros: null,
      version: 3,
    })
  })

  it('drops the classes of tools that were taken away', () => {
    const before = grant({ tools: ['clock', 'mail.send'], classes: ['read_only', 'irreversible_external'] })
    const draft = { ...characterDraft(before, []), tools: ['clock'] }
    expect(characterGrant(draft, before, listed).classes).toEqual(['read_only'])
  })

  it('keeps a tool that is not listed, with the classes that were there', () => {
    const before = grant({ tools: ['lost.tool', 'clock'], classes: ['read_only', 'code_executing'] })
    const kept = characterGrant(characterDraft(before, []), before, listed)
    expect([kept.tools, kept.classes]).toEqual([
      ['lost.tool', 'clock'],
      ['read_only', 'code_executing'],
    ])
  })

  it('shows what the owner names where it names nothing itself, and never lets through more than it showed', () => {
    const before = grant({ tools: ['mail.send'] })
    expect(characterDraft(before, ['mail.send', 'web.fetch']).exact).toEqual(['mail.send'])
    expect(characterDraft(grant({ tools: ['mail.send'], exact: [] }), ['mail.send']).exact).toEqual([])
    expect(characterGrant(characterDraft(grant(), ['mail.send']), grant(), listed).exact).toEqual([])
    const taken = { ...characterDraft(before, ['mail.send']), tools: [] }
    expect(characterGrant(taken, before, listed).exact).toEqual([])
  })

  it('keeps what the page does not show', () => {
    const before = grant({ class_rules: [{ capability: 'code_executing', verdict: 'forbidden' }], max_cost_micros: 5 })
    expect(characterGrant(characterDraft(before, []), before, listed)).toMatchObject({
      class_rules: before.class_rules,
      max_cost_micros: 5,
      version: 3,
    })
  })
})

describe('the owner’s grant', () => {
  it('keeps names, rules and price, and orders its classes', () => {
    const before = grant({ scope: 'owner', tools: ['clock'], max_cost_micros: 7, classes: ['read_only'] })
    const draft = { ...ownerDraft(before), classes: toggled<CapabilityClass>(['irreversible_external'], 'read_only') }
    expect(ownerGrant(draft, before)).toMatchObject({
      classes: ['read_only', 'irreversible_external'],
      tools: ['clock'],
      max_cost_micros: 7,
      version: 3,
    })
  })
})

describe('classes', () => {
  it('takes free egress for a send', () => {
    expect([clock, notes, fetches, mail].map(judgedClass)).toEqual([
      'read_only',
      'reversible_local',
      'irreversible_external',
      'irreversible_external',
    ])
    expect(listed.filter(isExactMeaningful).map(({ name }) => name)).toEqual(['web.fetch', 'mail.send'])
  })
})
