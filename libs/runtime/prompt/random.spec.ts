import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createRandom } from './random.ts'

it('draws the same numbers for the same key, on every machine', () => {
  const random = createRandom('random|7|world.1|12')
  expect([random.next(), random.next(), random.next()]).toMatchInlineSnapshot(`
    [
      1584629440,
      2071348995,
      550352030,
    ]
  `)
})

it('stays below the bound and reaches every value', () => {
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 1, max: 2 ** 32 }), (key, bound) => {
      const drawn = createRandom(key).below(bound)
      expect(Number.isInteger(drawn) && drawn >= 0 && drawn < bound).toBe(true)
    }),
  )
  const random = createRandom('dice')
  const seen = new Set(Array.from({ length: 200 }, () => random.below(6)))
  expect(seen).toEqual(new Set([0, 1, 2, 3, 4, 5]))
})

it('spreads over its values about evenly, over draws and over keys', () => {
  const random = createRandom('even')
  const draws = Array.from({ length: 8000 }, (_, draw) => [random.below(4), createRandom(`pick|tree|${draw}`).below(4)])
  for (const value of [0, 1, 2, 3]) {
    for (const way of [0, 1]) expect(Math.abs(draws.filter((drawn) => drawn[way] === value).length - 2000)).toBeLessThan(200)
  }
})
