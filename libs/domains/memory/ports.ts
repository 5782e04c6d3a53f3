import type { MemoryLevel, MemoryOrigin, MemoryState, MemoryType, ModelPurpose, SensitiveTopic, Trust } from '#contracts'
import type { ContentLayout } from '#kernel/ports/content-store'
import type { JsonObject } from '#kernel/ports/model-gateway'
import type { TokenCounts } from './tokenize.ts'

/** Where memories live and are compared: nothing crosses it. */
export type Scope = { owner_id: string; character_id: string; realm_id: string }

export type VersionCause = 'extract' | 'import' | 'correct' | 'update' | 'merge' | 'confirm'
export type ConsentDecision = 'confirm' | 'reject' | 'undo' | 'correct'
export type MemoryFlag = 'source_deleted' | 'canon_withdrawn'

/** Trust of a memory: the meet of its sources, workspace at most (K1). */
export type MemoryTrust = Exclude<Trust, 'trusted'>

/** A memory with its current version. `text` is null once deleted, erased or past its time. */
export type MemoryRow = Scope & {
  id: string
  level: MemoryLevel
  state: MemoryState
  type: MemoryType
  origin: MemoryOrigin
  priority: number
  confidence: number
  sensitive: boolean
  topics: SensitiveTopic[]
  current_version_id: string
  mentions: number
  hits: number
  last_hit_at: Date | null
  undo_until: Date | null
  flagged: MemoryFlag | null
  created_at: Date
  realm_kind: string
  realm_name: string
  version: number
  version_created_at: Date
  content_id: string
  trust: MemoryTrust
  event_at: Date
  cause: VersionCause
  supersedes_version_id: string | null
  text: string | null
}

export type NewMemory = Scope &
  Pick<
    MemoryRow,
    'id' | 'level' | 'state' | 'type' | 'origin' | 'priority' | 'confidence' | 'sensitive' | 'topics' | 'current_version_id' | 'undo_until'
  > & {
    text_hash: Uint8Array
    mentions: number
    created_at: Date
  }

export type NewVersion = Scope & {
  id: string
  memory_id: string
  version: number
  content_id: string
  trust: MemoryTrust
  event_at: Date
  cause: VersionCause
  supersedes_version_id: string | null
  created_at: Date
}

/** What may change of a memory; an absent field stays as it is. */
export type MemoryPatch = Partial<
  Pick<
    MemoryRow,
    'level' | 'state' | 'priority' | 'confidence' | 'sensitive' | 'topics' | 'current_version_id' | 'mentions' | 'undo_until' | 'flagged'
  > & {
    text_hash: Uint8Array | null
    merged_into_version_id: string | null
  }
>

export type VersionRow = {
  id: string
  memory_id: string
  version: number
  content_id: string
  trust: MemoryTrust
  event_at: Date
  cause: VersionCause
  supersedes_version_id: string | null
  created_at: Date
  live: boolean
  text: string | null
}

export type SourceRef = { tree_id: string; node_id: string; canonization_id: string }

/** A message that a version rests on, with its content. */
export type SourceRow = SourceRef & {
  version_id: string
  tree_title: string
  role: string
  body: string | null
  layout: ContentLayout | null
}

export type MemoryFilter = {
  characterId?: string
  realmId?: string
  level?: MemoryLevel
  state?: MemoryState
  type?: MemoryType
  /** Only memories older than this id. */
  beforeId?: string
  limit: number
}

/** A memory whose source was touched, and whether any live source is left. */
export type AffectedMemory = { memory_id: string; sourced: boolean }

/**
 * Memories, versions, sources, consent. Every read is scoped to an owner; writes stand inside the current unit of work, under the lock of
 * their scope. Times that decide what is visible are passed in (`now`), never read from the database.
 */
export interface MemoryStore {
  /** The scope of a character of the owner in a realm of the owner; null = the character's own realm. Null where one is not there. */
  resolveScope(ownerId: string, characterId: string, realmId: string | null): Promise<Scope | null>
  list(ownerId: string, filter: MemoryFilter, now: Date): Promise<MemoryRow[]>
  find(ownerId: string, memoryId: string, now: Date): Promise<MemoryRow | null>
  findAll(ownerId: string, memoryIds: readonly string[], now: Date): Promise<MemoryRow[]>
  /** Newest first. */
  versions(ownerId: string, memoryId: string, now: Date): Promise<VersionRow[]>
  sources(ownerId: string, versionIds: readonly string[]): Promise<SourceRow[]>
  recalledIn(ownerId: string, memoryId: string, limit: number): Promise<{ run_id: string; tree_id: string | null; at: Date }[]>

