import { Controller } from '@nestjs/common'
import type { z } from 'zod'
import {
  Ask,
  CanonizationView,
  CreateTree,
  Outline,
  OutlineQuery,
  PathQuery,
  PathView,
  RunAccepted,
  TreeListQuery,
  TreePage,
  TreeView,
  UpdateTree,
} from '#contracts'
import type { Principal } from '#domains/identity/principal'
import { AskService } from '#domains/mirror-tree/ask.service'
import { PathService } from '#domains/mirror-tree/path.service'
import { TreeService } from '#domains/mirror-tree/tree.service'
import { ApiRoute, Input } from '../http/api-route.ts'
import { listOf } from '../http/list-of.ts'
import { noContent } from '../http/route-shapes.ts'

type Own = { principal: Principal; params: { id: string } }

/** Mirror trees: made, read, asked in. */
@Controller()
export class TreesController {
  constructor(
    private readonly trees: TreeService,
    private readonly asks: AskService,
    private readonly paths: PathService,
  ) {}

  @ApiRoute({
    method: 'GET',
    path: '/v1/trees',
    summary: 'Your trees, last changed first',
    access: 'read',
    query: TreeListQuery,
    answer: TreePage,
  })
  list(@Input() { principal, query }: { principal: Principal; query: z.output<typeof TreeListQuery> }): Promise<z.output<typeof TreePage>> {
    return this.trees.list(principal.ownerId, query)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/trees',
    summary: 'Begin a tree with a character; its greetings are the first candidates',
    access: 'write',
    body: CreateTree,
    answer: TreeView,
    status: 201,
    rebuild: (self: TreesController, { principal }, { id }) => self.trees.get(principal.ownerId, id),
  })
  create(@Input() { principal, body }: { principal: Principal; body: CreateTree }): Promise<TreeView> {
    return this.trees.create(principal.ownerId, body)
  }

  @ApiRoute({ method: 'GET', path: '/v1/trees/{id}', summary: 'A tree', access: 'read', answer: TreeView })
  read(@Input() { principal, params }: Own): Promise<TreeView> {
    return this.trees.get(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'PATCH',
    path: '/v1/trees/{id}',
    summary: 'Name a tree',
    access: 'write',
    body: UpdateTree,
    answer: TreeView,
    rebuild: (self: TreesController, { principal }, { id }) => self.trees.get(principal.ownerId, id),
  })
  rename(@Input() { principal, params, body }: Own & { body: UpdateTree }): Promise<TreeView> {
    return this.trees.rename(principal.ownerId, params.id, body.title)
  }

  @ApiRoute({
    method: 'DELETE',
    path: '/v1/trees/{id}',
    summary: 'Delete a tree: its texts are erased, memories that came from it alone go with it',
    access: 'write',
    answer: noContent,
  })
  remove(@Input() { principal, params }: Own): Promise<void> {
    return this.paths.deleteTree(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/trees/{id}/outline',
    summary: 'The shape of a tree, without its texts',
    access: 'read',
    query: OutlineQuery,
    answer: Outline,
  })
  outline(@Input() { principal, params, query }: Own & { query: z.output<typeof OutlineQuery> }): Promise<Outline> {
    return this.trees.outline(principal.ownerId, params.id, query)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/trees/{id}/path',
    summary: 'The messages down to a node, the newest page first',
    access: 'read',
    query: PathQuery,
    answer: PathView,
  })
  path(@Input() { principal, params, query }: Own & { query: z.output<typeof PathQuery> }): Promise<PathView> {
    return this.trees.path(principal.ownerId, params.id, query)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/trees/{id}/runs',
    summary: 'Ask: a question and the run that answers it',
    description: 'Follow `events_url`. While the character speaks elsewhere the run waits in line; `queue_position` tells where.',
    access: 'write',
    body: Ask,
    answer: RunAccepted,
    status: 201,
    before: async (self: TreesController, { principal, params, body }) => {
      body.parent_id = await self.asks.settledParent(principal.ownerId, params.id, body)
    },
    keep: (answer) => ({ id: answer.run_id }),
    rebuild: (self: TreesController, { principal }, { id }) => self.asks.accepted(principal.ownerId, id),
  })
  ask(@Input() { principal, params, body }: Own & { body: Ask }): Promise<RunAccepted> {
    return this.asks.ask(principal.ownerId, params.id, body)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/trees/{id}/canonizations',
    summary: 'What of a tree is canonical, withdrawn ranges included',
    access: 'read',
    answer: listOf(CanonizationView),
  })
  async canonizations(@Input() { principal, params }: Own): Promise<{ items: CanonizationView[] }> {
    return { items: await this.paths.canonizations(principal.ownerId, params.id) }
  }
}
