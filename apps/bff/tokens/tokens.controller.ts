import { Controller } from '@nestjs/common'
import { CreatedToken, CreateToken, TokenView } from '#contracts'
import type { Principal } from '#domains/identity/principal'
import { TokensService } from '#domains/identity/tokens.service'
import { ApiRoute, Input } from '../http/api-route.ts'
import { listOf } from '../http/list-of.ts'
import { noContent } from '../http/route-shapes.ts'

@Controller()
export class TokensController {
  constructor(private readonly tokens: TokensService) {}

  @ApiRoute({
    method: 'GET',
    path: '/v1/tokens',
    summary: 'Your API tokens, without their secrets',
    access: 'read',
    answer: listOf(TokenView),
  })
  async list(@Input() { principal }: { principal: Principal }): Promise<{ items: TokenView[] }> {
    return { items: await this.tokens.list(principal.ownerId) }
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/tokens',
    summary: 'Make an API token; it is shown once',
    description: 'Scopes beyond those of the credential that asks are refused. `approve` is never given by default.',
    access: 'write',
    body: CreateToken,
    answer: CreatedToken,
    status: 201,
    rebuild: (self: TokensController, { principal }, { id }) => self.tokens.describe(principal.ownerId, id),
  })
  create(@Input() { principal, body }: { principal: Principal; body: CreateToken }): Promise<CreatedToken> {
    return this.tokens.create({ ...body, ownerId: principal.ownerId, grantable: principal.scopes, actor: 'owner' })
  }

  @ApiRoute({
    method: 'DELETE',
    path: '/v1/tokens/{id}',
    summary: 'Revoke a token; it stops working at once',
    access: 'write',
    answer: noContent,
  })
  revoke(@Input() { principal, params }: { principal: Principal; params: { id: string } }): Promise<void> {
    return this.tokens.revoke(principal.ownerId, params.id)
  }
}