  /** Locks the scope until the unit of work ends, making it on first use with `freshKey`, and answers the key of its digests. */
  lockScope(scope: Scope, freshKey: Uint8Array): Promise<Uint8Array>
  /** Locks rows in id order, after their scope. */
  lockRows(ownerId: string, memoryIds: readonly string[]): Promise<void>

  insertMemory(memory: NewMemory): Promise<void>
  insertVersion(version: NewVersion): Promise<void>
  /** Sources that a version has already are left as they are. */
  insertSources(scope: Scope, versionId: string, sources: readonly SourceRef[]): Promise<void>
  update(ownerId: string, memoryId: string, patch: MemoryPatch, at: Date): Promise<void>
  /** Leaves of present memories the proof that they were; their texts are the caller's to erase in the same unit of work. */
  tombstone(ownerId: string, memoryIds: readonly string[], at: Date): Promise<void>

  insertConfirmation(
    row: Scope & { id: string; memory_id: string; version_id: string; decision: ConsentDecision; decided_at: Date },
  ): Promise<void>
  /** Whether the owner said yes to that very version. */
  isConfirmed(ownerId: string, versionId: string): Promise<boolean>
  suppress(row: Scope & { text_hash: Uint8Array; memory_id: string; created_at: Date }): Promise<void>
  isSuppressed(scope: Scope, hash: Uint8Array): Promise<boolean>
  /** The proposed or live memory of the scope that says the same. */
  byHash(scope: Scope, hash: Uint8Array, now: Date): Promise<MemoryRow | null>
  hashOf(ownerId: string, memoryId: string): Promise<Uint8Array | null>

  insertReplacements(scope: Scope, memoryId: string, targetIds: readonly string[]): Promise<void>
  replacedBy(ownerId: string, memoryId: string): Promise<string[]>
  /** Memories that a version took in. */
  mergedInto(ownerId: string, versionId: string): Promise<string[]>
  /** The memories themselves, and all that any version of them took in, through any number of merges. */
  family(ownerId: string, memoryIds: readonly string[]): Promise<string[]>
  contentIds(ownerId: string, memoryIds: readonly string[]): Promise<string[]>
  /** What models said in jobs about the messages that the versions with these contents rest on: their texts came out of it. */
  jobAnswers(ownerId: string, contentIds: readonly string[]): Promise<string[]>

  /** The text of these versions goes at that time. */
  expire(ownerId: string, versionIds: readonly string[], eraseAt: Date): Promise<void>
  /** Versions whose text is to go, but for those of the memories that are named. */
  due(
    now: Date,
    limit: number,
    without: readonly string[],
  ): Promise<{ version_id: string; content_id: string; memory_id: string; owner_id: string; character_id: string; realm_id: string }[]>
  settleExpiries(versionIds: readonly string[]): Promise<void>

  /** Memories whose current version cites one of these nodes; sourced = another source of it is still there. */
  citing(ownerId: string, nodeIds: readonly string[]): Promise<AffectedMemory[]>
  /** Contents of superseded versions that rest on these nodes alone. */
  pastContentsOf(ownerId: string, nodeIds: readonly string[]): Promise<string[]>
  /** Memories whose current version cites a canonization; sourced = another live canonization vouches for it too. */
  citingCanonization(ownerId: string, canonizationId: string): Promise<AffectedMemory[]>
  /** All of a character that are not deleted yet, and what else is kept for their sake. */
  ofCharacter(ownerId: string, characterId: string): Promise<string[]>
  forgetKeys(ownerId: string, characterId: string): Promise<void>
}

// ---------------------------------------------------------------- derived indexes

/** A space as stored: `id` is the database's own small number. */
export type StoredSpace = { id: number; slug: string; model: string; version: string; dimensions: number }

