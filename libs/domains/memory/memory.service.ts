import { LingtaiError } from '#contracts'
import type {
  CorrectMemory,
  MemoryDetail,
  MemoryLevel,
  MemoryState,
  MemoryType,
  MemoryView,
  RecallAuditView,
  SearchMemories,
} from '#contracts'
import type { Clock } from '#kernel/ports/clock'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { classify, undoUntil } from './classify.ts'
import { MemoryChange } from './memory-change.ts'
import type { Candidate, ChangeDeps } from './memory-change.ts'
import { restore, retire } from './memory-retreat.ts'
import type { FormerText } from './memory-retreat.ts'
import { memoryViews, readCursor } from './memory-views.ts'
import type { MemoryRow, SourceRef } from './ports.ts'
import type { RecallService } from './recall.service.ts'
import { isEmptyOfMeaning, scrub } from './scrub.ts'

/** Most runs named as having recalled a memory. */
const RECALLED_IN_MAX = 50

export type MemoryDeps = ChangeDeps & { unitOfWork: UnitOfWork; clock: Clock; recall: RecallService }

export type MemoryListInput = {
  limit: number
  cursor?: string
  character_id?: string
  realm_id?: string
  level?: MemoryLevel
  state?: MemoryState
  type?: MemoryType
}

/** The owner's side of memory: see, confirm, reject, undo, correct, delete, search. Only the owner consents (decision 35). */
export class MemoryService {
  readonly #deps: MemoryDeps

  constructor(deps: MemoryDeps) {
    this.#deps = deps
  }

  /** Newest first; the cursor is the last memory's id. Throws validation_failed for a cursor that is none of ours. */
  async list(ownerId: string, query: MemoryListInput): Promise<{ items: MemoryView[]; next_cursor: string | null }> {
    const { store, clock } = this.#deps
    const now = clock.now()
    const rows = await store.list(
      ownerId,
      {
        characterId: query.character_id,
        realmId: query.realm_id,
        level: query.level,
        state: query.state,
        type: query.type,
        beforeId: readCursor(query.cursor),
        limit: query.limit + 1,
      },
      now,
    )
    const page = rows.slice(0, query.limit)
    return {
      items: await memoryViews(store, ownerId, page, now),
      next_cursor: rows.length > query.limit ? (page.at(-1)?.id ?? null) : null,
    }
  }

  /** Throws not_found. */
  async get(ownerId: string, memoryId: string): Promise<MemoryDetail> {
    const { store, clock } = this.#deps
    const now = clock.now()
    const view = await this.#view(ownerId, memoryId)
    const versions = await store.versions(ownerId, memoryId, now)
    const recalled = await store.recalledIn(ownerId, memoryId, RECALLED_IN_MAX)
    return {
      ...view,
      versions: versions.map(({ id, version, text, cause, created_at, live }) => ({
        id,
        version,
        text,
        cause,
        created_at: created_at.toISOString(),
        live,
      })),
      recalled_in: recalled.map(({ run_id, tree_id, at }) => ({ run_id, tree_id, at: at.toISOString() })),
    }
  }

