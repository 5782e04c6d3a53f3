import { expect, it } from 'vitest'
import { recallAt } from './datasets.ts'

it('averages the share of relevant documents over questions', () => {
  const answers = [
    { found: [new Set(['a']), new Set(['x', 'b'])], relevant: new Set(['a', 'b']) },
    { found: [new Set(['y'])], relevant: new Set(['c']) },
  ]
  expect(recallAt([1, 2], answers)).toEqual([25, 50])
})