/** The two derived indexes of memories (decisions 31, 32). The database takes entries away by itself when their text goes. */
export interface MemoryIndex {
  /** Does nothing for a version that is not the current one of a proposed or live memory. */
  putTerms(entry: { versionId: string; terms: TokenCounts }): Promise<void>
  /** As `putTerms`. A vector that is there already stays. */
  putVector(entry: { versionId: string; space: StoredSpace; vector: Float32Array }): Promise<void>
  /** Makes memories unfindable in one go. The index would follow them one by one, and count each of their tokens anew each time. */
  drop(ownerId: string, memoryIds: readonly string[]): Promise<void>

  spaces(): Promise<StoredSpace[]>
  /** Spaces that hold vectors. */
  usedSpaces(): Promise<StoredSpace[]>
  /** The space with this slug, made with its index on first use. Throws EmbeddingSpaceMismatchError. */
  ensureSpace(space: { slug: string; model: string; version: string; dimensions: number }): Promise<StoredSpace>
  /** Searchable versions without a vector of the space, oldest first; none of whom the kill switch stops, and none that is excepted. */
  missingVectors(
    spaceId: number,
    options: { limit: number; exceptVersions: readonly string[]; exceptCharacters: readonly string[] },
  ): Promise<{ version_id: string; owner_id: string; character_id: string; text: string }[]>
  /** Removes up to `limit` vectors of other spaces; answers how many. */
  dropOtherSpaces(spaceId: number, limit: number): Promise<number>
}

/** Known under the same name with other dimensions, model or version: comparing them would be silent nonsense (decision 31). */
export class EmbeddingSpaceMismatchError extends Error {
  readonly stored: StoredSpace
  constructor(stored: StoredSpace, wanted: { model: string; version: string; dimensions: number }) {
    super(
      `the embedding space ${stored.slug} holds vectors of ${stored.model} ${stored.version} with ${stored.dimensions} dimensions, ` +
        `and the configured embedder gives ${wanted.model} ${wanted.version} with ${wanted.dimensions}`,
    )
    this.name = 'EmbeddingSpaceMismatchError'
    this.stored = stored
  }
}

// ---------------------------------------------------------------- recall

export type RecallQuery = Scope & {
  tokens: readonly string[]
  weights: readonly number[]
  /** Null = the vector leg stays out. */
  vector: { space: StoredSpace; values: Float32Array } | null
  /** An empty list finds nothing (case R10). */
  levels: readonly MemoryLevel[]
  /** Proposals too: for dedupe alone, never for a prompt. */
  includeProposed: boolean
  /** Fiction also recalls what is real; off for dedupe, which compares within one realm. */
  includeReal: boolean
  now: Date
  rankConstant: number
  textWeight: number
  vectorWeight: number
  depth: number
  vectorFloor: number
  exactUpTo: number
  halfLifeDays: number
  limit: number
}

export type RecallCandidate = {
  memory_id: string
  version_id: string
  content_id: string
  realm_id: string
  text: string
  digest: Uint8Array
  level: MemoryLevel
  type: MemoryType
  state: MemoryState
  sensitive: boolean
  trust: MemoryTrust
  version: number
  event_at: Date
  mentions: number
  text_rank: number | null
  text_score: number | null
  vector_rank: number | null
  vector_score: number | null
  vitality: number
  score: number
}

export type RecallResult = {
  candidates: RecallCandidate[]
  /** True where every vector was equally near: the leg said nothing and was left out (case R16). */
  vectorDegenerate: boolean
}

export interface MemoryRecaller {
  /** Both legs, filtered inside, fused and softened, in one round trip; best first. */
  recall(query: RecallQuery): Promise<RecallResult>
}

export type VectorLeg = 'used' | 'degenerate' | 'unavailable'

export type NewRecallAudit = Scope & {
  id: string
  run_id: string | null
  query_salt: Uint8Array | null
  query_digest: Uint8Array
  query_content_ids: readonly string[]
  embedder: string
  vector_leg: VectorLeg
  rank_constant: number
  text_weight: number
  vector_weight: number
  at: Date
  hits: readonly NewRecallHit[]
}

export type NewRecallHit = {
  realm_id: string
  memory_id: string
  version_id: string
  text_rank: number | null
  text_score: number | null
  vector_rank: number | null
  vector_score: number | null
  vitality: number
  score: number
  rank: number | null
  cut_by: 'items' | 'characters' | 'near_duplicate' | null
}

