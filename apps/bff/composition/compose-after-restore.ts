import type { CharactersService } from '#domains/characters/characters.service'
import type { PathService } from '#domains/mirror-tree/path.service'
import { AFTER_RESTORE, settleRestore } from '#domains/record/after-restore'
import { RemainsRepository } from '#infra/prisma/remains.repository'
import type { Memory } from './compose-memory.ts'
import type { Foundation } from './foundation.ts'

/** What a restore leaves to be done once the instance is there (decision 6). */
export function composeAfterRestore(
  { database }: Foundation,
  parts: {
    memory: Pick<Memory, 'handle' | 'closeJob' | 'memories'>
    characters: Pick<CharactersService, 'remove'>
    paths: Pick<PathService, 'delete' | 'deleteTree'>
  },
): void {
  const { memory, characters, paths } = parts
  const source = new RemainsRepository(database)
  memory.handle(AFTER_RESTORE, async (row) => {
    await settleRestore({
      source,
      deleteTree: (ownerId, treeId) => paths.deleteTree(ownerId, treeId),
      deleteNode: (ownerId, nodeId) => paths.delete(ownerId, nodeId, { withdraw: true }),
      deleteMemory: (ownerId, memoryId) => memory.memories.delete(ownerId, memoryId),
      deleteCharacter: (ownerId, characterId) => characters.remove(ownerId, characterId),
    })
    await memory.closeJob(row.id)
  })
}
