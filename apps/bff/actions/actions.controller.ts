import { Controller } from '@nestjs/common'
import type { z } from 'zod'
import {
  ApprovalListQuery,
  ApprovalPage,
  ApprovalView,
  DecideApproval,
  EffectList,
  EffectView,
  GrantView,
  ReconcileEffect,
  SetGrant,
} from '#contracts'
import { ApprovalsService } from '#domains/actions/approvals.service'
import { EffectsService } from '#domains/actions/effects.service'
import { GrantsService } from '#domains/actions/grants.service'
import type { Principal } from '#domains/identity/principal'
import { parseCursor } from '#domains/mirror-tree/tree.service'
import { ApiRoute, Input } from '../http/api-route.ts'

type Own = { principal: Principal; params: { id: string } }

/** What characters may do, what they ask to do, and what went out (K2, K3): the owner's alone (decision 35). */
@Controller()
export class ActionsController {
  constructor(
    private readonly approvals: ApprovalsService,
    private readonly effects: EffectsService,
    private readonly grants: GrantsService,
  ) {}

  @ApiRoute({
    method: 'GET',
    path: '/v1/approvals',
    summary: 'Questions about single actions, newest first',
    access: 'read',
    query: ApprovalListQuery,
    answer: ApprovalPage,
  })
  list(
    @Input() { principal, query }: { principal: Principal; query: z.output<typeof ApprovalListQuery> },
  ): Promise<z.output<typeof ApprovalPage>> {
    const cursor = parseCursor(query.cursor)
    const before = cursor && { createdAt: cursor.updatedAt, id: cursor.id }
    return this.approvals.list(principal.ownerId, { state: query.state, before: before ?? null, limit: query.limit })
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/approvals/{id}',
    summary: 'A question with the exact arguments that it is about',
    access: 'read',
    answer: ApprovalView,
  })
  read(@Input() { principal, params }: Own): Promise<ApprovalView> {
    return this.approvals.get(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/approvals/{id}/decision',
    summary: 'Yes or no to exactly these arguments; the action is judged once more before it happens',
    access: 'approve',
    body: DecideApproval,
    answer: ApprovalView,
    rebuild: (self: ActionsController, { principal }, { id }) => self.approvals.get(principal.ownerId, id),
  })
  decide(@Input() { principal, params, body }: Own & { body: DecideApproval }): Promise<ApprovalView> {
    return this.approvals.decide(principal.ownerId, params.id, body)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/effects',
    summary: 'What went out and whose outcome nobody knows, oldest first',
    access: 'read',
    answer: EffectList,
  })
  unknown(@Input() { principal }: { principal: Principal }): Promise<z.output<typeof EffectList>> {
    return this.effects.unknown(principal.ownerId)
  }

  @ApiRoute({ method: 'GET', path: '/v1/effects/{id}', summary: 'One effect', access: 'read', answer: EffectView })
  effect(@Input() { principal, params }: Own): Promise<EffectView> {
    return this.effects.get(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/effects/{id}/reconcile',
    summary: 'Say what became of an effect whose outcome nobody knew',
    access: 'approve',
    body: ReconcileEffect,
    answer: EffectView,
    rebuild: (self: ActionsController, { principal }, { id }) => self.effects.get(principal.ownerId, id),
  })
  reconcile(@Input() { principal, params, body }: Own & { body: ReconcileEffect }): Promise<EffectView> {
    return this.effects.reconcile(principal.ownerId, params.id, body)
  }

  @ApiRoute({ method: 'GET', path: '/v1/grant', summary: 'What you let your characters do at most', access: 'read', answer: GrantView })
  ownGrant(@Input() { principal }: { principal: Principal }): Promise<GrantView> {
    return this.grants.get(principal.ownerId, 'owner', principal.ownerId)
  }

  @ApiRoute({
    method: 'PUT',
    path: '/v1/grant',
    summary: 'Set what you let your characters do at most',
    access: 'approve',
    body: SetGrant,
    answer: GrantView,
    keep: () => ({}),
    rebuild: (self: ActionsController, { principal }) => self.grants.get(principal.ownerId, 'owner', principal.ownerId),
  })
  setOwnGrant(@Input() { principal, body }: { principal: Principal; body: SetGrant }): Promise<GrantView> {
    return this.grants.set(principal.ownerId, 'owner', principal.ownerId, body)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/characters/{id}/grant',
    summary: 'The tools that a character was given',
    access: 'read',
    answer: GrantView,
  })
  characterGrant(@Input() { principal, params }: Own): Promise<GrantView> {
    return this.grants.get(principal.ownerId, 'character', params.id)
  }

  @ApiRoute({
    method: 'PUT',
    path: '/v1/characters/{id}/grant',
    summary: 'Give a character tools, by name; narrower than your own grant or the same',
    access: 'approve',
    body: SetGrant,
    answer: GrantView,
    keep: () => ({}),
    rebuild: (self: ActionsController, { principal, params }) => self.grants.get(principal.ownerId, 'character', params.id),
  })
  setCharacterGrant(@Input() { principal, params, body }: Own & { body: SetGrant }): Promise<GrantView> {
    return this.grants.set(principal.ownerId, 'character', params.id, body)
  }

  @ApiRoute({ method: 'GET', path: '/v1/trees/{id}/grant', summary: 'What holds in one tree', access: 'read', answer: GrantView })
  treeGrant(@Input() { principal, params }: Own): Promise<GrantView> {
    return this.grants.get(principal.ownerId, 'tree', params.id)
  }

  @ApiRoute({
    method: 'PUT',
    path: '/v1/trees/{id}/grant',
    summary: 'Narrow what holds in one tree',
    access: 'approve',
    body: SetGrant,
    answer: GrantView,
    keep: () => ({}),
    rebuild: (self: ActionsController, { principal, params }) => self.grants.get(principal.ownerId, 'tree', params.id),
  })
  setTreeGrant(@Input() { principal, params, body }: Own & { body: SetGrant }): Promise<GrantView> {
    return this.grants.set(principal.ownerId, 'tree', params.id, body)
  }
}
