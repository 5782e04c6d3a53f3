import type { Clock } from '#kernel/ports/clock'
import { EmbeddingError } from '#kernel/ports/embedder'
import type { Embedder, EmbeddingCause } from '#kernel/ports/embedder'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { MemoryIndex, StoredSpace, VectorLeg } from './ports.ts'
import { Pauses } from './pauses.ts'
import { combineVectors } from './query.ts'
import type { QueryText } from './query.ts'

/** Texts embedded in one call when the index is filled. */
const BATCH = 32
/** Texts refused one after the other, with none between that was not: then it is the endpoint that is at fault, and not they. */
const REFUSED_IN_A_ROW = 8

const probing: EmbeddingCause = { purpose: 'probe', ownerId: null, characterId: null, runId: null }

const PROBE = 'The kettle is on the stove. 水壶在炉子上。'

/** The configured embedder cannot be used with what is stored; the message says what to do (case R17). */
export class EmbedderRefusedError extends Error {
  constructor(reason: string, cause?: unknown) {
    super(
      `the embedder cannot be used: ${reason}. Set LINGTAI_EMBEDDING_MODEL back to the model that the stored vectors came from, ` +
        'or make the new one reachable: memories are then embedded again in the background',
      cause === undefined ? undefined : { cause },
    )
    this.name = 'EmbedderRefusedError'
  }
}

/** A query's vector, or why there is none. */
export type QueryVector =
  { leg: Extract<VectorLeg, 'used'>; space: StoredSpace; values: Float32Array } | { leg: Exclude<VectorLeg, 'used'> }

/**
 * The embedder together with its space in the index. Nothing here is awaited inside a unit of work: texts are embedded before, and what
 * could not be embedded is filled in later, while search goes on by text alone.
 */
export class Embeddings {
  readonly #embedder: Embedder
  readonly #index: MemoryIndex
  readonly #unitOfWork: UnitOfWork
  readonly #report: (error: unknown) => void
  readonly #mayWait: () => boolean
  /** Versions whose text was refused, and characters for whom nothing may be asked. */
  readonly #pauses: { versions: Pauses; characters: Pauses }
  #space: StoredSpace | null = null

  /**
   * `report` hears of an embedder that did not answer; the memory goes on without a vector. `mayWait` is false inside a unit of work, where
   * nothing external is awaited (decision 4): such a text gets its vector from the next `embedMissing`.
   */
  constructor(deps: {
    embedder: Embedder
    index: MemoryIndex
    unitOfWork: UnitOfWork
    clock: Pick<Clock, 'now'>
    report: (error: unknown) => void
    mayWait?: () => boolean
  }) {
    this.#embedder = deps.embedder
    this.#index = deps.index
    this.#unitOfWork = deps.unitOfWork
    this.#report = deps.report
    this.#mayWait = deps.mayWait ?? (() => true)
    this.#pauses = { versions: new Pauses(deps.clock), characters: new Pauses(deps.clock) }
  }

  /** The slug of the configured space. */
  get slug(): string {
    return this.#embedder.space.id
  }

  get model(): string {
    return this.#embedder.space.model
  }

  /** Null before `start`. */
  get space(): StoredSpace | null {
    return this.#space
  }

