import { EmbeddingError } from '#kernel/ports/embedder'
import type { Embedder, EmbeddingCause } from '#kernel/ports/embedder'
import type { UnitOfWork } from '#kernel/ports/unit-of-work'
import type { MemoryIndex, StoredSpace, VectorLeg } from './ports.ts'
import { combineVectors } from './query.ts'
import type { QueryText } from './query.ts'

/** Texts embedded in one call when the index is filled. */
const BATCH = 32

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
  #space: StoredSpace | null = null

  /**
   * `report` hears of an embedder that did not answer; the memory goes on without a vector. `mayWait` is false inside a unit of work, where
   * nothing external is awaited (decision 4): such a text gets its vector from the next `embedMissing`.
   */
  constructor(deps: {
    embedder: Embedder
    index: MemoryIndex
    unitOfWork: UnitOfWork
    report: (error: unknown) => void
    mayWait?: () => boolean
  }) {
    this.#embedder = deps.embedder
    this.#index = deps.index
    this.#unitOfWork = deps.unitOfWork
    this.#report = deps.report
    this.#mayWait = deps.mayWait ?? (() => true)
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
   * batch is a transaction, and a kill loses at most one. Rejects where the embedder does not answer, to be tried again later.
   */
  async embedMissing(options: { signal?: AbortSignal } = {}): Promise<number> {
    const space = this.#space
    if (!space) return 0
    let filled = 0
    for (;;) {
      options.signal?.throwIfAborted()
      const missing = await this.#index.missingVectors(space.id, BATCH)
      if (missing.length === 0) break
      for (const entries of byCharacter(missing)) {
        const vectors = await this.#vectors(
          entries.map((entry) => entry.text),
          { purpose: 'index', ownerId: entries[0]?.owner_id ?? null, characterId: entries[0]?.character_id ?? null, runId: null },
        )
        await this.#unitOfWork.run(async () => {
          for (const [index, { version_id: versionId }] of entries.entries()) await this.store(versionId, vectors[index] ?? null)
        })
        filled += entries.length
      }
    }
    while ((await this.#index.dropOtherSpaces(space.id, 1_000)) > 0) options.signal?.throwIfAborted()
    return filled
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

/** Each character's texts apart, since a request is its owner's and its character's. */
function byCharacter<Entry extends { owner_id: string; character_id: string }>(entries: readonly Entry[]): Entry[][] {
  return [...Map.groupBy(entries, (entry) => `${entry.owner_id} ${entry.character_id}`).values()]
}
