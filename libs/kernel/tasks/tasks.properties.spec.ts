import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ActionState, AttemptStatus, Constraint, TaskStatus, Verdict } from '#contracts'
import type { AdmissionDecision, CapabilityNeeds, CapabilitySet, CheckResult } from '#contracts'
import { blockerOf, isSettledAction, nextActionState, outcomeOf } from './action-state.ts'
import type { ActionEvent } from './action-state.ts'
import { missingCapabilities, needsOf } from './capability-set.ts'
import { completionVerdict, verificationStatus } from './completion.ts'
import { emptyTask, foldTask } from './fold.ts'
import { decodeDecision, encodeDecision, stricterDecision } from './policy-decision.ts'
import { chargeOf, priceOf, refundAction, remainingMicros, reserveAction, settleAction } from './task-budget.ts'
import type { TaskBudget } from './task-budget.ts'
import { attemptStatusOf, isCancelledTask, isLiveAttempt, isOverTask, isQuiet, nextTaskStatus } from './task-state.ts'
import type { TaskEvent } from './task-state.ts'

const actionEvents: ActionEvent[] = [
  'asked',
  'dispatched',
  'committed',
  'failed',
  'denied',
  'lost',
  'abandoned',
  'unaffordable',
  'cancelled',
]
const taskEvents: TaskEvent[] = ['verified', 'escalated', 'reopened', 'committed', 'cancel_requested', 'quiet']
const states = fc.constantFrom(...ActionState.options)

describe('the state of an action', () => {
  it('over any events ends at most once, and after that nothing changes it', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...actionEvents), { maxLength: 30 }), (events) => {
        let state: ActionState = 'proposed'
        let ended: ActionState | null = null
        for (const event of events) {
          const next = nextActionState(state, event)
          if (ended !== null) expect(next).toBeNull()
          if (next === null) continue
          expect(next).not.toBe(state)
          state = next
          if (isSettledAction(state)) ended = state
        }
        if (ended !== null) expect(state).toBe(ended)
      }),
    )
  })

  it('is dispatched at most once, whatever happens: what is lost is never sent again', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...actionEvents), { maxLength: 40 }), (events) => {
        let state: ActionState = 'proposed'
        let sent = 0
        for (const event of events) {
          const next = nextActionState(state, event)
          if (next === 'dispatched') sent += 1
          state = next ?? state
        }
        expect(sent).toBeLessThanOrEqual(1)
      }),
    )
  })

  it('is committed only after it was dispatched, and lost is left only by committed or failed', () => {
    for (const state of ActionState.options) {
      for (const event of actionEvents) {
        const next = nextActionState(state, event)
        if (next === 'committed' || next === 'failed' || next === 'unknown' || next === 'abandoned') {
          expect(['dispatched', 'unknown']).toContain(state)
        }
        if (state === 'unknown' && next !== null) expect(['committed', 'failed']).toContain(next)
      }
    }
  })

  it('says pending or waiting exactly while something can still become of it without a person’s word on what happened', () => {
    for (const state of ActionState.options) {
      const outcome = outcomeOf(state)
      const isOpen = outcome === 'pending' || outcome === 'waiting_for_approval'
      expect(isOpen, state).toBe(!isSettledAction(state) && state !== 'unknown')
    }
  })

  it('is held up only by what stands before it, is not over and was not declared independent', () => {
    const actions = fc.array(fc.record({ state: states, independent: fc.boolean() }), { maxLength: 12 })
    fc.assert(
      fc.property(actions, (given) => {
        const placed = given.map((action, index) => ({ action_id: String(index), ordinal: index + 1, ...action }))
        const free = placed.filter((action) => blockerOf(action, placed) === null)
        for (const action of placed) {
          const blocker = blockerOf(action, placed)
          if (action.independent) expect(blocker).toBeNull()
          if (blocker === null) continue
          expect(blocker.ordinal).toBeLessThan(action.ordinal)
          expect([blocker.independent, isSettledAction(blocker.state)]).toEqual([false, false])
        }
        // Of those that are not over and not independent, the first is always free: nothing waits for ever on its own kind.
        const first = placed.find(({ independent, state }) => !independent && !isSettledAction(state))
        if (first) expect(free).toContain(first)
        expect(placed.map((action) => blockerOf(action, placed.toReversed())?.action_id)).toEqual(
          placed.map((action) => blockerOf(action, placed)?.action_id),
        )
      }),
    )
  })
})

