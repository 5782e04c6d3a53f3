import { Controller } from '@nestjs/common'
import { z } from 'zod'
import { AdminRunPage, ExplanationQuery, ProjectedContext, RunListQuery, VerifyReport } from '#contracts'
import type { Principal } from '#domains/identity/principal'
import { parseCursor } from '#domains/mirror-tree/tree.service'
import { AdminRuns } from '#domains/runs/admin-runs.service'
import { VerifyService } from '#domains/record/verify.service'
import { ApiRoute, Input } from '../http/api-route.ts'

type Own = { principal: Principal; params: { id: string } }

/** What an admin may see of runs: what was sent, and that it can be rebuilt. Reading somebody's content is an event that they see (decision 35). */
@Controller()
export class AdminRunsController {
  constructor(
    private readonly adminRuns: AdminRuns,
    private readonly verifier: VerifyService,
  ) {}

  @ApiRoute({
    method: 'GET',
    path: '/v1/admin/runs',
    summary: 'All runs, newest first',
    access: 'admin',
    query: RunListQuery,
    answer: AdminRunPage,
  })
  list(
    @Input() { principal, query }: { principal: Principal; query: z.output<typeof RunListQuery> },
  ): Promise<z.output<typeof AdminRunPage>> {
    const cursor = parseCursor(query.cursor)
    return this.adminRuns.list(principal.ownerId, {
      ownerId: null,
      state: query.state,
      characterId: query.character_id,
      treeId: query.tree_id,
      before: cursor && { requestedAt: cursor.updatedAt, id: cursor.id },
      limit: query.limit,
    })
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/admin/runs/{id}/context',
    summary: 'What the model was sent, byte for byte, rebuilt from the record',
    access: 'admin',
    query: ExplanationQuery,
    answer: ProjectedContext,
  })
  context(@Input() { principal, params, query }: Own & { query: z.output<typeof ExplanationQuery> }): Promise<ProjectedContext> {
    return this.adminRuns.context(principal.ownerId, params.id, query.turn)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/admin/runs/{id}/replay',
    summary: 'Rebuild a run’s context again and compare',
    access: 'admin',
    answer: ProjectedContext,
    idempotent: false,
  })
  replay(@Input() { principal, params }: Own): Promise<ProjectedContext> {
    return this.adminRuns.context(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/admin/verify',
    summary: 'Recompute every chain; a broken one is quarantined',
    access: 'admin',
    body: z.object({}).meta({ id: 'Verify' }),
    answer: VerifyReport,
    idempotent: false,
  })
  verify(): Promise<VerifyReport> {
    return this.verifier.verifyAll()
  }
}
