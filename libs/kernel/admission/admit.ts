import { AdmissionFacts, CapabilityClass, Verdict } from '#contracts'
import type { AdmissionDecision, AdmissionReason, Constraint, GrantLayer, PermissionMode } from '#contracts'
import { judgeEgress } from '../gate/forbidden-gate.ts'
import { readVerdict } from '../gate/verdict.ts'

/** Version of the rules below, recorded with each decision. */
export const ADMISSION_POLICY_VERSION = 2

/** One rule's word on an action. The strictest wins; among equals the first that spoke gives the reason. */
type Opinion = { verdict: Verdict; reason: AdmissionReason }

const classes = CapabilityClass.options
const seatedKinds: ReadonlySet<string> = new Set(['answer', 'responsive'])

/** The stricter of two classes; an unknown one has no place in the order and stays unknown (K2). */
export function raiseClass(declared: CapabilityClass | null, byArguments: CapabilityClass | null): CapabilityClass | null {
  if (declared === null || !classes.includes(declared)) return null
  if (byArguments === null) return declared
  if (!classes.includes(byArguments)) return null
  return classes.indexOf(byArguments) > classes.indexOf(declared) ? byArguments : declared
}

/**
 * Whether every layer lets a tool of this class be proposed at all. Without the owner's layer nothing is granted, and a character has the tools
 * that were given to it by name alone.
 */
export function isGranted(grants: readonly GrantLayer[], tool: string, capability: CapabilityClass): boolean {
  return (
    grants.some(({ scope }) => scope === 'owner') &&
    grants.some(({ scope, tools }) => scope === 'character' && tools !== null && tools.includes(tool)) &&
    grants.every((grant) => grant.classes.includes(capability) && (grant.tools === null || grant.tools.includes(tool)))
  )
}

/** Whether the owner named exactly this tool, and no other layer takes it back. */
export function isExactlyGranted(grants: readonly GrantLayer[], tool: string): boolean {
  const owners = grants.filter(({ scope }) => scope === 'owner')
  return (
    owners.length > 0 &&
    owners.every(({ exact }) => exact !== null && exact.includes(tool)) &&
    grants.every(({ exact }) => exact === null || exact.includes(tool))
  )
}

/**
 * The verdict on one proposed action (K2): a pure function of recorded facts, whatever order layers and listeners come in. Reads trust and
 * structure, never wording. An unknown tool, class, mode or value is forbidden.
 */
export function admit(given: AdmissionFacts): AdmissionDecision {
  const parsed = AdmissionFacts.strict().safeParse(given)
  if (!parsed.success) return decision({ verdict: 'forbidden', reason: 'unknown_value' }, null, [])
  const facts = parsed.data
  const capability = raiseClass(facts.capability, facts.argument_capability)
  if (capability === null) return decision({ verdict: 'forbidden', reason: 'unknown_tool' }, null, [])
  if (facts.mode === null) return decision({ verdict: 'forbidden', reason: 'unknown_mode' }, capability, [])
  const judged: Judged = { ...facts, mode: facts.mode, judgedClass: effectiveClass(facts, capability) }
  const opinions = [...refusals(judged), classOpinion(judged), ...tightenings(judged)]
  const strictest = strictestOf(opinions)
  const constraints = constraintsOf(judged)
  if (facts.approval === null) return decision(strictest, judged.judgedClass, constraints)
  // Who was asked is waited for, even where nobody would have to be asked any more (case E2).
  const answered = approvalOpinion(facts.approval)
  if (answered.reason !== 'approved') return decision(strictestOf([answered, strictest]), judged.judgedClass, constraints)
  if (strictest.verdict !== 'ask') return decision(strictest, judged.judgedClass, constraints)
  return decision(answered, judged.judgedClass, [...constraints, 'exact_arguments', 'single_use'])
}

type Judged = Omit<AdmissionFacts, 'mode'> & { mode: PermissionMode; judgedClass: CapabilityClass }

/** Arguments that choose where data goes make a send of whatever the tool calls itself. */
function effectiveClass({ egress }: AdmissionFacts, capability: CapabilityClass): CapabilityClass {
  return egress === 'free' ? 'irreversible_external' : capability
}

