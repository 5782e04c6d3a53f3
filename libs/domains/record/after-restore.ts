/** The job that a restore leaves behind where it erased anything again. */
export const AFTER_RESTORE = 'archive.restored'

/** What an archive brought back and what an erasure had taken with its text. */
export type Remains = { id: string; owner_id: string }

export interface RemainsSource {
  /** Trees that their owner had deleted. */
  trees(): Promise<Remains[]>
  /** Messages whose text is erased and that stand all the same. */
  nodes(): Promise<Remains[]>
  memories(): Promise<Remains[]>
  characters(): Promise<Remains[]>
}

export type AfterRestoreDeps = {
  source: RemainsSource
  deleteTree(ownerId: string, treeId: string): Promise<void>
  deleteNode(ownerId: string, nodeId: string): Promise<void>
  deleteMemory(ownerId: string, memoryId: string): Promise<void>
  deleteCharacter(ownerId: string, characterId: string): Promise<void>
}

/**
 * Deletes by the ordinary ways what had been deleted after an archive was made: a restore erases texts alone, and a memory without its text
 * would stand in the way of being learned again, a message without one in the canon (decision 6). May run twice. Throws AggregateError for
 * what could not be deleted yet, such as a tree in which an answer is still being closed.
 */
export async function settleRestore({ source, ...ways }: AfterRestoreDeps): Promise<void> {
  const failures: unknown[] = []
  const all = async (remains: readonly Remains[], remove: (ownerId: string, id: string) => Promise<void>): Promise<void> => {
    for (const { id, owner_id: ownerId } of remains) {
      await remove(ownerId, id).catch((error: unknown) => void failures.push(error))
    }
  }
  await all(await source.characters(), ways.deleteCharacter)
  await all(await source.trees(), ways.deleteTree)
  await all(await source.nodes(), ways.deleteNode)
  await all(await source.memories(), ways.deleteMemory)
  if (failures.length > 0) throw new AggregateError(failures, 'not all that was deleted before the restore could be deleted again')
}
