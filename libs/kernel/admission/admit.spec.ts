import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AdmissionDecision, CapabilityClass, Egress, PermissionMode, RunKind, Trust, Verdict } from '#contracts'
import type { AdmissionFacts, AdmissionReason, ApprovalFacts, Arbitration, GrantLayer } from '#contracts'
import { ADMISSION_POLICY_VERSION, admit, isExactlyGranted, isGranted, raiseClass } from './admit.ts'

const mild: Arbitration = { capability: 'autonomous', data: 'autonomous', consequence: 'autonomous', situation: 'autonomous' }
const everything: GrantLayer = { scope: 'owner', classes: [...CapabilityClass.options], tools: null, exact: null }
const given: GrantLayer = { ...everything, scope: 'character', tools: ['clock', 'mail.send', 'notes.write'] }
const yes: ApprovalFacts = { state: 'approved', same_action: true, same_arguments: true, same_versions: true, by_owner: true }
const lawful: AdmissionFacts = {
  tool: 'clock',
  capability: 'read_only',
  argument_capability: null,
  egress: 'none',
  undoable: false,
  arguments_valid: true,
  run_kind: 'answer',
  mode: 'default',
  grants: [everything, given],
  class_rules: [],
  context_trust: 'workspace',
  arbitration: mild,
  listeners: [],
  killed: false,
  approval: null,
}
const judge = (facts: Partial<AdmissionFacts>) => admit({ ...lawful, ...facts })
const rank = (verdict: Verdict): number => Verdict.options.indexOf(verdict)

describe('classes and modes (K2)', () => {
  const cases: [string, Partial<AdmissionFacts>, Verdict, AdmissionReason][] = [
    ['reading needs nobody', {}, 'autonomous', 'read_only'],
    ['reading needs nobody in mode plan', { mode: 'plan' }, 'autonomous', 'read_only'],
    ['what can be undone runs unattended', { capability: 'reversible_local', undoable: true }, 'rule_bound', 'undoable_within_rules'],
    ['what cannot is asked for', { capability: 'reversible_local' }, 'ask', 'not_undoable'],
    ['plan denies all above reading', { capability: 'reversible_local', undoable: true, mode: 'plan' }, 'forbidden', 'plan_mode'],
    ['code asks', { capability: 'code_executing' }, 'ask', 'class_asks'],
    ['auto lifts that', { capability: 'code_executing', mode: 'auto' }, 'rule_bound', 'operator_mode_auto'],
    ['not under untrusted text', { capability: 'code_executing', mode: 'auto', context_trust: 'untrusted' }, 'ask', 'untrusted_context'],
    ['code never has egress', { capability: 'code_executing', mode: 'auto', egress: 'declared' }, 'forbidden', 'code_with_egress'],
    ['auto lifts nothing else: trust', { capability: 'trust_mutating', mode: 'auto' }, 'ask', 'class_asks'],
    ['auto lifts nothing else: sending', { capability: 'irreversible_external', mode: 'auto', egress: 'declared' }, 'ask', 'class_asks'],
    ['an unknown class', { capability: null }, 'forbidden', 'unknown_tool'],
    ['an unknown mode', { mode: null }, 'forbidden', 'unknown_mode'],
    ['arguments that do not fit', { arguments_valid: false }, 'forbidden', 'arguments_invalid'],
    ['the kill switch', { killed: true }, 'forbidden', 'killed'],
    [
      'a job that would change trust',
      { capability: 'trust_mutating', run_kind: 'maintenance' },
      'forbidden',
      'maintenance_run_writes_canon',
    ],
  ]
  it.each(cases)('%s', (_, facts, verdict, reason) => {
    expect(judge(facts)).toMatchObject({ verdict, reason })
  })

  it('refuses a value that it does not know, wherever it stands', () => {
    for (const facts of [
      { mode: 'yolo' },
      { capability: 'harmless' },
      { run_kind: 'root' },
      { context_trust: 'holy' },
      { egress: 'maybe' },
      { listeners: ['ALLOW'] },
      { admin: true },
      { approval: { ...yes, state: 'granted' } },
    ]) {
      expect(admit({ ...lawful, ...facts } as unknown as AdmissionFacts)).toMatchObject({ verdict: 'forbidden', reason: 'unknown_value' })
    }
  })

  it('lets arguments raise a class and never lower it', () => {
    for (const declared of CapabilityClass.options) {
      for (const raised of CapabilityClass.options) {
        const order = CapabilityClass.options
        expect(order.indexOf(raiseClass(declared, raised) ?? 'read_only')).toBe(Math.max(order.indexOf(declared), order.indexOf(raised)))
      }
    }
    expect(raiseClass('read_only', 'root' as CapabilityClass)).toBeNull()
  })

  it('takes the strictest of the four dimensions', () => {
    for (const dimension of Object.keys(mild)) {
      for (const verdict of ['ask', 'forbidden'] as const) {
        expect(judge({ arbitration: { ...mild, [dimension]: verdict } }), dimension).toMatchObject({ verdict, reason: 'arbitration' })
      }
    }
    expect(judge({ capability: 'code_executing', arbitration: { ...mild, data: 'rule_bound' } })).toMatchObject({ verdict: 'ask' })
  })

  it('takes a place that arguments choose for a send', () => {
    expect(judge({ egress: 'free' })).toMatchObject({ verdict: 'ask', capability: 'irreversible_external' })
    expect(judge({ egress: 'free', context_trust: 'untrusted' })).toMatchObject({ verdict: 'forbidden', reason: 'egress_under_untrusted' })
  })
})

