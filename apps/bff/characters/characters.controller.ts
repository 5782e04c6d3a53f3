import { Controller } from '@nestjs/common'
import { z } from 'zod'
import {
  CharacterPage,
  CharacterVersionView,
  CharacterView,
  CreateCharacter,
  CreateCharacterVersion,
  ExportFormat,
  ImportedCharacter,
  PageQuery,
} from '#contracts'
import { cardLimits } from '#domains/characters/cards/index'
import { CharactersService } from '#domains/characters/characters.service'
import type { Principal } from '#domains/identity/principal'
import { ApiRoute, Input } from '../http/api-route.ts'
import { listOf } from '../http/list-of.ts'
import { idCursor } from '../http/page-cursor.ts'
import { fileAnswer, noContent, RawBody } from '../http/route-shapes.ts'
import type { SentFile } from '../http/route-shapes.ts'

const CardFile = new RawBody({ types: ['application/json', 'image/png', 'application/octet-stream'], limit: cardLimits.fileBytes })
const ExportQuery = z.object({ format: ExportFormat })
const AvatarQuery = z.object({ v: z.string().max(40).optional() })

/** A character's own texts may be long, and there may be many greetings. */
const CHARACTER_BODY_LIMIT = 4 * 1024 * 1024

type Own = { principal: Principal; params: { id: string } }

@Controller()
export class CharactersController {
  constructor(private readonly characters: CharactersService) {}

  @ApiRoute({
    method: 'GET',
    path: '/v1/characters',
    summary: 'Your characters, oldest first',
    access: 'read',
    query: PageQuery,
    answer: CharacterPage,
  })
  list(
    @Input() { principal, query }: { principal: Principal; query: z.output<typeof PageQuery> },
  ): Promise<z.output<typeof CharacterPage>> {
    return this.characters.list(principal.ownerId, { limit: query.limit, after: idCursor(query.cursor) })
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/characters',
    summary: 'Write a character',
    access: 'write',
    body: CreateCharacter,
    bodyLimit: CHARACTER_BODY_LIMIT,
    answer: CharacterView,
    status: 201,
    rebuild: (self: CharactersController, { principal }, { id }) => self.characters.read(principal.ownerId, id),
  })
  create(@Input() { principal, body }: { principal: Principal; body: CreateCharacter }): Promise<CharacterView> {
    return this.characters.create(principal.ownerId, body)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/characters/import',
    summary: 'Import a character card: JSON or PNG, version 1, 2 or 3',
    description: 'The body is the file itself. Its text stays untrusted until it is accepted. `report` lists what was odd in the file.',
    access: 'write',
    body: CardFile,
    answer: ImportedCharacter,
    status: 201,
    keep: ({ character }) => ({ id: character.id }),
    rebuild: (self: CharactersController, { principal }, { id }) => self.characters.describeImport(principal.ownerId, id),
  })
  import(@Input() { principal, body }: { principal: Principal; body: Uint8Array }): Promise<ImportedCharacter> {
    return this.characters.import(principal.ownerId, body)
  }

  @ApiRoute({ method: 'GET', path: '/v1/characters/{id}', summary: 'A character', access: 'read', answer: CharacterView })
  read(@Input() { principal, params }: Own): Promise<CharacterView> {
    return this.characters.read(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'DELETE',
    path: '/v1/characters/{id}',
    summary: 'Delete a character: its cards, picture, lorebooks and memories are erased, its trees stay',
    access: 'write',
    answer: noContent,
  })
  remove(@Input() { principal, params }: Own): Promise<void> {
    return this.characters.remove(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/characters/{id}/accept',
    summary: 'Accept an imported text after reading it: from here on it counts as your own',
    access: 'write',
    answer: CharacterView,
    rebuild: (self: CharactersController, { principal }, { id }) => self.characters.read(principal.ownerId, id),
  })
  accept(@Input() { principal, params }: Own): Promise<CharacterView> {
    return this.characters.accept(principal.ownerId, params.id)
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/characters/{id}/avatar',
    summary: 'The picture that the card came in',
    access: 'read',
    query: AvatarQuery,
    answer: fileAnswer('image/png'),
  })
  async avatar(@Input() { principal, params }: Own): Promise<SentFile> {
    const { contentId, bytes } = await this.characters.avatar(principal.ownerId, params.id)
    return { bytes, type: 'image/png', etag: contentId }
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/characters/{id}/export',
    summary: 'The card as a file: what was not understood is kept',
    access: 'read',
    query: ExportQuery,
    answer: fileAnswer('application/json', 'image/png'),
  })
  async export(@Input() { principal, params, query }: Own & { query: z.output<typeof ExportQuery> }): Promise<SentFile> {
    const { name, bytes } = await this.characters.export(principal.ownerId, params.id, query.format)
    const isPng = query.format === 'png'
    return { bytes, type: isPng ? 'image/png' : 'application/json', name: `${name}.${isPng ? 'png' : 'json'}` }
  }

  @ApiRoute({
    method: 'GET',
    path: '/v1/characters/{id}/versions',
    summary: 'The versions of a character’s card, newest first',
    access: 'read',
    answer: listOf(CharacterVersionView),
  })
  async versions(@Input() { principal, params }: Own): Promise<{ items: CharacterVersionView[] }> {
    return { items: await this.characters.versions(principal.ownerId, params.id) }
  }

  @ApiRoute({
    method: 'POST',
    path: '/v1/characters/{id}/versions',
    summary: 'Change a character: the named fields in a new version',
    access: 'write',
    body: CreateCharacterVersion,
    bodyLimit: CHARACTER_BODY_LIMIT,
    answer: CharacterView,
    status: 201,
    rebuild: (self: CharactersController, { principal }, { id }) => self.characters.read(principal.ownerId, id),
  })
  addVersion(@Input() { principal, params, body }: Own & { body: CreateCharacterVersion }): Promise<CharacterView> {
    return this.characters.addVersion(principal.ownerId, params.id, body)
  }
}