export type RecallAuditRow = {
  id: string
  run_id: string | null
  character_id: string
  query_digest: Uint8Array
  embedder: string
  vector_leg: VectorLeg
  rank_constant: number
  text_weight: number
  vector_weight: number
  at: Date
}
export type RecallHitRow = NewRecallHit & { audit_id: string; ordinal: number; text: string | null }

export interface RecallAudits {
  insert(audit: NewRecallAudit): Promise<void>
  /** Counts a hit of each memory once per run; answers those that this call strengthened. */
  reinforce(hit: { ownerId: string; runId: string; memoryIds: readonly string[]; at: Date }): Promise<string[]>
  list(
    ownerId: string,
    filter: { runId?: string; memoryId?: string; characterId?: string; beforeId?: string; limit: number },
  ): Promise<RecallAuditRow[]>
  find(ownerId: string, auditId: string): Promise<RecallAuditRow | null>
  hits(ownerId: string, auditIds: readonly string[], now: Date): Promise<RecallHitRow[]>
}

// ---------------------------------------------------------------- extraction

/** A live canonization with what extraction needs to know of it. */
export type CanonicalRange = Scope & {
  canonization_id: string
  tree_id: string
  zone: string
  character_name: string
  user_name: string | null
}

/** A message of a canonical range, as stored. Body null = deleted or erased. */
export type CanonicalMessage = {
  node_id: string
  tree_id: string
  role: 'user' | 'character'
  speaker_name: string | null
  trust: Trust
  zone: string | null
  at: Date
  content_id: string
  run_id: string | null
  body: string | null
  layout: ContentLayout | null
}

/** How far extraction of a canonization has come: everything before `offset` in node `node_id` is done. */
export type ExtractionMark = { node_id: string; offset: number }
export type ExtractionRow = {
  outcome: 'running' | 'finished' | 'given_up'
  mark: ExtractionMark | null
  code: string | null
  tries: number
  proposals: number
  stored: number
  dropped: number
}

export interface ExtractionStore {
  /** Null where it is unknown, withdrawn, or its tree or character is gone: there is nothing live to extract from (case R12). */
  range(canonizationId: string): Promise<CanonicalRange | null>
  /** As `range`, and holds off its withdrawal until the unit of work ends. */
  lockRange(canonizationId: string): Promise<CanonicalRange | null>
  /** The owner and character of any canonization, live or not. */
  place(canonizationId: string): Promise<{ owner_id: string; character_id: string } | null>
  /** The kill switch reaches the place. */
  isStopped(place: { owner_id: string; character_id: string }): Promise<boolean>
  /** Complete messages of people in the range, oldest first; no side branch, no partial (cases R3, R20). */
  messages(canonizationId: string): Promise<CanonicalMessage[]>
  /** Texts of memories that were given to these runs: what the model was shown is not extracted again. */
  shownTo(ownerId: string, runIds: readonly string[]): Promise<string[]>
  read(canonizationId: string): Promise<ExtractionRow | null>
  /** As `read`, locked until the unit of work ends; makes the row on first use. */
  lock(canonizationId: string, place: { owner_id: string; character_id: string }, now: Date): Promise<ExtractionRow>
  save(canonizationId: string, row: ExtractionRow, now: Date): Promise<void>
}

/**
 * One question to a model, as plain parts: the caller makes the request of it, runs it as a maintenance run with a recorded context
 * (K3, M10), and answers the text.
 */
export type MemoryQuestion = {
  purpose: Extract<ModelPurpose, 'extraction' | 'dedupe'>
  ownerId: string
  characterId: string
  treeId: string
  canonizationId: string
  /** What is said to the model, in order. */
  messages: readonly { role: 'system' | 'user' | 'assistant'; content: string }[]
  /** Name and JSON schema of the answer. */
  responseFormat: { name: string; schema: JsonObject }
  /** Contents that the messages were made from: erasing one of them erases what is recorded (decision 13). */
  derivedFrom: readonly string[]
  /** The meet of what is in it. */
  trust: Trust
  /** The process stops: nobody waits for the answer any more. */
  signal?: AbortSignal
}

/** What a model said, and the content that it is stored as: what is made of it goes with it. */
export type ModelAnswer = { runId: string; contentId: string; text: string }

export interface MemoryModel {
  /** Rejects where the model could not be reached, the run failed or was left: the job is tried again later. */
  ask(question: MemoryQuestion): Promise<ModelAnswer>
}
