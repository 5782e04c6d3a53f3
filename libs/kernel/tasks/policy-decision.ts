import { AdmissionDecision, PolicyDecision } from '#contracts'
import type { Constraint, PolicyDecisionName, Verdict } from '#contracts'

/** A decision as it is acted on: every default filled in. */
export type DecidedAction = {
  decision: PolicyDecisionName
  constraints: readonly Constraint[]
  reason_code: string
  policy_version: number
}

const names: Readonly<Record<Verdict, PolicyDecisionName>> = Object.freeze({
  autonomous: 'ALLOW',
  rule_bound: 'CONSTRAINED_ALLOW',
  ask: 'REQUIRE_APPROVAL',
  forbidden: 'DENY',
})
const strictness: readonly PolicyDecisionName[] = ['ALLOW', 'CONSTRAINED_ALLOW', 'REQUIRE_APPROVAL', 'DENY']

/** A verdict of admission as it travels. Throws a ZodError for one that contradicts itself. */
export function encodeDecision(actionId: string, admission: AdmissionDecision, approvalId: string | null = null): PolicyDecision {
  const { verdict, reason, constraints, policy_version } = AdmissionDecision.parse(admission)
  const decision = names[verdict]
  return PolicyDecision.parse({
    action_id: actionId,
    decision,
    policy_version,
    reason_code: reason,
    ...(decision === 'CONSTRAINED_ALLOW' ? { constraints } : {}),
    ...(approvalId === null ? {} : { approval_request_id: approvalId }),
  })
}

/**
 * What came from a policy, as it came: the message itself is checked before any default is filled in, and one that is not valid forbids
 * (case E17). Pure.
 */
export function decodeDecision(actionId: string, message: unknown): DecidedAction {
  const parsed = PolicyDecision.safeParse(message)
  if (!parsed.success || parsed.data.action_id !== actionId) {
    return { decision: 'DENY', constraints: [], reason_code: 'unknown_value', policy_version: 1 }
  }
  const { decision, policy_version, reason_code = 'allowed' } = parsed.data
  return { decision, policy_version, reason_code, constraints: parsed.data.decision === 'CONSTRAINED_ALLOW' ? parsed.data.constraints : [] }
}

/** The stricter of two decisions; what either is bound to binds both. Pure. */
export function stricterDecision(first: DecidedAction, second: DecidedAction): DecidedAction {
  const [mild, strict] = strictness.indexOf(second.decision) > strictness.indexOf(first.decision) ? [first, second] : [second, first]
  if (strict.decision !== 'CONSTRAINED_ALLOW') return strict
  return { ...strict, constraints: [...new Set([...strict.constraints, ...mild.constraints])] }
}
