import { Controller } from '@nestjs/common'
import type { z } from 'zod'
import {
  ConfirmMemory,
  CorrectMemory,
  ExtractionView,
  MemoryDetail,
  MemoryListQuery,
  MemoryPage,
  MemorySearchResult,
  MemoryView,
  RecallListQuery,
  RecallPage,
  SearchMemories,
} from '#contracts'
import type { Principal } from '#domains/identity/principal'
import { ExtractionProgress } from '#domains/memory/extraction-progress'
import { MemoryService } from '#domains/memory/memory.service'
import { RecallService } from '#domains/memory/recall.service'
import { ApiRoute, Input } from '../http/api-route.ts'
import { noContent } from '../http/route-shapes.ts'

type Own = { principal: Principal; params: { id: string } }

/** What characters remember: seen, confirmed, undone, corrected, deleted, by the owner alone (decision 35). */
@Controller()
export class MemoriesController {
  constructor(
    private readonly memories: MemoryService,
    private readonly recalls: RecallService,
    private readonly extractions: ExtractionProgress,
  ) {}

  @ApiRoute({
    method: 'GET',
    path: '/v1/memories',
    summary: 'Memories, newest first',
    access: 'read',
    query: MemoryListQuery,
    answer: MemoryPage,
  })
  list(
    @Input() { principal, query }: { principal: Principal; query: z.output<typeof MemoryListQuery> },
  ): Promise<z.output<typeof MemoryPage>> {
    return this.memories.list(principal.ownerId, query)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/memories/search',
    summary: 'Search as the character would, with the ranks and scores of both legs',
    access: 'read',
    body: SearchMemories,
    answer: MemorySearchResult,
    idempotent: false,
  })
  search(@Input() { principal, body }: { principal: Principal; body: SearchMemories }): Promise<z.output<typeof MemorySearchResult>> {
    return this.memories.search(principal.ownerId, body)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/memories/{id}',
    summary: 'A memory with its versions, sources and where it was recalled',
    access: 'read',
    answer: MemoryDetail,
  })
  read(@Input() { principal, params }: Own): Promise<MemoryDetail> {
    return this.memories.get(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'DELETE',
    path: '/v1/memories/{id}',
    summary: 'Forget: the text is erased everywhere, a tombstone stays',
    access: 'write',
    answer: noContent,
  })
  remove(@Input() { principal, params }: Own): Promise<void> {
    return this.memories.delete(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/memories/{id}/confirm',
    summary: 'Keep a proposed memory, as it is or with your own words',
    access: 'approve',
    body: ConfirmMemory,
    answer: MemoryView,
    rebuild: (self: MemoriesController, { principal }, { id }) => self.memories.get(principal.ownerId, id),
  })
  confirm(@Input() { principal, params, body }: Own & { body: ConfirmMemory }): Promise<MemoryView> {
    return this.memories.confirm(principal.ownerId, params.id, body)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/memories/{id}/reject',
    summary: 'No: it is not remembered and does not come back',
    access: 'approve',
    answer: MemoryView,
    rebuild: (self: MemoriesController, { principal }, { id }) => self.memories.get(principal.ownerId, id),
  })
  reject(@Input() { principal, params }: Own): Promise<MemoryView> {
    return this.memories.reject(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/memories/{id}/undo',
    summary: 'Take an automatic memory back while its window is open',
    access: 'approve',
    answer: MemoryView,
    rebuild: (self: MemoriesController, { principal }, { id }) => self.memories.get(principal.ownerId, id),
  })
  undo(@Input() { principal, params }: Own): Promise<MemoryView> {
    return this.memories.undo(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/memories/{id}/versions',
    summary: 'Correct a memory: a new version, the old one leaves recall',
    access: 'approve',
    body: CorrectMemory,
    answer: MemoryView,
    status: 201,
    rebuild: (self: MemoriesController, { principal }, { id }) => self.memories.get(principal.ownerId, id),
  })
  correct(@Input() { principal, params, body }: Own & { body: CorrectMemory }): Promise<MemoryView> {
    return this.memories.correct(principal.ownerId, params.id, body)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/canonizations/{id}/extraction',
    summary: 'How far a character has come in remembering a canonical range',
    access: 'read',
    answer: ExtractionView,
  })
  extraction(@Input() { principal, params }: Own): Promise<ExtractionView> {
    return this.extractions.view(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/canonizations/{id}/extraction',
    summary: 'Try again to remember what was given up',
    access: 'write',
    answer: ExtractionView,
    rebuild: (self: MemoriesController, { principal }, { id }) => self.extractions.view(principal.ownerId, id),
  })
  extractAgain(@Input() { principal, params }: Own): Promise<ExtractionView> {
    return this.extractions.takeUp(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/recalls',
    summary: 'What was recalled, for which run, with ranks, scores and what was cut',
    access: 'read',
    query: RecallListQuery,
    answer: RecallPage,
  })
  listRecalls(
    @Input() { principal, query }: { principal: Principal; query: z.output<typeof RecallListQuery> },
  ): Promise<z.output<typeof RecallPage>> {
    return this.recalls.list(principal.ownerId, query)
  }
}
