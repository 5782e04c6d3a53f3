import { describe, expect, it } from 'vitest'
import { priceOfCall } from './price-of-call.ts'

describe('the price of a call', () => {
  it('is what the contract says, whatever the arguments are', () => {
    expect(priceOfCall({ priceMicros: 7 }, { max_cost_micros: 900 })).toBe(7)
    expect(priceOfCall({ priceMicros: null }, { max_cost_micros: 900 })).toBeNull()
  })

  it('is what the named argument gives away, and never less than the contract says', () => {
    const contract = { priceMicros: null, priceArgument: 'max_cost_micros' }
    expect(priceOfCall(contract, { max_cost_micros: 900 })).toBe(900)
    expect(priceOfCall({ ...contract, priceMicros: 1_000 }, { max_cost_micros: 900 })).toBe(1_000)
  })

  it.each([undefined, null, -1, 1.5, '900', 2 ** 60])('is not known by %s', (given) => {
    const contract = { priceMicros: null, priceArgument: 'max_cost_micros' }
    expect(priceOfCall(contract, given === undefined ? {} : { max_cost_micros: given })).toBeNull()
    expect(priceOfCall(contract, null)).toBeNull()
  })
})
