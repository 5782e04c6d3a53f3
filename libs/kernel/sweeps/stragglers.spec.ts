import { describe, expect, it } from 'vitest'
import { Stragglers } from './stragglers.ts'

describe('rows that could not be done', () => {
  it('are remembered in the order of their last failure, until they are done', () => {
    const stragglers = new Stragglers()
    for (const id of ['a', 'b', 'c', 'a']) stragglers.note(id)
    expect(stragglers.ids).toEqual(['b', 'c', 'a'])
    stragglers.forget('c')
    stragglers.forget('never seen')
    expect(stragglers.ids).toEqual(['b', 'a'])
  })

  it('are remembered up to a bound, the newest of them', () => {
    const stragglers = new Stragglers()
    for (let n = 0; n < 1_500; n++) stragglers.note(String(n))
    expect(stragglers.ids).toHaveLength(1_000)
    expect([stragglers.ids[0], stragglers.ids.at(-1)]).toEqual(['500', '1499'])
  })
})
