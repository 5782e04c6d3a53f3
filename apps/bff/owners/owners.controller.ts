import { Controller } from '@nestjs/common'
import type { Request } from 'express'
import { CreatedOwner, CreateOwner, OwnerView } from '#contracts'
import { OwnersService } from '#domains/identity/owners.service'
import { SigninService } from '#domains/identity/signin.service'
import { ApiRoute, Input } from '../http/api-route.ts'
import { listOf } from '../http/list-of.ts'
import { signinLink } from '../session/signin-link.ts'

@Controller()
export class OwnersController {
  constructor(
    private readonly owners: OwnersService,
    private readonly signin: SigninService,
  ) {}

  @ApiRoute({ method: 'GET', path: '/v1/owners', summary: 'The people of this instance', access: 'admin', answer: listOf(OwnerView) })
  async list(): Promise<{ items: OwnerView[] }> {
    return { items: await this.owners.list() }
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/owners',
    summary: 'Add a person; the sign-in link is shown once',
    access: 'admin',
    body: CreateOwner,
    answer: CreatedOwner,
    status: 201,
    keep: ({ owner }) => ({ id: owner.id }),
    rebuild: async (self: OwnersController, _, { id }) => ({ owner: await self.owners.read(id), signin_link: null }),
  })
  async create(@Input() { body, request }: { body: CreateOwner; request: Request }): Promise<CreatedOwner> {
    const owner = await this.owners.create({ ...body, actor: 'owner' })
    const secret = await this.signin.mintLink(owner.id)
    return { owner, signin_link: signinLink(`${request.protocol}://${request.headers.host ?? ''}`, secret) }
  }
}
