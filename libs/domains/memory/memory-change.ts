import { meetTrust } from '#contracts'
import type { MemoryLevel, MemoryOrigin, MemoryType, NewEvent, SensitiveTopic } from '#contracts'
import type { Ids } from '#kernel/ports/clock'
import type { ContentStore } from '#kernel/ports/content-store'
import type { EventLog } from '#kernel/ports/event-log'
import { contentDigest } from '#kernel/record/chain'
import { undoUntil } from './classify.ts'
import { memoryDigest } from './dedupe.ts'
import type { Embeddings } from './embeddings.ts'
import type { MemoryIndex, MemoryRow, MemoryStore, MemoryTrust, Scope, SourceRef, VersionCause } from './ports.ts'
import { tokenize } from './tokenize.ts'

/** Something to remember, classified and scrubbed, with what it rests on. */
export type Candidate = {
  text: string
  type: MemoryType
  level: Extract<MemoryLevel, 'explicit' | 'heavy'>
  origin: MemoryOrigin
  priority: number
  confidence: number
  sensitive: boolean
  topics: SensitiveTopic[]
  sources: readonly SourceRef[]
  eventAt: Date
  trust: MemoryTrust
  /** Null where the embedder did not answer; filled in later. */
  vector: Float32Array | null
}

/** What became of a candidate. */
export type Outcome = 'stored' | 'duplicate' | 'rejected_before'

export type ChangeDeps = { store: MemoryStore; index: MemoryIndex; embeddings: Embeddings; contents: ContentStore; log: EventLog; ids: Ids }

/** Who changes, when, and because of what command. */
export type ChangeCause = { actor: string; tag: string; now: Date; runId?: string | null; canonizationId?: string | null }

type EventBody = Omit<NewEvent, 'actor' | 'at' | 'cause' | 'character_id' | 'run_id' | 'trust'>

/**
 * One change of the memories of a scope: inside a unit of work, with the scope locked. State is written as it goes, events are gathered and
 * appended by `finish` (M9).
 */
export class MemoryChange {
  readonly scope: Scope
  readonly now: Date
  readonly #deps: ChangeDeps
  readonly #key: Uint8Array
  readonly #cause: ChangeCause
  readonly #events: NewEvent[] = []

  private constructor(deps: ChangeDeps, scope: Scope, key: Uint8Array, cause: ChangeCause) {
    this.#deps = deps
    this.scope = scope
    this.now = cause.now
    this.#key = key
    this.#cause = cause
  }

  /** Locks the scope; every change of it waits for the one before. */
  static async begin(deps: ChangeDeps, { owner_id, character_id, realm_id }: Scope, cause: ChangeCause): Promise<MemoryChange> {
    const scope = { owner_id, character_id, realm_id }
    return new MemoryChange(deps, scope, await deps.store.lockScope(scope, deps.ids.bytes(32)), cause)
  }

  /** Appends what happened to the character's memory stream. Call it last. */
  async finish(): Promise<void> {
    if (this.#events.length === 0) return
    await this.#deps.log.append({ stream: `memory:${this.scope.character_id}`, ownerId: this.scope.owner_id, events: this.#events })
  }

  digest(text: string): Uint8Array {
    return memoryDigest(this.#key, text)
  }

  record(event: EventBody): void {
    const { actor, tag, now, runId } = this.#cause
    // Spread over a union of event bodies: each member gains the same fields.
    this.#events.push({
      ...event,
      actor,
      at: now.toISOString(),
      cause: { tag },
      character_id: this.scope.character_id,
      run_id: runId ?? null,
    } as NewEvent)
  }

  /** Stores a candidate as a memory of its own: live at once, or a proposal where it is heavy. */
  async add(candidate: Candidate): Promise<Outcome> {
    const known = await this.#known(candidate.text)
    if (known === 'rejected_before') return known
    if (known) {
      await this.reinforce(known, candidate.sources)
      return 'duplicate'
    }
    await this.#insert(candidate, 1)
    return 'stored'
  }

  /** The same was derived again: counted, and one more source (cases R1, R2). */
  async reinforce(memory: MemoryRow, sources: readonly SourceRef[]): Promise<void> {
    const { store } = this.#deps
    const mentions = memory.mentions + 1
    await store.update(memory.owner_id, memory.id, { mentions }, this.now)
    await store.insertSources(this.scope, memory.current_version_id, sources)
    this.record({ type: 'memory.reinforced', payload: { memory_id: memory.id, version_id: memory.current_version_id, count: mentions } })
  }

