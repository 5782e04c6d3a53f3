import { CharactersService } from '#domains/characters/characters.service'
import type { MemoryUpkeep } from '#domains/memory/memory-upkeep.service'
import type { LorebooksService } from '#domains/worlds/lorebooks.service'
import type { RealmsService } from '#domains/worlds/realms.service'
import { CharacterRepository } from '#infra/prisma/character.repository'
import type { Foundation } from './foundation.ts'

/** Characters, on the realms and lorebooks that they come with, and the memories that go with them. */
export function composeCharacters(
  { database, contents, log, clock, ids }: Foundation,
  { realms, lorebooks, upkeep }: { realms: RealmsService; lorebooks: LorebooksService; upkeep: MemoryUpkeep },
): CharactersService {
  return new CharactersService({
    unit: database,
    store: new CharacterRepository(database),
    contents,
    log,
    clock,
    ids,
    keepBook: (input) => lorebooks.keep(input),
    forgetMemories: (ownerId, characterId) => upkeep.characterDeleted(ownerId, characterId),
    resolveRealm: (ownerId, realmId) => realms.resolve(ownerId, realmId),
  })
}
