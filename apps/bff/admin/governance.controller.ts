import { Controller } from '@nestjs/common'
import { z } from 'zod'
import {
  ApprovalListQuery,
  ApprovalPage,
  ApprovalView,
  AuditEventPage,
  AuditQuery,
  Id,
  KillFlags,
  KillScope,
  OutboxPage,
  PageQuery,
} from '#contracts'
import { ApprovalsService } from '#domains/actions/approvals.service'
import { AuditService } from '#domains/governance/audit.service'
import { KillSwitchService } from '#domains/governance/kill-switch.service'
import type { Principal } from '#domains/identity/principal'
import { parseCursor } from '#domains/mirror-tree/tree.service'
import { ApiRoute, Input } from '../http/api-route.ts'
import { idCursor } from '../http/page-cursor.ts'
import { noContent } from '../http/route-shapes.ts'

const KillTarget = z.object({ scope: KillScope, id: Id })
type Targeted = { principal: Principal; params: z.output<typeof KillTarget> }

/** The kill switch, open questions, the log and the outbox, for admins. */
@Controller()
export class GovernanceController {
  constructor(
    private readonly killSwitch: KillSwitchService,
    private readonly audit: AuditService,
    private readonly approvals: ApprovalsService,
  ) {}

  @ApiRoute({
    method: 'GET',
    path: '/v1/admin/approvals',
    summary: 'Everybody’s questions about single actions, newest first, without their arguments',
    access: 'admin',
    query: ApprovalListQuery,
    answer: ApprovalPage,
  })
  questions(@Input() { query }: { query: z.output<typeof ApprovalListQuery> }): Promise<z.output<typeof ApprovalPage>> {
    const cursor = parseCursor(query.cursor)
    const before = cursor && { createdAt: cursor.updatedAt, id: cursor.id }
    return this.approvals.listAll({ state: query.state, before: before ?? null, limit: query.limit })
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/admin/approvals/{id}/refusal',
    summary: 'Say no in the owner’s stead; only the owner can say yes',
    access: 'admin',
    answer: ApprovalView,
    idempotent: false,
  })
  refuse(@Input() { principal, params }: { principal: Principal; params: { id: string } }): Promise<ApprovalView> {
    return this.approvals.refuse(principal.ownerId, params.id)
  }

  @ApiRoute({ method: 'GET', path: '/v1/admin/kill', summary: 'What is stopped', access: 'admin', answer: KillFlags })
  async listKillFlags(): Promise<z.output<typeof KillFlags>> {
    return { items: await this.killSwitch.list() }
  }

  @ApiRoute({
    method: 'PUT',
    path: '/v1/admin/kill/{scope}/{id}',
    summary: 'Stop everything, an owner, or a character',
    description: 'For the scope `global` the id is 00000000-0000-0000-0000-000000000000.',
    access: 'admin',
    params: KillTarget,
    answer: noContent,
  })
  kill(@Input() { principal, params }: Targeted): Promise<void> {
    return this.killSwitch.set({ scope: params.scope, scopeId: params.id, by: principal.ownerId })
  }

  @ApiRoute({
    method: 'DELETE',
    path: '/v1/admin/kill/{scope}/{id}',
    summary: 'Let it go on',
    access: 'admin',
    params: KillTarget,
    answer: noContent,
  })
  lift(@Input() { principal, params }: Targeted): Promise<void> {
    return this.killSwitch.lift({ scope: params.scope, scopeId: params.id, by: principal.ownerId })
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/admin/outbox',
    summary: 'Jobs, newest first',
    access: 'admin',
    query: PageQuery,
    answer: OutboxPage,
  })
  outbox(@Input() { query }: { query: z.output<typeof PageQuery> }): Promise<z.output<typeof OutboxPage>> {
    return this.audit.outbox({ limit: query.limit, after: idCursor(query.cursor) })
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/admin/events',
    summary: 'The log’s envelopes, newest first; text is never in it',
    description: 'Go on with `before` = `next_cursor`.',
    access: 'admin',
    query: AuditQuery,
    answer: AuditEventPage,
  })
  events(@Input() { query }: { query: z.output<typeof AuditQuery> }): Promise<z.output<typeof AuditEventPage>> {
    return this.audit.events(query)
  }
}