describe('egress by trust (K1)', () => {
  const send: Partial<AdmissionFacts> = { tool: 'mail.send', capability: 'irreversible_external', egress: 'declared' }
  const named: GrantLayer[] = [{ ...everything, exact: ['mail.send'] }, given]

  it('is denied under anything untrusted, named, approved and in mode auto all the same', () => {
    const judged = judge({ ...send, context_trust: 'untrusted', grants: named, mode: 'auto', approval: yes })
    expect(judged).toMatchObject({ verdict: 'forbidden', reason: 'egress_under_untrusted' })
  })
  it('asks under workspace, whatever is named', () => {
    expect(judge({ ...send, grants: named })).toMatchObject({ verdict: 'ask', reason: 'untrusted_context' })
  })
  it('goes by its exact name alone where all is trusted', () => {
    expect(judge({ ...send, grants: named, context_trust: 'trusted' })).toMatchObject({ verdict: 'rule_bound', reason: 'exact_grant' })
    expect(judge({ ...send, context_trust: 'trusted' })).toMatchObject({ verdict: 'ask', reason: 'class_asks' })
  })
})

describe('approvals', () => {
  const asks: Partial<AdmissionFacts> = { capability: 'code_executing' }
  it('let the one action through that they were given for, once, with exactly these arguments', () => {
    expect(judge({ ...asks, approval: yes })).toEqual({
      verdict: 'rule_bound',
      reason: 'approved',
      capability: 'code_executing',
      constraints: ['no_egress', 'exact_arguments', 'single_use'],
      policy_version: ADMISSION_POLICY_VERSION,
    })
  })
  it.each(['same_action', 'same_arguments', 'same_versions', 'by_owner'] as const)('serve nothing else: %s', (key) => {
    expect(judge({ ...asks, approval: { ...yes, [key]: false } })).toMatchObject({ verdict: 'forbidden', reason: 'approval_does_not_fit' })
  })
  it('takes silence for a no: an answer that did not come in time, or was taken back', () => {
    expect(judge({ ...asks, approval: { ...yes, state: 'expired' } })).toMatchObject({ verdict: 'forbidden', reason: 'approval_expired' })
    expect(judge({ ...asks, approval: { ...yes, state: 'revoked' } })).toMatchObject({ verdict: 'forbidden', reason: 'approval_refused' })
  })
  it('serve once', () => {
    expect(judge({ ...asks, approval: { ...yes, state: 'used' } })).toMatchObject({ verdict: 'forbidden', reason: 'approval_does_not_fit' })
  })
  it('are waited for, although the rules would ask nobody any more (case E2)', () => {
    expect(judge({ approval: { ...yes, state: 'pending' } })).toMatchObject({ verdict: 'ask' })
    expect(judge({ approval: { ...yes, state: 'refused' } })).toMatchObject({ verdict: 'forbidden', reason: 'approval_refused' })
    expect(judge({ approval: yes })).toMatchObject({ verdict: 'autonomous' })
  })
  it('do not outlive the permission (case E3)', () => {
    expect(judge({ ...asks, approval: yes, mode: 'plan' })).toMatchObject({ verdict: 'forbidden', reason: 'plan_mode' })
    expect(judge({ ...asks, approval: yes, grants: [{ ...everything, classes: [] }, given] })).toMatchObject({ reason: 'not_granted' })
  })
})