describe('the status of a task', () => {
  it('over any events is done only after it was verified and committed, and never after a cancellation', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...taskEvents), { maxLength: 20 }), (events) => {
        let status: TaskStatus = 'open'
        const taken: TaskEvent[] = []
        for (const event of events) {
          const next = nextTaskStatus(status, event)
          if (next === null) continue
          if (isOverTask(status)) throw new Error('something followed the end')
          taken.push(event)
          status = next
        }
        if (status === 'done') expect(taken.slice(-2)).toEqual(['verified', 'committed'])
        if (taken.includes('cancel_requested')) expect(isCancelledTask(status)).toBe(true)
        if (status === 'cancelled') expect(taken.at(-1)).toBe('quiet')
      }),
    )
  })

  it('can be cancelled wherever it is not over', () => {
    for (const status of TaskStatus.options) {
      expect(nextTaskStatus(status, 'cancel_requested') !== null || isCancelledTask(status), status).toBe(
        !isOverTask(status) || status === 'cancelled',
      )
    }
  })

  it('and its attempts: unknown first, then what is under way, then what is asked; quiet is when nothing is', () => {
    fc.assert(
      fc.property(fc.array(states, { maxLength: 12 }), (given) => {
        const status = attemptStatusOf(given)
        expect(isLiveAttempt(status)).toBe(true)
        expect(status === 'active').toBe(isQuiet(given))
        expect(status === 'reconcile_required').toBe(given.includes('unknown'))
        expect(attemptStatusOf(given.toReversed())).toBe(status)
      }),
    )
    expect(AttemptStatus.options.filter(isLiveAttempt)).toHaveLength(4)
  })
})

const budgets = fc
  .record({ max_cost_micros: fc.option(fc.nat(500)), max_actions: fc.nat(20) })
  .map((bounds): TaskBudget => ({ ...bounds, spent_micros: 0, reserved_micros: 0, used_actions: 0 }))

describe('the budget of a task', () => {
  it('is never passed by any order of reservations and settlements, and everything reserved is given back', () => {
    const steps = fc.array(fc.record({ price: fc.option(fc.nat(100)), cost: fc.nat(300), settleFirst: fc.boolean(), lost: fc.boolean() }), {
      maxLength: 40,
    })
    fc.assert(
      fc.property(budgets, steps, (start, given) => {
        let budget = start
        const open: { reserved: number; cost: number; lost: boolean }[] = []
        const settleOne = (): void => {
          const next = open.shift()
          if (!next) return
          const charged = chargeOf(budget, next)
          budget = settleAction(budget, { reserved: next.reserved, charged })
          // Proof that it had not happened after all.
          if (next.lost) budget = refundAction(budget, charged)
        }
        const check = (): void => {
          expect(budget.spent_micros).toBeGreaterThanOrEqual(0)
          expect(budget.reserved_micros).toBe(open.reduce((sum, { reserved }) => sum + reserved, 0))
          expect(budget.used_actions).toBeLessThanOrEqual(budget.max_actions)
          if (budget.max_cost_micros !== null)
            expect(budget.spent_micros + budget.reserved_micros).toBeLessThanOrEqual(budget.max_cost_micros)
        }
        for (const { price, cost, settleFirst, lost } of given) {
          if (settleFirst) settleOne()
          const reserved = reserveAction(budget, price)
          if (price === null && budget.max_cost_micros !== null) expect(reserved).toBeNull()
          if (reserved) {
            budget = reserved.budget
            open.push({ reserved: reserved.reserved, cost, lost })
          }
          check()
        }
        while (open.length > 0) settleOne()
        check()
        expect(budget.reserved_micros).toBe(0)
      }),
    )
  })

  it('leaves what it does not bound unbounded, and takes the higher of two prices where the contract knows one', () => {
    expect(remainingMicros({ ...emptyTask.budget, max_cost_micros: null })).toBeNull()
    expect([priceOf(null, null), priceOf(3, null), priceOf(null, 4), priceOf(3, 4), priceOf(5, 4)]).toEqual([null, null, 4, 4, 5])
  })
})

