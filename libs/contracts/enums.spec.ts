import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { meetTrust, Trust } from './enums.ts'
import { CapabilityClass, Verdict } from './tools.ts'

const trust = fc.constantFrom(...Trust.options)
const rank = (value: Trust): number => Trust.options.indexOf(value)

describe('orders that everything rests on', () => {
  it('trust is a lattice of three: of several the lowest counts, in whatever order and however often they come', () => {
    expect(Trust.options).toEqual(['untrusted', 'workspace', 'trusted'])
    fc.assert(
      fc.property(fc.array(trust, { minLength: 1 }), trust, (several, one) => {
        const meet = meetTrust(several)
        expect(rank(meet)).toBe(Math.min(...several.map(rank)))
        expect(meetTrust([...several].reverse())).toBe(meet)
        expect(meetTrust([...several, ...several])).toBe(meet)
        expect(rank(meetTrust([meet, one]))).toBeLessThanOrEqual(rank(meet))
        expect(meetTrust([meetTrust(several), one])).toBe(meetTrust([...several, one]))
      }),
    )
  })

  it('trust that nobody knows counts as none', () => {
    expect(meetTrust(['trusted', 'holy' as Trust])).toBe('untrusted')
  })

  it('there are five classes, mildest first, and four verdicts, mildest first', () => {
    expect(CapabilityClass.options).toEqual(['read_only', 'reversible_local', 'code_executing', 'trust_mutating', 'irreversible_external'])
    expect(Verdict.options).toEqual(['autonomous', 'rule_bound', 'ask', 'forbidden'])
  })
})
