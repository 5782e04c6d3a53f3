import { AuditService } from '#domains/governance/audit.service'
import { BundlesService } from '#domains/governance/bundles.service'
import { KillSwitchService } from '#domains/governance/kill-switch.service'
import { BundleRepository } from '#infra/prisma/bundle.repository'
import { AuditRepository, KillFlagRepository } from '#infra/prisma/governance.repository'
import type { Foundation } from './foundation.ts'

/** The kill switch and what admins read. */
export function composeGovernance({ database, log, clock }: Foundation) {
  return {
    killSwitch: new KillSwitchService({ unit: database, store: new KillFlagRepository(database), log, clock }),
    bundles: new BundlesService({ unit: database, store: new BundleRepository(database), log, clock }),
    audit: new AuditService(new AuditRepository(database)),
  }
}
