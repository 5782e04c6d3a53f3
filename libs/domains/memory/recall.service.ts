import type { MemoryLevel, MemoryType, RecallAuditView } from '#contracts'
import type { Clock, Ids } from '#kernel/ports/clock'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import { saltedDigest } from '#kernel/record/chain'
import type { Embeddings } from './embeddings.ts'
import { auditViews, readCursor } from './memory-views.ts'
import type { MemoryRecaller, MemoryTrust, RecallAudits, RecallCandidate, Scope } from './ports.ts'
import { queryTokens } from './query.ts'
import type { QueryText } from './query.ts'
import { recallProfile } from './recall-profile.ts'
import type { RecallProfile } from './recall-profile.ts'
import { select } from './selection.ts'
import type { RecallLimits, Selected } from './selection.ts'

/** What a prompt may hold of memories unless the caller says otherwise. */
export const RECALL_LIMITS: RecallLimits = { items: 8, characters: 2_400 }

/** What is recalled into prompts. Traces are activated like lore instead (spec/5 "Levels"). */
export const RECALLED_LEVELS: readonly MemoryLevel[] = ['explicit', 'heavy']

export type RecallRequest = Scope & {
  queries: readonly QueryText[]
  /** Null for a person's own search: it is audited and strengthens nothing. */
  runId: string | null
  limits?: RecallLimits
  /** An empty list finds nothing (case R10). */
  levels?: readonly MemoryLevel[]
  /** Contents that the queries were made of: erasing one of them takes the salt of the query's digest. */
  queryContentIds?: readonly string[]
}

/** A memory to be put before a model. `text` has its secrets masked; where that changed it, `masked` says so and it is not the stored bytes. */
export type RecalledItem = {
  memoryId: string
  versionId: string
  contentId: string
  /** Lower-case hex of the content's salted digest. */
  contentDigest: string
  realmId: string
  text: string
  masked: boolean
  level: MemoryLevel
  type: MemoryType
  sensitive: boolean
  trust: MemoryTrust
  version: number
  eventAt: Date
  score: number
}

export type RecallDeps = {
  recaller: MemoryRecaller
  audits: RecallAudits
  embeddings: Embeddings
  unitOfWork: UnitOfWork
  clock: Clock
  ids: Ids
  /** Replaces the measured profile of the embedder. */
  profile?: Partial<RecallProfile>
}

/** Finds what matters now among the memories that may be known here, and writes down how it came about (spec/5 "Recall"). */
export class RecallService {
  readonly #deps: RecallDeps

  constructor(deps: RecallDeps) {
    this.#deps = deps
  }

  /** Best first, within the limits. The scope is the owner's own: the database refuses an audit of any other. */
  async recall(request: RecallRequest): Promise<{ items: RecalledItem[]; auditId: string }> {
    const { recaller, audits, embeddings, unitOfWork, clock, ids } = this.#deps
    const { owner_id, character_id, realm_id, runId } = request
    const profile = { ...recallProfile(embeddings.model), ...this.#deps.profile }
    const now = clock.now()
    const queries = request.queries.filter((query) => query.text.trim() !== '')
    const vector = await embeddings.query(queries, { purpose: 'recall', ownerId: owner_id, characterId: character_id, runId })
    const { candidates, vectorDegenerate } = await recaller.recall({
      owner_id,
      character_id,
      realm_id,
      ...queryTokens(queries),
      vector: vector.leg === 'used' ? vector : null,
      levels: request.levels ?? RECALLED_LEVELS,
      includeProposed: false,
      includeReal: true,
      now,
      ...profile,
      limit: profile.depth,
    })
    const chosen = select(candidates, request.limits ?? RECALL_LIMITS)
    const auditId = ids.next()
    const salt = ids.bytes(32)
    const audit = {
      id: auditId,
      owner_id,
      character_id,
      realm_id,
      run_id: runId,
      query_salt: runId === null ? null : salt,
      query_digest: saltedDigest(salt, JSON.stringify(queries.map((query) => query.text))),
      query_content_ids: request.queryContentIds ?? [],
      embedder: embeddings.slug,
      vector_leg: vectorDegenerate ? ('degenerate' as const) : vector.leg,
      rank_constant: profile.rankConstant,
      text_weight: profile.textWeight,
      vector_weight: profile.vectorWeight,
      at: now,
      hits: chosen.map(hitOf),
    }
    const given = chosen.filter((item) => item.rank !== null).map((item) => item.memory_id)
    if (runId === null || given.length === 0) await audits.insert(audit)
    else {
      await unitOfWork.run(() =>
        Promise.all([audits.insert(audit), audits.reinforce({ ownerId: owner_id, runId, memoryIds: given, at: now })]),
      )
    }
    return { items: chosen.filter((item) => item.rank !== null).map(itemOf), auditId }
  }

  /** Recalls of an owner, newest first. */
  async list(
    ownerId: string,
    query: { run_id?: string; memory_id?: string; character_id?: string; cursor?: string; limit: number },
  ): Promise<{ items: RecallAuditView[]; next_cursor: string | null }> {
    const rows = await this.#deps.audits.list(ownerId, {
      runId: query.run_id,
      memoryId: query.memory_id,
      characterId: query.character_id,
      beforeId: readCursor(query.cursor),
      limit: query.limit + 1,
    })
    const page = rows.slice(0, query.limit)
    return {
      items: await auditViews(this.#deps.audits, ownerId, page, this.#deps.clock.now()),
      next_cursor: rows.length > query.limit ? (page.at(-1)?.id ?? null) : null,
    }
  }

  /** One recall, as the page shows it. */
  async audit(ownerId: string, auditId: string): Promise<RecallAuditView | null> {
    const row = await this.#deps.audits.find(ownerId, auditId)
    const [view] = row ? await auditViews(this.#deps.audits, ownerId, [row], this.#deps.clock.now()) : []
    return view ?? null
  }
}

function hitOf(item: Selected<RecallCandidate>) {
  return {
    realm_id: item.realm_id,
    memory_id: item.memory_id,
    version_id: item.version_id,
    text_rank: item.text_rank,
    text_score: item.text_score,
    vector_rank: item.vector_rank,
    vector_score: item.vector_score,
    vitality: item.vitality,
    score: item.score,
    rank: item.rank,
    cut_by: item.cutBy,
  }
}

function itemOf(item: Selected<RecallCandidate>): RecalledItem {
  return {
    memoryId: item.memory_id,
    versionId: item.version_id,
    contentId: item.content_id,
    contentDigest: Buffer.from(item.digest).toString('hex'),
    realmId: item.realm_id,
    text: item.shown,
    masked: item.masked,
    level: item.level,
    type: item.type,
    sensitive: item.sensitive,
    trust: item.trust,
    version: item.version,
    eventAt: item.event_at,
    score: item.score,
  }
}
