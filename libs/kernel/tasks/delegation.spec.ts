import { describe, expect, it } from 'vitest'
import { CHILDREN_MAX, childActions, DELEGATION_DEPTH_MAX, delegationRefusal } from './delegation.ts'
import type { Delegating } from './delegation.ts'

const free: Delegating = {
  depth: 0,
  children: 0,
  isOver: false,
  isCancelled: false,
  isKilled: false,
  actionsLeft: null,
  reserved_micros: 0,
  given_micros: null,
}

describe('handing work on', () => {
  it('is allowed within every bound', () => {
    expect(delegationRefusal(free)).toBeNull()
    const edge = { depth: DELEGATION_DEPTH_MAX - 1, children: CHILDREN_MAX - 1, actionsLeft: 1, reserved_micros: 5, given_micros: 5 }
    expect(delegationRefusal({ ...free, ...edge })).toBeNull()
  })

  it.each<[string, Partial<Delegating>]>([
    ['parent_ended', { isOver: true }],
    ['parent_cancelled', { isCancelled: true }],
    ['killed', { isKilled: true }],
    ['too_deep', { depth: DELEGATION_DEPTH_MAX }],
    ['too_many_children', { children: CHILDREN_MAX }],
    ['no_actions_left', { actionsLeft: 0 }],
    ['not_reserved', { reserved_micros: 4, given_micros: 5 }],
  ])('is refused as %s', (reason, facts) => {
    expect(delegationRefusal({ ...free, ...facts })).toBe(reason)
  })

  it('never gives more actions than the parent has left', () => {
    expect([childActions(null, null), childActions(20, null), childActions(20, 3), childActions(null, 3), childActions(900, null)]).toEqual(
      [8, 20, 3, 3, 50],
    )
  })
})
