import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { saysTheSame, select } from './selection.ts'
import { tokenize } from './tokenize.ts'

const same = (left: string, right: string) => saysTheSame(new Set(tokenize(left).counts.keys()), new Set(tokenize(right).counts.keys()))
const texts = (...list: string[]) => list.map((text) => ({ text }))

describe('saysTheSame', () => {
  it.each([
    ['The user likes jasmine tea in the morning', 'The user likes jasmine tea in the mornings.'],
    ['用户喜欢在早上喝茉莉花茶', '用户喜欢在早上喝茉莉花茶。'],
  ])('%s = %s', (left, right) => {
    expect(same(left, right)).toBe(true)
  })

  it.each([
    [
      'The user likes drinking jasmine tea in the garden every morning',
      "The user doesn't like drinking jasmine tea in the garden every morning",
    ],
    ['The user flies from Oslo to Rome with one bag on day 12', 'The user flies from Oslo to Rome with one bag on day 13'],
    ['用户非常喜欢在每天早上喝一杯热的茉莉花茶', '用户不喜欢在每天早上喝一杯热的茉莉花茶'],
    ['周游世界', '在周末吃夜宵'],
    ['', ''],
  ])('%s ≠ %s', (left, right) => {
    expect(same(left, right)).toBe(false)
  })
})

describe('select', () => {
  it('gives in order, within items, and says what cut the rest', () => {
    const chosen = select(texts('tea', 'tea.', 'cats', 'boats'), { items: 2, characters: 100 })
    expect(chosen.map(({ rank, cutBy }) => rank ?? cutBy)).toEqual([1, 'near_duplicate', 2, 'items'])
  })

  it('passes over what is too long and goes on to what fits', () => {
    const chosen = select(texts('a river', 'a very long mountain road', 'sea'), { items: 5, characters: 12 })
    expect(chosen.map(({ rank, cutBy }) => rank ?? cutBy)).toEqual([1, 'characters', 2])
  })

  it('masks secrets again', () => {
    const [chosen] = select(texts('the card is 4111 1111 1111 1111'), { items: 1, characters: 100 })
    expect(chosen).toMatchObject({ shown: 'the card is [masked:card]', masked: true, rank: 1 })
  })

  it('never gives more than the limits, nor cuts the first that fits', () => {
    const text = fc.stringMatching(/^[a-z]{1,8}( [a-z]{1,8}){0,4}$/)
    fc.assert(
      fc.property(fc.array(text, { maxLength: 12 }), fc.nat(6), fc.nat(60), (list, items, characters) => {
        const chosen = select(texts(...list), { items, characters })
        const given = chosen.filter((item) => item.rank !== null)
        expect(given.length).toBeLessThanOrEqual(items)
        expect(given.reduce((sum, item) => sum + item.shown.length, 0)).toBeLessThanOrEqual(characters)
        expect(given.map((item) => item.rank)).toEqual(given.map((_, index) => index + 1))
        if (items > 0 && list[0] !== undefined && list[0].length <= characters) expect(chosen[0]?.rank).toBe(1)
      }),
    )
  })
})
