import { readLorebookFile } from '#domains/characters/keepable-book'
import { LorebooksService } from '#domains/worlds/lorebooks.service'
import { RealmsService } from '#domains/worlds/realms.service'
import { UserPersonasService } from '#domains/worlds/user-personas.service'
import { LorebookRepository, RealmRepository, UserPersonaRepository } from '#infra/prisma/worlds.repository'
import type { Foundation } from './foundation.ts'

/** Realms, user personas and lorebooks. */
export function composeWorlds({ database, contents, clock, ids }: Foundation) {
  const parts = { unit: database, contents, clock, ids }
  return {
    realms: new RealmsService({ store: new RealmRepository(database), clock, ids }),
    personas: new UserPersonasService({ ...parts, store: new UserPersonaRepository(database) }),
    lorebooks: new LorebooksService({ ...parts, store: new LorebookRepository(database), read: readLorebookFile }),
  }
}