describe('grants', () => {
  it.each<[string, GrantLayer[]]>([
    ['its owner’s bound alone', [everything]],
    ['a character’s layer that names none', [everything, { ...given, tools: null }]],
    ['a character’s layer that names others', [everything, { ...given, tools: ['mail.send'] }]],
    ['a tree’s or a task’s layer', [everything, { ...given, scope: 'tree' }, { ...given, scope: 'task' }]],
  ])('a character has no tool by %s: somebody gave it by name', (_, grants) => {
    for (const approval of [null, yes]) {
      expect(judge({ grants, approval })).toMatchObject({ verdict: 'forbidden', reason: 'not_granted' })
    }
  })
  it.each(CapabilityClass.options)('a job’s run does nothing of class %s', (capability) => {
    const exact = [{ ...everything, exact: ['clock'] }, given]
    const judged = judge({ capability, run_kind: 'maintenance', undoable: true, mode: 'auto', context_trust: 'trusted', grants: exact })
    expect(judged.verdict).toBe('forbidden')
  })
})

describe('properties over random facts', () => {
  const tool = fc.constantFrom('clock', 'mail.send', 'notes.write')
  const layer: fc.Arbitrary<GrantLayer> = fc.record({
    scope: fc.constantFrom('owner', 'bundle', 'character', 'tree'),
    classes: fc.subarray([...CapabilityClass.options]),
    tools: fc.option(fc.uniqueArray(tool), { nil: null }),
    exact: fc.option(fc.uniqueArray(tool), { nil: null }),
  })
  const verdict = fc.constantFrom(...Verdict.options)
  const approval: fc.Arbitrary<ApprovalFacts | null> = fc.option(
    fc.record({
      state: fc.constantFrom('pending', 'approved', 'refused', 'expired', 'revoked', 'used'),
      same_action: fc.boolean(),
      same_arguments: fc.boolean(),
      same_versions: fc.boolean(),
      by_owner: fc.boolean(),
    }),
    { nil: null },
  )
  const facts: fc.Arbitrary<AdmissionFacts> = fc.record({
    tool,
    capability: fc.option(fc.constantFrom(...CapabilityClass.options), { nil: null, freq: 10 }),
    argument_capability: fc.option(fc.constantFrom(...CapabilityClass.options), { nil: null }),
    egress: fc.constantFrom(...Egress.options),
    undoable: fc.boolean(),
    arguments_valid: fc.constantFrom(true, true, true, false),
    run_kind: fc.constantFrom(...RunKind.options),
    mode: fc.option(fc.constantFrom(...PermissionMode.options), { nil: null, freq: 10 }),
    grants: fc.array(
      fc.oneof(
        layer,
        fc.constant(everything),
        fc.constant(given),
        fc.constant<GrantLayer>({ ...everything, exact: ['mail.send', 'clock'] }),
      ),
      {
        maxLength: 4,
      },
    ),
    class_rules: fc.array(fc.record({ capability: fc.constantFrom(...CapabilityClass.options), verdict }), { maxLength: 3 }),
    context_trust: fc.constantFrom(...Trust.options),
    arbitration: fc.oneof(fc.constant(mild), fc.record({ capability: verdict, data: verdict, consequence: verdict, situation: verdict })),
    listeners: fc.array(verdict, { maxLength: 3 }),
    killed: fc.constantFrom(false, false, false, true),
    approval,
  })

  it('each decision holds the form of a decision', () => {
    fc.assert(fc.property(facts, (given) => AdmissionDecision.safeParse(admit(given)).success))
  })

  it('no order of layers, rules or listeners changes the verdict', () => {
    fc.assert(
      fc.property(facts, (given) => {
        const turned = {
          ...given,
          grants: [...given.grants].reverse(),
          class_rules: [...given.class_rules].reverse(),
          listeners: [...given.listeners].reverse(),
        }
        expect(admit(turned).verdict).toBe(admit(given).verdict)
      }),
    )
  })

  it('one more layer, rule or listener never widens', () => {
    fc.assert(
      fc.property(facts, layer, verdict, fc.constantFrom(...CapabilityClass.options), (given, more, word, capability) => {
        // Without these nothing is granted at all; a second one narrows as any other does.
        fc.pre(given.grants.some(({ scope }) => scope === more.scope) || (more.scope !== 'owner' && more.scope !== 'character'))
        const before = rank(admit(given).verdict)
        expect(rank(admit({ ...given, grants: [...given.grants, more] }).verdict)).toBeGreaterThanOrEqual(before)
        expect(rank(admit({ ...given, listeners: [...given.listeners, word] }).verdict)).toBeGreaterThanOrEqual(before)
        const ruled = { ...given, class_rules: [...given.class_rules, { capability, verdict: word }] }
        expect(rank(admit(ruled).verdict)).toBeGreaterThanOrEqual(before)
      }),
    )
  })

  it('less trust never widens, nor does a higher class by arguments', () => {
    fc.assert(
      fc.property(facts, fc.constantFrom(...Trust.options), (given, trust) => {
        fc.pre(Trust.options.indexOf(trust) <= Trust.options.indexOf(given.context_trust))
        expect(rank(admit({ ...given, context_trust: trust }).verdict)).toBeGreaterThanOrEqual(rank(admit(given).verdict))
      }),
    )
  })

  it('a grant is an intersection: each layer alone would grant it too', () => {
    fc.assert(
      fc.property(fc.array(layer, { maxLength: 5 }), tool, fc.constantFrom(...CapabilityClass.options), (grants, name, capability) => {
        if (isGranted(grants, name, capability)) {
          for (const grant of grants) expect(isGranted([grant, everything, given], name, capability)).toBe(true)
          expect(grants.some(({ scope }) => scope === 'owner')).toBe(true)
          expect(grants.some(({ scope, tools }) => scope === 'character' && tools?.includes(name))).toBe(true)
        }
        if (isExactlyGranted(grants, name)) expect(grants.find(({ scope }) => scope === 'owner')?.exact).toContain(name)
      }),
    )
  })

  it('nothing leaves under untrusted text, and nothing runs that nobody granted', () => {
    fc.assert(
      fc.property(facts, (given) => {
        const { verdict: said, capability } = admit(given)
        if (capability === 'irreversible_external' && given.context_trust === 'untrusted') expect(said).toBe('forbidden')
        if (!given.grants.some(({ scope }) => scope === 'owner')) expect(said).toBe('forbidden')
        if ((capability === 'irreversible_external' || capability === 'trust_mutating') && rank(said) < rank('ask')) {
          const wasAsked = given.approval?.state === 'approved' && given.approval.by_owner
          expect(wasAsked || isExactlyGranted(given.grants, given.tool)).toBe(true)
        }
      }),
    )
  })
})
