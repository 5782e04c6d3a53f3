import { Controller } from '@nestjs/common'
import { z } from 'zod'
import { CreateRealm, CreateUserPersona, Id, ImportedLorebook, LorebookView, RealmView, UserPersonaView } from '#contracts'
import { cardLimits } from '#domains/characters/cards/index'
import type { Principal } from '#domains/identity/principal'
import { LorebooksService } from '#domains/worlds/lorebooks.service'
import { RealmsService } from '#domains/worlds/realms.service'
import { UserPersonasService } from '#domains/worlds/user-personas.service'
import { ApiRoute, Input } from '../http/api-route.ts'
import { listOf } from '../http/list-of.ts'
import { RawBody } from '../http/route-shapes.ts'

const LorebookFile = new RawBody({ types: ['application/json', 'application/octet-stream'], limit: cardLimits.fileBytes })
const ImportQuery = z.object({ character_id: Id.optional() })

type Asked = { principal: Principal }

/** Realms, who the owner is in them, and lorebooks. */
@Controller()
export class WorldsController {
  constructor(
    private readonly realms: RealmsService,
    private readonly personas: UserPersonasService,
    private readonly lorebooks: LorebooksService,
  ) {}

  @ApiRoute({
    method: 'GET',
    path: '/v1/realms',
    summary: 'Your realms: the real one and the fictions',
    access: 'read',
    answer: listOf(RealmView),
  })
  async listRealms(@Input() { principal }: Asked): Promise<{ items: RealmView[] }> {
    return { items: await this.realms.list(principal.ownerId) }
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/realms',
    summary: 'Make a realm: what is remembered in a fiction stays there',
    access: 'write',
    body: CreateRealm,
    answer: RealmView,
    status: 201,
    rebuild: (self: WorldsController, { principal }, { id }) => self.realms.read(principal.ownerId, id),
  })
  createRealm(@Input() { principal, body }: Asked & { body: CreateRealm }): Promise<RealmView> {
    return this.realms.create(principal.ownerId, body)
  }

  @ApiRoute({ method: 'GET', path: '/v1/personas', summary: 'Who you are in your trees', access: 'read', answer: listOf(UserPersonaView) })
  async listPersonas(@Input() { principal }: Asked): Promise<{ items: UserPersonaView[] }> {
    return { items: await this.personas.list(principal.ownerId) }
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/personas',
    summary: 'Write a persona of your own',
    access: 'write',
    body: CreateUserPersona,
    bodyLimit: 2 * 1024 * 1024,
    answer: UserPersonaView,
    status: 201,
    rebuild: (self: WorldsController, { principal }, { id }) => self.personas.read(principal.ownerId, id),
  })
  createPersona(@Input() { principal, body }: Asked & { body: CreateUserPersona }): Promise<UserPersonaView> {
    return this.personas.create(principal.ownerId, body)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/lorebooks',
    summary: 'Your lorebooks, those of cards among them',
    access: 'read',
    answer: listOf(LorebookView),
  })
  async listLorebooks(@Input() { principal }: Asked): Promise<{ items: LorebookView[] }> {
    return { items: await this.lorebooks.list(principal.ownerId) }
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/lorebooks/import',
    summary: 'Import a lorebook file, for one character or for all',
    description:
      'The body is the file itself: SillyTavern’s world info, a card’s book, or a V3 lorebook. `report` lists what was odd in it.',
    access: 'write',
    query: ImportQuery,
    body: LorebookFile,
    answer: ImportedLorebook,
    status: 201,
    keep: ({ lorebook }) => ({ id: lorebook.id }),
    rebuild: (self: WorldsController, { principal }, { id }) => self.lorebooks.describeImport(principal.ownerId, id),
  })
  importLorebook(
    @Input() { principal, query, body }: Asked & { query: z.output<typeof ImportQuery>; body: Uint8Array },
  ): Promise<ImportedLorebook> {
    return this.lorebooks.import({ ownerId: principal.ownerId, characterId: query.character_id?.toLowerCase() ?? null, bytes: body })
  }
}
