import { Controller } from '@nestjs/common'
import { z } from 'zod'
import { AuditEventPage, AuditQuery, Id, KillFlags, KillScope, OutboxPage, PageQuery } from '#contracts'
import { AuditService } from '#domains/governance/audit.service'
import { KillSwitchService } from '#domains/governance/kill-switch.service'
import type { Principal } from '#domains/identity/principal'
import { ApiRoute, Input } from '../http/api-route.ts'
import { idCursor } from '../http/page-cursor.ts'
import { noContent } from '../http/route-shapes.ts'

const KillTarget = z.object({ scope: KillScope, id: Id })
type Targeted = { principal: Principal; params: z.output<typeof KillTarget> }

/** The kill switch, the log and the outbox, for admins. */
@Controller()
export class GovernanceController {
  constructor(
    private readonly killSwitch: KillSwitchService,
    private readonly audit: AuditService,
  ) {}

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
