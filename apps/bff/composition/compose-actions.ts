import { ApprovalsService } from '#domains/actions/approvals.service'
import { EffectsService } from '#domains/actions/effects.service'
import { GrantsService } from '#domains/actions/grants.service'
import { scrub } from '#domains/memory/scrub'
import { ApprovalRepository } from '#infra/prisma/approval.repository'
import { CharacterRepository } from '#infra/prisma/character.repository'
import { CheckpointRepository } from '#infra/prisma/checkpoint.repository'
import { EffectRepository } from '#infra/prisma/effect.repository'
import { GrantRepository } from '#infra/prisma/grant.repository'
import type { TreeRepository } from '#infra/prisma/tree.repository'
import { EffectBroker } from '#kernel/effects/broker'
import type { ToolCatalogue } from '#kernel/ports/effect-target'
import type { RunRow, RunStore } from '#kernel/ports/run-store'
import { fitSchema } from '#kernel/tools/fit-schema'
import type { ActionDeps } from '#runtime/turn/action-facts'
import type { Foundation } from './foundation.ts'

/** A run that has what it waited for. */
export type RequeuedRun = Pick<RunRow, 'id' | 'kind' | 'character_id'>

export type Actions = { approvals: ApprovalsService; effects: EffectsService; grants: GrantsService }

/** How often questions whose time is over are closed. Reading them tells the truth before that (decision 28). */
const EXPIRE_EVERY_MS = 30_000

/** What acting runs need: the tools, what is granted, the ledger and the broker before it. */
export function composeActionDeps(
  { database, scheduler, logger }: Foundation,
  { catalogue, holder, guards }: { catalogue: ToolCatalogue; holder: string; guards: ActionDeps['guards'] },
): ActionDeps {
  const ledger = new EffectRepository(database)
  return {
    catalogue,
    grants: new GrantRepository(database),
    approvals: new ApprovalRepository(database),
    checkpoints: new CheckpointRepository(database),
    ledger,
    broker: new EffectBroker({
      ledger,
      scheduler,
      holder,
      report: (error, effectId) => logger.error({ err: error, effect: effectId }, 'an executor met an error of ours'),
    }),
    scrub: (text) => scrub(text).text,
    fits: (schema, value) => fitSchema(schema, value).length === 0,
    guards,
  }
}

/** What owners see and say of actions. */
export function composeActions(
  { database, log, contents, clock, scheduler, lifecycle, logger }: Foundation,
  parts: { deps: ActionDeps; runs: RunStore; trees: TreeRepository; wake(run: RequeuedRun): void },
): Actions {
  const { deps, runs, trees, wake } = parts
  const characters = new CharacterRepository(database)
  const approvals = new ApprovalsService({
    unitOfWork: database,
    approvals: deps.approvals,
    runs,
    contents,
    log,
    clock,
    wake,
    report: (error, approvalId) => logger.error({ err: error, approval: approvalId }, 'a question could not be closed; it is tried again'),
  })
  lifecycle.addWork({
    name: 'approvals',
    role: 'bff',
    start: async () => {
      let cancel = (): void => undefined
      let running: Promise<void> = Promise.resolve()
      const plan = (): void => {
        cancel = scheduler.after(EXPIRE_EVERY_MS, () => {
          running = approvals
            .expire()
            .catch((error: unknown) => logger.warn({ err: error }, 'questions could not be closed; it is tried again'))
            .then(plan)
        })
      }
      plan()
      return async () => {
        cancel()
        await running
        cancel()
      }
    },
  })
  return {
    approvals,
    effects: new EffectsService({ unitOfWork: database, ledger: deps.ledger, runs, contents, log, clock, wake }),
    grants: new GrantsService({
      unitOfWork: database,
      grants: deps.grants,
      log,
      clock,
      has: async (ownerId, scope, scopeId) =>
        scope === 'character' ? (await characters.find(ownerId, scopeId)) !== null : (await trees.find(ownerId, scopeId)) !== null,
    }),
  }
}