const decisions = fc.constantFrom(...Verdict.options).chain((verdict) =>
  fc
    .record({
      constraints: fc.uniqueArray(fc.constantFrom(...Constraint.options), { minLength: 1 }),
      reason: fc.constantFrom('read_only' as const, 'class_asks' as const, 'approved' as const),
    })
    .map(({ constraints, reason }): AdmissionDecision => ({
      verdict,
      reason,
      capability: 'read_only',
      constraints: verdict === 'rule_bound' ? constraints : [],
      policy_version: 1,
    })),
)
const order = ['ALLOW', 'CONSTRAINED_ALLOW', 'REQUIRE_APPROVAL', 'DENY']
const id = '01a22968-84d7-71a4-bf1f-6eeb557de500'

describe('a decision as it travels (case E17)', () => {
  it('comes back as it was sent', () => {
    fc.assert(
      fc.property(decisions, (decision) => {
        const decoded = decodeDecision(id, encodeDecision(id, decision))
        expect(decoded).toMatchObject({ reason_code: decision.reason, constraints: decision.constraints })
        expect(order.indexOf(decoded.decision)).toBe(Verdict.options.indexOf(decision.verdict))
      }),
    )
  })

  it('that is anything else forbids', () => {
    fc.assert(
      fc.property(fc.anything(), (message) => {
        expect(decodeDecision(id, message)).toMatchObject({ decision: 'DENY', constraints: [] })
      }),
    )
  })

  it('only tightens another one, in either order', () => {
    fc.assert(
      fc.property(decisions, decisions, (first, second) => {
        const [one, two] = [first, second].map((decision) => decodeDecision(id, encodeDecision(id, decision)))
        if (!one || !two) throw new Error('there are two')
        const met = stricterDecision(one, two)
        expect(order.indexOf(met.decision)).toBe(Math.max(order.indexOf(one.decision), order.indexOf(two.decision)))
        if (met.decision === 'CONSTRAINED_ALLOW') {
          expect(new Set(met.constraints)).toEqual(new Set([...one.constraints, ...two.constraints]))
        }
        expect(stricterDecision(two, one).decision).toBe(met.decision)
      }),
    )
  })
})

const able: CapabilitySet = {
  structured_events: 'yes',
  pause_for_approval: 'yes',
  resume: 'checkpoint',
  cancel: 'process_tree',
  artifact_export: ['text/plain', 'text/markdown', 'application/json'],
  workspace_isolation: 'vm',
  raw_event_provenance: 'yes',
}
const unsure: CapabilitySet = {
  structured_events: 'unknown',
  pause_for_approval: 'unknown',
  resume: 'unknown',
  cancel: 'unknown',
  artifact_export: 'unknown',
  workspace_isolation: 'unknown',
  raw_event_provenance: 'unknown',
}
const unable: CapabilitySet = {
  structured_events: 'no',
  pause_for_approval: 'no',
  resume: 'none',
  cancel: 'none',
  artifact_export: [],
  workspace_isolation: 'local',
  raw_event_provenance: 'no',
}
const needs: fc.Arbitrary<CapabilityNeeds> = fc.record({
  structured_events: fc.boolean(),
  pause_for_approval: fc.boolean(),
  resume: fc.constantFrom('none' as const, 'session' as const, 'checkpoint' as const),
  cancel: fc.constantFrom('none' as const, 'cooperative' as const, 'process_tree' as const),
  artifact_export: fc.subarray(['text/plain', 'text/markdown', 'application/json'] as const).map((types) => [...types]),
  workspace_isolation: fc.subarray(['container', 'vm'] as const).map((kinds) => [...kinds]),
  raw_event_provenance: fc.boolean(),
})
const keys = Object.keys(able) as (keyof CapabilityNeeds)[]

