import { LingtaiError } from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { eraseTexts, MemoryChange } from './memory-change.ts'
import type { ChangeCause, ChangeDeps } from './memory-change.ts'
import type { AffectedMemory, MemoryFlag, MemoryRow, MemoryStore } from './ports.ts'

/** Versions that are looked at together. */
const BATCH = 100
/** So many that cannot be erased are no longer theirs alone: the round ends. */
const FAILURES_MAX = 1_000

export type MemoryUpkeepDeps = ChangeDeps & {
  unitOfWork: UnitOfWork
  clock: Clock
  /** Of a memory whose text could not be erased. */
  report(error: unknown, memoryId: string): void
}

/** What happens to memories because of something else: sources deleted, canon withdrawn, time passed, a character gone. */
export class MemoryUpkeep {
  readonly #deps: MemoryUpkeepDeps

  constructor(deps: MemoryUpkeepDeps) {
    this.#deps = deps
  }

  /**
   * Messages were or are being deleted: memories that rested on them alone are tombstoned, the others flagged for review. Belongs to the
   * unit of work of the deletion, before the messages' contents are erased (memories are locked before the log's heads).
   */
  async nodesDeleted(ownerId: string, nodeIds: readonly string[]): Promise<void> {
    const { store, unitOfWork, contents } = this.#deps
    if (nodeIds.length === 0) return
    await unitOfWork.run(async () => {
      const past = await store.pastContentsOf(ownerId, nodeIds)
      await this.#settle(ownerId, await store.citing(ownerId, nodeIds), { tag: 'node.delete', flag: 'source_deleted' })
      await eraseTexts({ store, contents }, { ownerId, contentIds: past, cause: 'memory.source_deleted' })
    })
  }

  /** A canonization was withdrawn, in the same unit of work: memories that it alone vouched for are flagged, none is removed (decision 26). */
  async canonWithdrawn(ownerId: string, canonizationId: string): Promise<void> {
    const { store, unitOfWork } = this.#deps
    await unitOfWork.run(async () => {
      const affected = await store.citingCanonization(ownerId, canonizationId)
      await this.#settle(
        ownerId,
        affected.filter((memory) => !memory.sourced).map((memory) => ({ ...memory, sourced: true })),
        { tag: 'canon.withdraw', flag: 'canon_withdrawn' },
      )
    })
  }

  /**
   * Erases the text of rejected and undone memories whose window is over, each by itself; answers how many versions. One that cannot be, since
   * its owner's stream is broken, is told and left to the next round. Only tidies: reading compares times.
   */
  async eraseExpired(): Promise<number> {
    const { store, clock, report } = this.#deps
    const failed = new Set<string>()
    let erased = 0
    while (failed.size < FAILURES_MAX) {
      const due = await store.due(clock.now(), BATCH, [...failed])
      if (due.length === 0) break
      for (const [memoryId, versions] of Map.groupBy(due, (row) => row.memory_id)) {
        try {
          await this.#erase(memoryId, versions)
          erased += versions.length
        } catch (error) {
          failed.add(memoryId)
          report(error, memoryId)
        }
      }
    }
    return erased
  }

  async #erase(memoryId: string, versions: Awaited<ReturnType<MemoryStore['due']>>): Promise<void> {
    const { store, unitOfWork, contents } = this.#deps
    const [first] = versions
    if (!first) return
    await unitOfWork.run(async () => {
      const change = await MemoryChange.begin(this.#deps, first, this.#cause('memory.expire'))
      const memory = await store.find(first.owner_id, memoryId, change.now)
      if (memory && (memory.state === 'rejected' || memory.state === 'undone')) await change.remove([memoryId], 'undo_window_closed')
      else {
        const contentIds = versions.map((version) => version.content_id)
        await eraseTexts({ store, contents }, { ownerId: first.owner_id, contentIds, cause: 'memory.undo_window_closed' })
      }
      await store.settleExpiries(versions.map((version) => version.version_id))
      await change.finish()
    })
  }

  /** All memories of a character are tombstoned, and the key of its digests is destroyed. Throws validation_failed for an empty id (case R8). */
  async characterDeleted(ownerId: string, characterId: string): Promise<void> {
    if (ownerId === '' || characterId === '') {
      throw new LingtaiError('validation_failed', 'Name the owner and the character.', {
        errors: [{ path: 'character_id', message: 'must not be empty' }],
      })
    }
    const { store, unitOfWork } = this.#deps
    await unitOfWork.run(async () => {
      const ids = await store.ofCharacter(ownerId, characterId)
      const affected = ids.map((memory_id) => ({ memory_id, sourced: false }))
      await this.#settle(ownerId, affected, { tag: 'character.delete', flag: 'source_deleted', cause: 'owner' })
      await store.forgetKeys(ownerId, characterId)
    })
  }

  async #settle(
    ownerId: string,
    affected: readonly AffectedMemory[],
    { tag, flag, cause = 'source_deleted' }: { tag: string; flag: MemoryFlag; cause?: 'owner' | 'source_deleted' },
  ): Promise<void> {
    const { store } = this.#deps
    const sourced = new Set(affected.filter((memory) => memory.sourced).map((memory) => memory.memory_id))
    const rows = await store.findAll(
      ownerId,
      affected.map((memory) => memory.memory_id),
      this.#deps.clock.now(),
    )
    for (const [, group] of [...Map.groupBy(rows, (row) => `${row.character_id} ${row.realm_id}`)].sort(([left], [right]) =>
      left < right ? -1 : 1,
    )) {
      const [first] = group
      if (!first) continue
      const change = await MemoryChange.begin(this.#deps, first, this.#cause(tag))
      await this.#flag(
        change,
        group.filter((row) => sourced.has(row.id) && row.flagged !== flag),
        flag,
      )
      await change.remove(
        group.filter((row) => !sourced.has(row.id)).map((row) => row.id),
        cause,
      )
      await change.finish()
    }
  }

  async #flag(change: MemoryChange, rows: readonly MemoryRow[], flag: MemoryFlag): Promise<void> {
    for (const row of rows) {
      await this.#deps.store.update(row.owner_id, row.id, { flagged: flag }, change.now)
      change.record({ type: 'memory.flagged', payload: { memory_id: row.id, cause: flag } })
    }
  }

  #cause(tag: string): ChangeCause {
    return { actor: 'system', tag, now: this.#deps.clock.now() }
  }
}
