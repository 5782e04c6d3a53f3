import { Controller } from '@nestjs/common'
import { z } from 'zod'
import { CanonizationView, Canonized, DeleteNodeQuery, Edited, EditNode, HeadMoved, NodeView, Regenerate, RunAccepted } from '#contracts'
import type { Principal } from '#domains/identity/principal'
import { AskService } from '#domains/mirror-tree/ask.service'
import { PathService } from '#domains/mirror-tree/path.service'
import { ApiRoute, Input } from '../http/api-route.ts'
import { noContent } from '../http/route-shapes.ts'

type Own = { principal: Principal; params: { id: string } }

/** Nodes: switched, forked, edited, canonized, deleted; never overwritten. */
@Controller()
export class NodesController {
  constructor(
    private readonly paths: PathService,
    private readonly asks: AskService,
  ) {}

  @ApiRoute({ method: 'GET', path: '/v1/nodes/{id}', summary: 'A node', access: 'read', answer: NodeView })
  read(@Input() { principal, params }: Own): Promise<NodeView> {
    return this.paths.node(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'PATCH',
    path: '/v1/nodes/{id}',
    summary: 'Refused: what was sent is never changed, editing forks',
    access: 'write',
    body: z.object({}).meta({ id: 'ChangeNode' }),
    answer: NodeView,
    idempotent: false,
  })
  change(@Input() { principal, params }: Own): Promise<NodeView> {
    return this.paths.refuseChange(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'DELETE',
    path: '/v1/nodes/{id}',
    summary: 'Delete a message: its text is erased, a tombstone stays',
    access: 'write',
    query: DeleteNodeQuery,
    answer: noContent,
  })
  remove(@Input() { principal, params, query }: Own & { query: z.output<typeof DeleteNodeQuery> }): Promise<void> {
    return this.paths.delete(principal.ownerId, params.id, query)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/nodes/{id}/regenerate',
    summary: 'Another answer beside those that the question has',
    access: 'write',
    body: Regenerate,
    answer: RunAccepted,
    status: 201,
    before: (self: NodesController, { principal, params }) => self.asks.settledQuestion(principal.ownerId, params.id),
    keep: (answer) => ({ id: answer.run_id }),
    rebuild: (self: NodesController, { principal }, { id }) => self.asks.accepted(principal.ownerId, id),
  })
  regenerate(@Input() { principal, params, body }: Own & { body: Regenerate }): Promise<RunAccepted> {
    return this.asks.regenerate(principal.ownerId, params.id, body)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/nodes/{id}/edit',
    summary: 'Edit by forking: a question is asked anew beside the old one, an answer gets a sibling written by you',
    access: 'write',
    body: EditNode,
    answer: Edited,
    status: 201,
    keep: ({ node, run }) => ({ id: node.id, run_id: run?.run_id ?? null }),
    rebuild: async (self: NodesController, { principal }, { id, run_id: runId }) => ({
      node: await self.paths.node(principal.ownerId, id),
      run: runId === null ? null : await self.asks.accepted(principal.ownerId, runId),
    }),
  })
  async edit(@Input() { principal, params, body }: Own & { body: EditNode }): Promise<Edited> {
    const node = await this.paths.row(principal.ownerId, params.id)
    if (node.kind !== 'question') return { node: await this.paths.editCandidate(principal.ownerId, params.id, body.text), run: null }
    const run = await this.asks.editQuestion(principal.ownerId, node, body)
    return { node: await this.paths.node(principal.ownerId, run.question_id), run }
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/nodes/{id}/fork',
    summary: 'Go on from here: the current path ends at this node now',
    access: 'write',
    answer: HeadMoved,
    keep: ({ head }) => ({ id: head.id }),
    rebuild: (self: NodesController, { principal }, { id }) => self.paths.head(principal.ownerId, id),
  })
  fork(@Input() { principal, params }: Own): Promise<HeadMoved> {
    return this.paths.fork(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/nodes/{id}/adopt',
    summary: 'Switch to this candidate: the path goes where its own adopted path ends',
    access: 'write',
    answer: HeadMoved,
    keep: ({ head }) => ({ id: head.id }),
    rebuild: (self: NodesController, { principal }, { id }) => self.paths.head(principal.ownerId, id),
  })
  adopt(@Input() { principal, params }: Own): Promise<HeadMoved> {
    return this.paths.adopt(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/nodes/{id}/canonize',
    summary: 'Make it true for the character: everything since the nearest canonical message',
    access: 'write',
    answer: Canonized,
    status: 201,
    keep: ({ canonization }) => ({ id: canonization.id }),
    rebuild: async (self: NodesController, { principal }, { id }) => ({
      canonization: await self.paths.canonization(principal.ownerId, id),
      warnings: [],
    }),
  })
  canonize(@Input() { principal, params }: Own): Promise<Canonized> {
    return this.paths.canonize(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/canonizations/{id}/withdraw',
    summary: 'Take a range out of the canon; memories that came from it alone are flagged',
    access: 'write',
    answer: CanonizationView,
    rebuild: (self: NodesController, { principal }, { id }) => self.paths.canonization(principal.ownerId, id),
  })
  withdraw(@Input() { principal, params }: Own): Promise<CanonizationView> {
    return this.paths.withdraw(principal.ownerId, params.id)
  }
}