  /** A proposal takes effect, as it is or with an edited text. Throws not_found, wrong_state, validation_failed. */
  async confirm(ownerId: string, memoryId: string, input: { text?: string }): Promise<MemoryView> {
    const edited = input.text === undefined ? null : await this.#ownText(ownerId, memoryId, input.text)
    return this.#change(ownerId, memoryId, 'memory.confirm', async (change, memory) => {
      if (memory.state !== 'proposed') throw wrongState(memory)
      const { store } = this.#deps
      const twin = edited ? await store.byHash(change.scope, change.digest(edited.text), change.now) : null
      if (edited && twin && twin.id !== memory.id) return this.#joinTwin(change, { memory, twin, edited, decision: 'confirm' })
      const isNew = edited !== null && twin === null
      const versionId = isNew
        ? await change.addVersion(memory, { ...(await this.#inherited(memory)), text: edited.text, cause: 'confirm' })
        : memory.current_version_id
      await this.#consent(change, memory, versionId, 'confirm')
      const classified = isNew ? classify({ text: edited.text, type: memory.type, sensitive: memory.sensitive }) : memory
      await store.update(
        ownerId,
        memory.id,
        {
          state: 'live',
          current_version_id: versionId,
          sensitive: classified.sensitive,
          topics: [...new Set([...memory.topics, ...classified.topics])],
          flagged: null,
          ...(isNew ? { text_hash: change.digest(edited.text) } : {}),
        },
        change.now,
      )
      if (isNew) await change.index(versionId, edited)
      change.record({
        type: 'memory.decided',
        payload: { memory_id: memory.id, decision: 'confirm', state: 'live', version_id: versionId },
      })
      await this.#takePlaces(change, { id: memory.id, versionId })
    })
  }

  /** A proposal is refused: it does not come back, and its text goes when the undo window ends. Throws not_found, wrong_state. */
  async reject(ownerId: string, memoryId: string): Promise<MemoryView> {
    return this.#change(ownerId, memoryId, 'memory.reject', async (change, memory) => {
      const { store } = this.#deps
      if (memory.state !== 'proposed') throw wrongState(memory)
      await this.#consent(change, memory, memory.current_version_id, 'reject')
      await retire(store, change, memory, { state: 'rejected', eraseAt: undoUntil(change.now) })
      change.record({
        type: 'memory.decided',
        payload: { memory_id: memory.id, decision: 'reject', state: 'rejected', version_id: memory.current_version_id },
      })
    })
  }

  /**
   * An automatic change is taken back within its window: a new memory goes, an updated or merged one stands as before (case R6). What was
   * undone does not come back. Throws not_found, wrong_state.
   */
  async undo(ownerId: string, memoryId: string): Promise<MemoryView> {
    const former = await this.#formerText(ownerId, memoryId)
    return this.#change(ownerId, memoryId, 'memory.undo', async (change, memory) => {
      const { store } = this.#deps
      const until = memory.undo_until
      if (memory.state !== 'live' || memory.level !== 'explicit' || until === null || until <= change.now) throw wrongState(memory)
      await this.#consent(change, memory, memory.current_version_id, 'undo')
      if (former && former.versionId === memory.supersedes_version_id) {
        await restore(store, change, { memory, former, until })
        return
      }
      await retire(store, change, memory, { state: 'undone', eraseAt: until })
      change.record({
        type: 'memory.decided',
        payload: { memory_id: memory.id, decision: 'undo', state: 'undone', version_id: memory.current_version_id },
      })
    })
  }

  /**
   * The owner's own words take the place of the text: a new version, live at once. Throws not_found, wrong_state, revision_conflict where
   * another version is current by now, validation_failed.
   */
  async correct(ownerId: string, memoryId: string, input: CorrectMemory): Promise<MemoryView> {
    const edited = await this.#ownText(ownerId, memoryId, input.text)
    return this.#change(ownerId, memoryId, 'memory.correct', async (change, memory) => {
      if (memory.state !== 'live') throw wrongState(memory)
      if (memory.version !== input.version) {
        throw new LingtaiError('revision_conflict', `The memory is at version ${memory.version}.`, { data: { version: memory.version } })
      }
      const { store } = this.#deps
      const twin = await store.byHash(change.scope, change.digest(edited.text), change.now)
      if (twin && twin.id !== memory.id) return this.#joinTwin(change, { memory, twin, edited, decision: 'correct' })
      const versionId = await change.addVersion(memory, { ...(await this.#inherited(memory)), text: edited.text, cause: 'correct' })
      await this.#consent(change, memory, versionId, 'correct')
      const classified = classify({ text: edited.text, type: memory.type, sensitive: memory.sensitive })
      await store.update(
        ownerId,
        memory.id,
        {
          level: memory.level === 'explicit' ? classified.level : memory.level,
          sensitive: classified.sensitive,
          topics: [...new Set([...memory.topics, ...classified.topics])],
          current_version_id: versionId,
          text_hash: change.digest(edited.text),
          undo_until: null,
          flagged: null,
        },
        change.now,
      )
      await change.index(versionId, edited)
    })
  }

  /** Tombstone: proof of the act, no text, nothing derived. Deleting twice is the same. Throws not_found. */
  async delete(ownerId: string, memoryId: string): Promise<void> {
    await this.#change(ownerId, memoryId, 'memory.delete', (change, memory) => change.remove([memory.id], 'owner'))
  }

  /** What the character would recall for a query. Audited; strengthens nothing. Throws not_found for a scope that is not the owner's. */
  async search(ownerId: string, input: SearchMemories): Promise<{ audit: RecallAuditView }> {
    const scope = await this.#deps.store.resolveScope(ownerId, input.character_id, input.realm_id ?? null)
    if (!scope) throw new LingtaiError('not_found')
    const { auditId } = await this.#deps.recall.recall({
      ...scope,
      queries: [{ text: input.query, weight: 1 }],
      runId: null,
      limits: { items: input.limit, characters: Number.MAX_SAFE_INTEGER },
    })
    const audit = await this.#deps.recall.audit(ownerId, auditId)
    if (!audit) throw new LingtaiError('internal_error')
    return { audit }
  }

  // ---------------------------------------------------------------- parts of the changes

  async #change(
    ownerId: string,
    memoryId: string,
    tag: string,
    work: (change: MemoryChange, memory: MemoryRow) => Promise<void>,
  ): Promise<MemoryView> {
    const { unitOfWork, store, clock } = this.#deps
    return unitOfWork.run(async () => {
      const now = clock.now()
      const found = await store.find(ownerId, memoryId, now)
      if (!found) throw new LingtaiError('not_found')
      const change = await MemoryChange.begin(this.#deps, found, { actor: 'owner', tag, now })
      await store.lockRows(ownerId, [memoryId])
      // Once more, now that nobody else can change it.
      const memory = await store.find(ownerId, memoryId, now)
      if (!memory) throw new LingtaiError('not_found')
      await work(change, memory)
      await change.finish()
      return this.#view(ownerId, memoryId)
    })
  }

  async #view(ownerId: string, memoryId: string): Promise<MemoryView> {
    const { store, clock } = this.#deps
    const now = clock.now()
    const row = await store.find(ownerId, memoryId, now)
    const [view] = row ? await memoryViews(store, ownerId, [row], now) : []
    if (!view) throw new LingtaiError('not_found')
    return view
  }

  /** A person's text, with secrets masked as in every level (R13), and its vector. */
  async #ownText(ownerId: string, memoryId: string, text: string): Promise<Pick<Candidate, 'text' | 'vector'>> {
    const clean = scrub(text.trim()).text
    if (isEmptyOfMeaning(clean)) {
      throw new LingtaiError('validation_failed', 'Nothing is left to remember once secrets are masked.', {
        errors: [{ path: 'text', message: 'says nothing' }],
      })
    }
    const memory = await this.#deps.store.find(ownerId, memoryId, this.#deps.clock.now())
    return { text: clean, vector: memory ? await this.#vectorOf(memory, clean) : null }
  }

  /** Null where the embedder does not answer, or may not be asked: the vector is filled in later. */
  async #vectorOf({ owner_id: ownerId, character_id: characterId }: MemoryRow, text: string): Promise<Float32Array | null> {
    const [vector] = await this.#deps.embeddings.embed([text], { purpose: 'memory', ownerId, characterId, runId: null })
    return vector ?? null
  }

  /** What a version by the owner takes over from the one before: sources, time, trust. */
  async #inherited(memory: MemoryRow): Promise<Pick<Candidate, 'sources' | 'eventAt' | 'trust'>> {
    const rows = await this.#deps.store.sources(memory.owner_id, [memory.current_version_id])
    const sources: SourceRef[] = rows.map(({ tree_id, node_id, canonization_id }) => ({ tree_id, node_id, canonization_id }))
    return { sources, eventAt: memory.event_at, trust: memory.trust }
  }

  async #consent(
    change: MemoryChange,
    memory: MemoryRow,
    versionId: string,
    decision: 'confirm' | 'reject' | 'undo' | 'correct',
  ): Promise<void> {
    await this.#deps.store.insertConfirmation({
      ...change.scope,
      id: this.#deps.ids.next(),
      memory_id: memory.id,
      version_id: versionId,
      decision,
      decided_at: change.now,
    })
  }

  /**
   * Another memory says the same already: that one is strengthened, this one taken in by it, with the owner's words as its own, so that
   * nothing brings back those that they replaced. A proposal that waits to say the same has its yes by that.
   */
  async #joinTwin(
    change: MemoryChange,
    parts: { memory: MemoryRow; twin: MemoryRow; edited: Pick<Candidate, 'text' | 'vector'>; decision: 'confirm' | 'correct' },
  ): Promise<void> {
    const { store } = this.#deps
    const { memory, twin, edited, decision } = parts
    await store.lockRows(memory.owner_id, [memory.id, twin.id])
    const inherited = await this.#inherited(memory)
    await change.reinforce(twin, inherited.sources)
    const into = { id: twin.id, versionId: twin.current_version_id }
    await change.mergeInto(into, [memory])
    const versionId = await change.addVersion(memory, { ...inherited, text: edited.text, cause: decision })
    await this.#consent(change, memory, versionId, decision)
    const own = { current_version_id: versionId, text_hash: change.digest(edited.text), flagged: null }
    await store.update(memory.owner_id, memory.id, own, change.now)
    if (twin.state !== 'proposed') return
    await this.#consent(change, twin, twin.current_version_id, 'confirm')
    await store.update(twin.owner_id, twin.id, { state: 'live', flagged: null }, change.now)
    change.record({
      type: 'memory.decided',
      payload: { memory_id: twin.id, decision: 'confirm', state: 'live', version_id: twin.current_version_id },
    })
    await this.#takePlaces(change, into)
  }

  /** A confirmed proposal takes in the memories that it was to replace, as far as they still stand. */
  async #takePlaces(change: MemoryChange, into: { id: string; versionId: string }): Promise<void> {
    const { store } = this.#deps
    const ids = await store.replacedBy(change.scope.owner_id, into.id)
    await store.lockRows(change.scope.owner_id, ids)
    const rows = await store.findAll(change.scope.owner_id, ids, change.now)
    await change.mergeInto(
      into,
      rows.filter((row) => row.state === 'live' || row.state === 'proposed'),
    )
  }

  /** The text that an undo would bring back, with its vector; null where there is none any more. */
  async #formerText(ownerId: string, memoryId: string): Promise<FormerText | null> {
    const { store, clock } = this.#deps
    const now = clock.now()
    const memory = await store.find(ownerId, memoryId, now)
    const former = memory && (await store.versions(ownerId, memoryId, now)).find((version) => version.id === memory.supersedes_version_id)
    if (!memory || !former?.text) return null
    return { versionId: former.id, text: former.text, vector: await this.#vectorOf(memory, former.text) }
  }
}

function wrongState(memory: MemoryRow): LingtaiError {
  return new LingtaiError('wrong_state', undefined, { data: { state: memory.state, level: memory.level } })
}
