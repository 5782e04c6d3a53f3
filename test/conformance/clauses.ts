import { budgetClauses, effectClauses, recordClauses, reducerClauses } from './effects-and-record.ts'
import type { Clause } from './matrix.ts'
import { eventClauses, outcomeClauses, rebuildClauses, seatClauses } from './runs.ts'
import { actionClauses, taskClauses, treeInvariants } from './tree-and-tasks.ts'
import { admissionClauses, gateClauses, identityAndTrust, invariants } from './trusted-base.ts'
import { abiClauses, driverClauses, killClauses, negativeSpace, versionClauses } from './versions-and-boundary.ts'

/** Everything that the Kernel must do, in the order of its design (spec/2), each with the tests that prove it. */
export const clauses: readonly Clause[] = [
  ...invariants,
  ...identityAndTrust,
  ...admissionClauses,
  ...gateClauses,
  ...effectClauses,
  ...reducerClauses,
  ...recordClauses,
  ...budgetClauses,
  ...versionClauses,
  ...killClauses,
  ...driverClauses,
  ...negativeSpace,
  ...abiClauses,
  ...eventClauses,
  ...outcomeClauses,
  ...rebuildClauses,
  ...seatClauses,
  ...treeInvariants,
  ...actionClauses,
  ...taskClauses,
]