describe('what a runtime can do', () => {
  it('is enough where it can do everything, and no and unknown are never scheduled past', () => {
    fc.assert(
      fc.property(needs, (needed) => {
        const isAsked = (key: keyof CapabilityNeeds): boolean => {
          const value = needed[key]
          return Array.isArray(value) ? value.length > 0 : value !== false && value !== 'none'
        }
        const asked = keys.filter(isAsked)
        const isFine = needed.workspace_isolation.length === 0 || needed.workspace_isolation.includes('vm')
        expect(missingCapabilities(needed, able)).toEqual(isFine ? [] : ['workspace_isolation'])
        for (const lacking of [unsure, unable]) {
          expect(new Set(missingCapabilities(needed, lacking))).toEqual(new Set(asked))
          // One by one: what is not known of a single thing counts for that thing alone.
          for (const key of keys) {
            const missing = missingCapabilities(needed, { ...able, [key]: lacking[key] })
            if (isAsked(key)) expect(missing).toContain(key)
          }
        }
      }),
    )
  })

  it('is asked for by risk and tools whatever the owner leaves out', () => {
    fc.assert(
      fc.property(needs, fc.constantFrom('low' as const, 'medium' as const, 'high' as const), fc.boolean(), (asked, risk, acts) => {
        const needed = needsOf({ risk, tools: acts ? ['pay'] : [], asked })
        if (acts) expect(needed).toMatchObject({ structured_events: true, pause_for_approval: true, resume: 'checkpoint' })
        if (risk === 'high') expect(needed).toMatchObject({ structured_events: true, raw_event_provenance: true })
        expect(needed.cancel).not.toBe('none')
        for (const key of ['structured_events', 'pause_for_approval', 'raw_event_provenance'] as const) {
          if (asked[key]) expect(needed[key]).toBe(true)
        }
      }),
    )
  })
})

const checks = fc.array(
  fc.record({
    id: fc.constant('a'),
    kind: fc.constant('schema' as const),
    status: fc.constantFrom('passed' as const, 'failed' as const),
    code: fc.constant('x'),
    repairable: fc.boolean(),
  }),
  { maxLength: 6 },
)

describe('a verification (case E13)', () => {
  it('passes only where something was checked and all of it holds; repair is bounded', () => {
    fc.assert(
      fc.property(checks, fc.nat(5), fc.nat(5), (given: CheckResult[], repairs, maxRepairs) => {
        const holds = given.length > 0 && given.every(({ status }) => status === 'passed')
        expect(verificationStatus(given)).toBe(holds ? 'passed' : 'failed')
        const verdict = completionVerdict(given, { repairs, maxRepairs })
        expect(verdict === 'verified').toBe(holds)
        if (verdict === 'repair') {
          expect(repairs).toBeLessThan(maxRepairs)
          expect(given.some(({ status, repairable }) => status === 'failed' && !repairable)).toBe(false)
        }
        if (given.length === 0) expect(verdict).toBe('needs_escalation')
      }),
    )
  })
})

describe('the fold of a task’s stream', () => {
  it('from a checkpoint at any place is the fold from the beginning', () => {
    const action = (n: number) => `01a22968-84d7-71a4-bf1f-${String(n).padStart(12, '0')}`
    const event = fc.oneof(
      fc.record({ n: fc.nat(4), independent: fc.boolean() }).map(({ n, independent }) => ({
        type: 'action.submitted' as const,
        payload: { action_id: action(n), attempt_id: id, ordinal: n + 1, independent },
      })),
      fc.nat(4).map((n) => ({ type: 'action.decided' as const, payload: { action_id: action(n), decision: 'REQUIRE_APPROVAL' } })),
      fc.record({ n: fc.nat(4), reserved: fc.nat(50) }).map(({ n, reserved }) => ({
        type: 'action.dispatched' as const,
        payload: { action_id: action(n), effect_id: id, reserved_micros: reserved },
      })),
      fc.record({ n: fc.nat(4), from: states, to: states, charged: fc.nat(50) }).map(({ n, from, to, charged }) => ({
        type: 'action.settled' as const,
        payload: { action_id: action(n), from, to, charged_micros: charged },
      })),
      fc.constantFrom(...TaskStatus.options).map((to) => ({ type: 'task.changed' as const, payload: { to, reason: 'x' } })),
      fc.constant({ type: 'run.finished' as const, payload: {} }),
    )
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), fc.nat(40), (events, cut) => {
        const whole = events.reduce(foldTask, emptyTask)
        const checkpoint = JSON.parse(JSON.stringify(events.slice(0, cut).reduce(foldTask, emptyTask))) as typeof emptyTask
        expect(events.slice(cut).reduce(foldTask, checkpoint)).toEqual(whole)
      }),
    )
  })
})