/** What no approval lifts. */
function refusals(facts: Judged): Opinion[] {
  const { judgedClass } = facts
  const no: AdmissionReason[] = []
  if (facts.killed) no.push('killed')
  if (!facts.arguments_valid) no.push('arguments_invalid')
  if (!isGranted(facts.grants, facts.tool, judgedClass)) no.push('not_granted')
  if (facts.mode === 'plan' && judgedClass !== 'read_only') no.push('plan_mode')
  if (judgeEgress({ effectClass: judgedClass, contextTrust: facts.context_trust }).verdict === 'forbidden')
    no.push('egress_under_untrusted')
  // Data that leaves by a declared door leaves all the same, when untrusted text may have chosen what is said there.
  if (facts.egress === 'declared' && judgedClass !== 'read_only' && facts.context_trust === 'untrusted') no.push('egress_under_untrusted')
  if (judgedClass === 'code_executing' && facts.egress !== 'none') no.push('code_with_egress')
  if (judgedClass === 'trust_mutating' && !seatedKinds.has(facts.run_kind)) no.push('maintenance_run_writes_canon')
  // A job's run acts in no class.
  if (facts.run_kind === 'maintenance') no.push('not_granted')
  return no.map((reason) => ({ verdict: 'forbidden', reason }))
}

/** What the class says by itself. */
function classOpinion(facts: Judged): Opinion {
  const { judgedClass, mode, undoable, context_trust: contextTrust } = facts
  switch (judgedClass) {
    case 'read_only':
      return { verdict: 'autonomous', reason: 'read_only' }
    case 'reversible_local':
      return undoable ? { verdict: 'rule_bound', reason: 'undoable_within_rules' } : { verdict: 'ask', reason: 'not_undoable' }
    case 'code_executing':
      if (mode !== 'auto') return { verdict: 'ask', reason: 'class_asks' }
      return contextTrust === 'untrusted'
        ? { verdict: 'ask', reason: 'untrusted_context' }
        : { verdict: 'rule_bound', reason: 'operator_mode_auto' }
    case 'trust_mutating':
    case 'irreversible_external':
      // An exact name speaks for itself only where all that led to the call is trusted: egress under workspace asks (K1).
      if (!isExactlyGranted(facts.grants, facts.tool)) return { verdict: 'ask', reason: 'class_asks' }
      return contextTrust === 'trusted' || (judgedClass === 'trust_mutating' && contextTrust === 'workspace')
        ? { verdict: 'rule_bound', reason: 'exact_grant' }
        : { verdict: 'ask', reason: 'untrusted_context' }
  }
}

/** Rules, dimensions and listeners may be stricter than the class, never milder: each is one more opinion. */
function tightenings(facts: Judged): Opinion[] {
  const { judgedClass, arbitration } = facts
  return [
    ...[arbitration.capability, arbitration.data, arbitration.consequence, arbitration.situation].map((verdict): Opinion => ({
      verdict: readVerdict(verdict),
      reason: 'arbitration',
    })),
    ...facts.class_rules
      .filter(({ capability }) => capability === judgedClass)
      .map(({ verdict }): Opinion => ({ verdict: readVerdict(verdict), reason: 'class_rule' })),
    ...facts.listeners.map((verdict): Opinion => ({ verdict: readVerdict(verdict), reason: 'listener' })),
  ]
}

/** A person's yes serves the one action that it was given for; anything else about it is a no (case E19). */
function approvalOpinion(approval: NonNullable<AdmissionFacts['approval']>): Opinion {
  if (approval.state === 'expired') return { verdict: 'forbidden', reason: 'approval_expired' }
  if (approval.state === 'refused' || approval.state === 'revoked') return { verdict: 'forbidden', reason: 'approval_refused' }
  if (approval.state === 'pending') return { verdict: 'ask', reason: 'class_asks' }
  const fits =
    approval.state === 'approved' && approval.same_action && approval.same_arguments && approval.same_versions && approval.by_owner
  return fits ? { verdict: 'rule_bound', reason: 'approved' } : { verdict: 'forbidden', reason: 'approval_does_not_fit' }
}

function strictestOf(opinions: readonly Opinion[]): Opinion {
  let strictest: Opinion = { verdict: 'forbidden', reason: 'unknown_value' }
  let rank = -1
  for (const opinion of opinions) {
    const own = Verdict.options.indexOf(opinion.verdict)
    if (own > rank) [strictest, rank] = [opinion, own]
  }
  return strictest
}

function constraintsOf({ judgedClass }: Judged): Constraint[] {
  if (judgedClass === 'code_executing') return ['no_egress']
  if (judgedClass === 'reversible_local') return ['undoable']
  return ['exact_arguments']
}

function decision(opinion: Opinion, capability: CapabilityClass | null, constraints: readonly Constraint[]): AdmissionDecision {
  const bound = opinion.verdict === 'rule_bound' ? [...new Set(constraints)] : []
  return { ...opinion, capability, constraints: bound, policy_version: ADMISSION_POLICY_VERSION }
}
