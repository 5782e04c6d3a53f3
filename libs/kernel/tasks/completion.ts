import type { CheckResult } from '#contracts'

/** Version of the gate and its verifiers, recorded with each result. */
export const VERIFIER_VERSION = 1

/** Passed only where something was checked and all of it holds (case E13). */
export function verificationStatus(checks: readonly CheckResult[]): 'passed' | 'failed' {
  return checks.length > 0 && checks.every(({ status }) => status === 'passed') ? 'passed' : 'failed'
}

/** What follows from a verification: repair is bounded, and only for what another try could mend. Pure. */
export function completionVerdict(
  checks: readonly CheckResult[],
  { repairs, maxRepairs }: { repairs: number; maxRepairs: number },
): 'verified' | 'repair' | 'needs_escalation' {
  if (verificationStatus(checks) === 'passed') return 'verified'
  const failed = checks.filter(({ status }) => status === 'failed')
  const isRepairable = failed.length > 0 && failed.every(({ repairable }) => repairable)
  return isRepairable && repairs < maxRepairs ? 'repair' : 'needs_escalation'
}