  /**
   * To be awaited before anything is served: asks the embedder for one vector and finds or makes its space. Throws EmbedderRefusedError or
   * EmbeddingSpaceMismatchError. An embedder that does not answer is forgiven only while no other space holds vectors.
   */
  async start(): Promise<void> {
    const { id: slug, model, version, dimensions } = this.#embedder.space
    const others = (await this.#index.usedSpaces()).filter((space) => space.slug !== slug)
    try {
      const [probe] = await this.#embedder.embed([PROBE], probing)
      if (probe?.length !== dimensions)
        throw new EmbedderRefusedError(`${slug} gave ${probe?.length ?? 'no'} dimensions instead of ${dimensions}`)
    } catch (error) {
      if (error instanceof EmbedderRefusedError) throw error
      // Nothing is sent while the instance is stopped: it has to start all the same, to be looked at and let go on.
      const isStopped = error instanceof EmbeddingError && error.outcome === 'refused'
      const stored = others.map((space) => space.slug).join(', ')
      if (others.length > 0 && !isStopped)
        throw new EmbedderRefusedError(`${slug} does not answer, and the stored vectors are of ${stored}`, error)
      this.#report(error)
    }
    this.#space = await this.#index.ensureSpace({ slug, model, version, dimensions })
  }

  /** A vector per text; null for all where the embedder does not answer. A text that says nothing has the zero vector. */
  async embed(texts: readonly string[], cause: EmbeddingCause): Promise<(Float32Array | null)[]> {
    if (texts.length === 0) return []
    if (!this.#mayWait()) return texts.map(() => null)
    try {
      return await this.#vectors(texts, cause)
    } catch (error) {
      this.#report(error)
      return texts.map(() => null)
    }
  }

  /** One vector for a query of several texts. */
  async query(texts: readonly QueryText[], cause: EmbeddingCause): Promise<QueryVector> {
    if (!this.#space || texts.length === 0) return { leg: texts.length === 0 ? 'degenerate' : 'unavailable' }
    try {
      const vectors = await this.#embedder.embed(
        texts.map((query) => query.text),
        cause,
      )
      const telling = vectors.flatMap((vector, index) =>
        this.#embedder.isDegenerate(vector) ? [] : [{ vector, weight: texts[index]?.weight ?? 1 }],
      )
      const values = combineVectors(
        telling.map(({ vector }) => vector),
        telling.map(({ weight }) => weight),
      )
      return values ? { leg: 'used', space: this.#space, values } : { leg: 'degenerate' }
    } catch (error) {
      this.#report(error)
      return { leg: 'unavailable' }
    }
  }

  /** Puts a vector into the index, inside a unit of work; null stays out and is filled in later. */
  async store(versionId: string, vector: Float32Array | null): Promise<void> {
    if (this.#space && vector) await this.#index.putVector({ versionId, space: this.#space, vector })
  }

  /**
   * Embeds what has no vector of the space yet, then removes the vectors of former spaces; answers how many were embedded. Resumable: each
   * batch is a transaction, and a kill loses at most one. A text that is refused, and a character for whom nothing may be asked, rests for a
   * growing while and keeps nobody else waiting. Rejects where the embedder does not answer, to be tried again later.
   */
  async embedMissing(options: { signal?: AbortSignal } = {}): Promise<number> {
    const space = this.#space
    if (!space) return 0
    const round = { filled: 0, refusedInARow: 0 }
    for (;;) {
      options.signal?.throwIfAborted()
      const missing = await this.#index.missingVectors(space.id, {
        limit: BATCH,
        exceptVersions: this.#pauses.versions.resting(),
        exceptCharacters: this.#pauses.characters.resting(),
      })
      if (missing.length === 0) break
      for (const entries of byCharacter(missing)) await this.#fill(entries, round, options.signal)
    }
    while ((await this.#index.dropOtherSpaces(space.id, 1_000)) > 0) options.signal?.throwIfAborted()
    return round.filled
  }

  /** Vectors for texts of one character. Where one of them may be what is refused, they are asked for by halves. */
  async #fill(entries: readonly Missing[], round: { filled: number; refusedInARow: number }, signal?: AbortSignal): Promise<void> {
    const [first] = entries
    if (!first) return
    signal?.throwIfAborted()
    const { owner_id: ownerId, character_id: characterId } = first
    let vectors: Float32Array[]
    try {
      vectors = await this.#vectors(
        entries.map((entry) => entry.text),
        { purpose: 'index', ownerId, characterId, runId: null },
      )
    } catch (error) {
      const refused = whatIsRefused(error)
      if (refused === 'nothing') throw error
      if (refused === 'texts' && entries.length > 1) {
        const middle = Math.ceil(entries.length / 2)
        await this.#fill(entries.slice(0, middle), round, signal)
        return this.#fill(entries.slice(middle), round, signal)
      }
      if (refused === 'character') this.#pauses.characters.refused(characterId)
      else {
        this.#pauses.versions.refused(first.version_id)
        if (++round.refusedInARow >= REFUSED_IN_A_ROW) throw error
      }
      return this.#report(error)
    }
    await this.#unitOfWork.run(async () => {
      for (const [index, { version_id: versionId }] of entries.entries()) await this.store(versionId, vectors[index] ?? null)
    })
    for (const { version_id: versionId } of entries) this.#pauses.versions.served(versionId)
    this.#pauses.characters.served(characterId)
    round.refusedInARow = 0
    round.filled += entries.length
  }

  async #vectors(texts: readonly string[], cause: EmbeddingCause): Promise<Float32Array[]> {
    const vectors = await this.#embedder.embed(texts, cause)
    const { dimensions, id } = this.#embedder.space
    if (vectors.length !== texts.length) throw new RangeError(`${id} gave ${vectors.length} vectors for ${texts.length} texts`)
    return vectors.map((vector) => {
      if (vector.length !== dimensions) throw new RangeError(`${id} gave ${vector.length} dimensions instead of ${dimensions}`)
      // Kept as zeros: known to be empty, so that it is not asked for again; cosine with it is no number and never enters a leg.
      return this.#embedder.isDegenerate(vector) ? new Float32Array(dimensions) : vector
    })
  }
}

type Missing = Awaited<ReturnType<MemoryIndex['missingVectors']>>[number]

/** Said of whoever asks, whatever the texts are. */
const ofTheEndpoint: ReadonlySet<string> = new Set([
  'unauthorized',
  'forbidden',
  'model_not_found',
  'quota_exhausted',
  'redirect_refused',
  'connect_failed',
  'connection_refused',
  'name_not_resolved',
  'tls_failed',
])

/** What a failure speaks of: the texts (or one of them), the character on whose behalf was asked, or nothing but the endpoint. */
function whatIsRefused(error: unknown): 'texts' | 'character' | 'nothing' {
  if (!(error instanceof EmbeddingError) || error.retryable || error.outcome === 'unfit') return 'nothing'
  if (error.outcome === 'refused') return error.code === 'max_tokens' ? 'texts' : 'character'
  return ofTheEndpoint.has(error.code) ? 'nothing' : 'texts'
}

/** Each character's texts apart, since a request is its owner's and its character's. */
function byCharacter<Entry extends { owner_id: string; character_id: string }>(entries: readonly Entry[]): Entry[][] {
  return [...Map.groupBy(entries, (entry) => `${entry.owner_id} ${entry.character_id}`).values()]
}