  /**
   * A candidate takes the place of memories that are proposed or live: as a new version of the first, with the others merged into it. Where
   * the result or one of them is heavy and live, nothing changes before the owner says so: a proposal waits, which names what it replaces.
   */
  async replace(targets: readonly [MemoryRow, ...MemoryRow[]], candidate: Candidate, cause: 'update' | 'merge'): Promise<Outcome> {
    const known = await this.#known(candidate.text)
    if (known === 'rejected_before') return known
    if (known) {
      await this.reinforce(known, candidate.sources)
      return 'duplicate'
    }
    const [first, ...others] = targets
    const whole = await this.#whole(targets, candidate)
    const mentions = targets.reduce((sum, target) => sum + target.mentions, 1)
    const isAutomatic = whole.level === 'explicit'
    if (!isAutomatic && targets.some((target) => target.state === 'live')) {
      const memory = await this.#insert(whole, mentions)
      await this.#deps.store.insertReplacements(
        this.scope,
        memory.id,
        targets.filter((target) => target.state === 'live').map((target) => target.id),
      )
      await this.mergeInto(
        memory,
        targets.filter((target) => target.state === 'proposed'),
      )
      return 'stored'
    }
    const versionId = await this.addVersion(first, { ...whole, cause })
    await this.#deps.store.update(
      first.owner_id,
      first.id,
      {
        current_version_id: versionId,
        text_hash: this.digest(whole.text),
        mentions,
        priority: whole.priority,
        confidence: whole.confidence,
        sensitive: whole.sensitive,
        topics: whole.topics,
        undo_until: isAutomatic ? undoUntil(this.now) : null,
      },
      this.now,
    )
    await this.index(versionId, whole)
    await this.mergeInto({ id: first.id, versionId }, others)
    return 'stored'
  }

  /** Memories are taken in by a version of another: not recalled any more, reachable in its chain (case R19). */
  async mergeInto(into: { id: string; versionId: string }, memories: readonly MemoryRow[]): Promise<void> {
    for (const memory of memories) {
      await this.#deps.store.update(
        memory.owner_id,
        memory.id,
        { state: 'merged', merged_into_version_id: into.versionId, undo_until: null },
        this.now,
      )
      this.record({ type: 'memory.merged', payload: { memory_id: memory.id, into_memory_id: into.id, into_version_id: into.versionId } })
    }
  }

  /** Writes the next version of a memory with its sources; the caller makes it the current one and then indexes it. */
  async addVersion(
    memory: Pick<MemoryRow, 'id' | 'current_version_id'>,
    version: Pick<Candidate, 'text' | 'sources' | 'eventAt' | 'trust'> & { cause: Exclude<VersionCause, 'extract' | 'import'> },
  ): Promise<string> {
    const { store, ids } = this.#deps
    const versions = await store.versions(this.scope.owner_id, memory.id, this.now)
    const content = await this.#put(version.text)
    const id = ids.next()
    await store.insertVersion({
      ...this.scope,
      id,
      memory_id: memory.id,
      version: (versions[0]?.version ?? 0) + 1,
      content_id: content.id,
      trust: version.trust,
      event_at: version.eventAt,
      cause: version.cause,
      supersedes_version_id: memory.current_version_id,
      created_at: this.now,
    })
    await store.insertSources(this.scope, id, version.sources)
    this.record({
      type: 'memory.versioned',
      payload: {
        memory_id: memory.id,
        version_id: id,
        content_id: content.id,
        supersedes_version_id: memory.current_version_id,
        cause: version.cause,
      },
      content_digests: [contentDigest(content.id, content.digest)],
    })
    return id
  }

  /** Makes a version findable; it is the current one by now. */
  async index(versionId: string, { text, vector }: Pick<Candidate, 'text' | 'vector'>): Promise<void> {
    await this.#deps.index.putTerms({ versionId, terms: tokenize(text) })
    await this.#deps.embeddings.store(versionId, vector)
  }

  /** Tombstones memories and all that they took in: the text of every version goes, and with it all that was derived from it. */
  async remove(memoryIds: readonly string[], cause: 'owner' | 'source_deleted' | 'undo_window_closed'): Promise<void> {
    const { store, index, contents } = this.#deps
    const family = await store.family(this.scope.owner_id, memoryIds)
    await store.lockRows(this.scope.owner_id, family)
    const rows = await store.findAll(this.scope.owner_id, family, this.now)
    const present = rows.filter((row) => row.state !== 'deleted')
    const ids = present.map((row) => row.id)
    await index.drop(this.scope.owner_id, ids)
    await store.tombstone(this.scope.owner_id, ids, this.now)
    for (const id of ids) this.record({ type: 'memory.deleted', payload: { memory_id: id, cause } })
    const texts = { ownerId: this.scope.owner_id, contentIds: await store.contentIds(this.scope.owner_id, ids) }
    await eraseTexts({ store, contents }, { ...texts, cause: `memory.${cause}` })
  }

  async #insert(candidate: Candidate, mentions: number): Promise<{ id: string; versionId: string }> {
    const { store, ids } = this.#deps
    const { level, type, origin, priority, confidence, sensitive, topics } = candidate
    const content = await this.#put(candidate.text)
    const [id, versionId] = [ids.next(), ids.next()]
    const state = level === 'heavy' ? 'proposed' : 'live'
    await store.insertMemory({
      ...this.scope,
      id,
      level,
      state,
      type,
      origin,
      priority,
      confidence,
      sensitive,
      topics,
      current_version_id: versionId,
      text_hash: this.digest(candidate.text),
      mentions,
      undo_until: level === 'heavy' ? null : undoUntil(this.now),
      created_at: this.now,
    })
    await store.insertVersion({
      ...this.scope,
      id: versionId,
      memory_id: id,
      version: 1,
      content_id: content.id,
      trust: candidate.trust,
      event_at: candidate.eventAt,
      cause: 'extract',
      supersedes_version_id: null,
      created_at: this.now,
    })
    await store.insertSources(this.scope, versionId, candidate.sources)
    await this.index(versionId, candidate)
    this.record({
      type: 'memory.proposed',
      payload: {
        memory_id: id,
        version_id: versionId,
        content_id: content.id,
        level,
        state,
        memory_type: type,
        origin,
        canonization_id: this.#cause.canonizationId ?? null,
        source_node_ids: candidate.sources.map((source) => source.node_id),
      },
      content_digests: [contentDigest(content.id, content.digest)],
    })
    return { id, versionId }
  }

  #put(text: string): Promise<{ id: string; digest: Uint8Array }> {
    return this.#deps.contents.put({ owner_id: this.scope.owner_id, media_type: 'text/plain', content: text })
  }

  async #known(text: string): Promise<MemoryRow | 'rejected_before' | null> {
    const hash = this.digest(text)
    if (await this.#deps.store.isSuppressed(this.scope, hash)) return 'rejected_before'
    return this.#deps.store.byHash(this.scope, hash, this.now)
  }

  /** The candidate with what its targets bring: the union of sources and topics, the stricter level, the lower trust. */
  async #whole(targets: readonly MemoryRow[], candidate: Candidate): Promise<Candidate> {
    const rows = await this.#deps.store.sources(
      this.scope.owner_id,
      targets.map((target) => target.current_version_id),
    )
    const sources = new Map<string, SourceRef>()
    for (const { node_id, tree_id, canonization_id } of [...candidate.sources, ...rows]) {
      if (!sources.has(node_id)) sources.set(node_id, { node_id, tree_id, canonization_id })
    }
    const topics = new Set([candidate.topics, ...targets.map((target) => target.topics)].flat())
    return {
      ...candidate,
      level: targets.some((target) => target.level === 'heavy') ? 'heavy' : candidate.level,
      sensitive: candidate.sensitive || targets.some((target) => target.sensitive),
      topics: [...topics],
      priority: Math.max(candidate.priority, ...targets.map((target) => target.priority)),
      sources: [...sources.values()],
      trust: lowerTrust([candidate.trust, ...targets.map((target) => target.trust)]),
    }
  }
}

/**
 * Erases texts of memories, what was made of them, and what models said in the jobs that they came out of; that is the jobs' own working
 * material, and goes whole (decision 13). Inside a unit of work.
 */
export async function eraseTexts(
  { store, contents }: Pick<ChangeDeps, 'store' | 'contents'>,
  { ownerId, contentIds, cause }: { ownerId: string; contentIds: readonly string[]; cause: string },
): Promise<void> {
  const said = await store.jobAnswers(ownerId, contentIds)
  await contents.erase({ ids: [...contentIds, ...said], cause })
}

/** The meet of trusts, workspace at most (K1). */
export function lowerTrust(trusts: readonly ('untrusted' | 'workspace' | 'trusted')[]): MemoryTrust {
  return meetTrust(['workspace', ...trusts]) === 'untrusted' ? 'untrusted' : 'workspace'
}
