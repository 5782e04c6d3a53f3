import { undoUntil } from './classify.ts'
import type { Candidate, MemoryChange } from './memory-change.ts'
import type { MemoryRow, MemoryStore } from './ports.ts'

/** The text that an undo brings back. */
export type FormerText = Pick<Candidate, 'text' | 'vector'> & { versionId: string }

/** Rejected or undone as a whole: out of search at once, known by digest from now on, its text gone after the window. */
export async function retire(
  store: MemoryStore,
  change: MemoryChange,
  memory: MemoryRow,
  { state, eraseAt }: { state: 'rejected' | 'undone'; eraseAt: Date },
): Promise<void> {
  const family = await store.family(memory.owner_id, [memory.id])
  for (const id of family) {
    await suppress(store, change, id)
    const versions = await store.versions(memory.owner_id, id, change.now)
    await store.expire(
      memory.owner_id,
      versions.map((version) => version.id),
      eraseAt,
    )
  }
  await store.update(memory.owner_id, memory.id, { state, undo_until: null }, change.now)
}

/**
 * An update or merge is taken back: the version before stands again, and so does what was merged (case R6). Where another memory says by now
 * what that version said, that one stands for it; a proposal that only waits to say it has nothing left to ask.
 */
export async function restore(
  store: MemoryStore,
  change: MemoryChange,
  { memory, former, until }: { memory: MemoryRow; former: FormerText; until: Date },
): Promise<void> {
  const undone = memory.current_version_id
  await suppress(store, change, memory.id)
  await store.expire(memory.owner_id, [undone], until)
  const versions = await store.versions(memory.owner_id, memory.id, change.now)
  const version = versions.find((row) => row.id === former.versionId)
  const window = version && ['extract', 'update', 'merge'].includes(version.cause) ? undoUntil(version.created_at) : null
  const twin = await twinOf(store, change, { id: memory.id, text: former.text })
  const back = { current_version_id: former.versionId, text_hash: change.digest(former.text) }
  if (twin?.state === 'live') {
    await change.mergeInto({ id: twin.id, versionId: twin.current_version_id }, [memory])
    await store.update(memory.owner_id, memory.id, back, change.now)
  } else {
    if (twin) await change.mergeInto({ id: memory.id, versionId: former.versionId }, [twin])
    await store.update(memory.owner_id, memory.id, { ...back, undo_until: window && window > change.now ? window : null }, change.now)
    await change.index(former.versionId, former)
  }
  change.record({
    type: 'memory.decided',
    payload: { memory_id: memory.id, decision: 'undo', state: twin?.state === 'live' ? 'merged' : 'live', version_id: former.versionId },
  })
  await release(store, change, undone)
}

async function suppress(store: MemoryStore, change: MemoryChange, memoryId: string): Promise<void> {
  const hash = await store.hashOf(change.scope.owner_id, memoryId)
  if (hash) await store.suppress({ ...change.scope, text_hash: hash, memory_id: memoryId, created_at: change.now })
}

async function twinOf(store: MemoryStore, change: MemoryChange, { id, text }: { id: string; text: string }): Promise<MemoryRow | null> {
  const twin = await store.byHash(change.scope, change.digest(text), change.now)
  if (!twin || twin.id === id) return null
  await store.lockRows(change.scope.owner_id, [twin.id])
  return twin
}

/** What a version had taken in stands for itself again, unless its text has come up anew meanwhile, or nobody ever said yes to it. */
async function release(store: MemoryStore, change: MemoryChange, versionId: string): Promise<void> {
  const ids = await store.mergedInto(change.scope.owner_id, versionId)
  await store.lockRows(change.scope.owner_id, ids)
  for (const row of await store.findAll(change.scope.owner_id, ids, change.now)) {
    if (row.text === null) continue
    if (row.level === 'heavy' && !(await store.isConfirmed(row.owner_id, row.current_version_id))) continue
    const twin = await twinOf(store, change, { id: row.id, text: row.text })
    if (twin?.state === 'live') {
      await store.update(row.owner_id, row.id, { merged_into_version_id: twin.current_version_id }, change.now)
      continue
    }
    if (twin) await change.mergeInto({ id: row.id, versionId: row.current_version_id }, [twin])
    await store.update(row.owner_id, row.id, { state: 'live', merged_into_version_id: null }, change.now)
    await change.index(row.current_version_id, { text: row.text, vector: null })
    change.record({
      type: 'memory.decided',
      payload: { memory_id: row.id, decision: 'undo', state: 'live', version_id: row.current_version_id },
    })
  }
}
