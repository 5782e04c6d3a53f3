import { Controller } from '@nestjs/common'
import type { Request } from 'express'
import { AcceptToolSource, CreateToolSource, ToolSourceView, ToolView } from '#contracts'
import type { Principal } from '#domains/identity/principal'
import { ToolSourcesService } from '#domains/tools/tool-sources.service'
import { ApiRoute, Input } from '../http/api-route.ts'
import { listOf } from '../http/list-of.ts'
import { noContent } from '../http/route-shapes.ts'

/** An OpenAPI document comes whole; what is kept of it is small. */
const SOURCE_BODY_LIMIT = 4 * 1024 * 1024

type Asked = { principal: Principal }
type AskedOne = Asked & { params: { id: string } }

/** Tools and where they come from (百工). */
@Controller()
export class ToolsController {
  constructor(private readonly sources: ToolSourcesService) {}

  @ApiRoute({
    method: 'GET',
    path: '/v1/tools',
    summary: 'Every tool that you have, accepted or not',
    access: 'read',
    answer: listOf(ToolView),
  })
  async tools(@Input() { principal }: Asked): Promise<{ items: ToolView[] }> {
    return { items: await this.sources.tools(principal.ownerId) }
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/tool-sources',
    summary: 'Where your further tools come from',
    access: 'read',
    answer: listOf(ToolSourceView),
  })
  async list(@Input() { principal }: Asked): Promise<{ items: ToolSourceView[] }> {
    return { items: await this.sources.list(principal.ownerId) }
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/tool-sources',
    summary: 'Declare HTTP tools, take operations of an OpenAPI document, or name an MCP server',
    description:
      'Nothing of it can be used before you accept it. Nobody is asked yet: `refresh` asks an MCP server what it offers. Header values are kept encrypted and are never shown again.',
    access: 'write',
    body: CreateToolSource,
    bodyLimit: SOURCE_BODY_LIMIT,
    answer: ToolSourceView,
    status: 201,
    rebuild: (self: ToolsController, { principal }, { id }) => self.sources.read(principal.ownerId, id),
  })
  create(@Input() { principal, body }: Asked & { body: CreateToolSource }): Promise<ToolSourceView> {
    return this.sources.create(principal.ownerId, body, { isAdmin: principal.role === 'admin' })
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/tool-sources/{id}',
    summary: 'A source with what it offers',
    access: 'read',
    answer: ToolSourceView,
  })
  read(@Input() { principal, params }: AskedOne): Promise<ToolSourceView> {
    return this.sources.read(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/tool-sources/{id}/refresh',
    summary: 'Ask an MCP server what it offers now',
    description: 'What changed since you accepted it is no tool any more, until you accept it again.',
    access: 'write',
    answer: ToolSourceView,
    idempotent: false,
  })
  async refresh(@Input() { principal, params, request }: AskedOne & { request: Request }): Promise<ToolSourceView> {
    const left = new AbortController()
    const onClose = (): void => left.abort()
    request.socket.once('close', onClose)
    try {
      return await this.sources.refresh(principal.ownerId, params.id, left.signal)
    } finally {
      request.socket.off('close', onClose)
    }
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/tool-sources/{id}/accept',
    summary: 'Accept exactly these tools of a source, as you saw them',
    description: 'What is not named is not accepted, nor any longer. Takes a signed-in session or a token that may approve.',
    access: 'approve',
    body: AcceptToolSource,
    answer: ToolSourceView,
    rebuild: (self: ToolsController, { principal }, { id }) => self.sources.read(principal.ownerId, id),
  })
  accept(@Input() { principal, params, body }: AskedOne & { body: AcceptToolSource }): Promise<ToolSourceView> {
    return this.sources.accept(principal.ownerId, params.id, body)
  }

  @ApiRoute({
    method: 'DELETE',
    path: '/v1/tool-sources/{id}',
    summary: 'Delete a source: its tools are gone at once, its headers for good',
    access: 'write',
    answer: noContent,
  })
  remove(@Input() { principal, params }: AskedOne): Promise<void> {
    return this.sources.remove(principal.ownerId, params.id)
  }
}
