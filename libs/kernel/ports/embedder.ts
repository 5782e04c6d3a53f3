import type { EmbeddingPurpose } from '#contracts'

/** The space a vector lives in; vectors of different spaces are never compared (spec/5). `id` = model, version and dimensions in one slug. */
export type EmbeddingSpace = { id: string; model: string; version: string; dimensions: number }

/** Who asks for vectors, and what for: each request that leaves is recorded, admitted and charged under it (K3, K6). */
export type EmbeddingCause = {
  purpose: EmbeddingPurpose
  /** Null for the instance itself, which asks for nobody. */
  ownerId: string | null
  characterId: string | null
  /** The run whose bound on cost it counts towards; null outside of runs. */
  runId: string | null
}

/** Turns texts into L2-normalised vectors of one space. */
export interface Embedder {
  readonly space: EmbeddingSpace
  /** One vector per text, same order. Rejects with EmbeddingError, on abort with the signal's reason. Never called inside a unit of work. */
  embed(texts: readonly string[], cause: EmbeddingCause, options?: { signal?: AbortSignal }): Promise<Float32Array[]>
  /** True where a vector says nothing (no known feature): such a leg stays out of a query (spec/5). */
  isDegenerate(vector: Float32Array): boolean
}

/** A request gives up after this. Milliseconds. */
export const EMBEDDING_TIMEOUT_MS = 60_000

/** Texts of one request at most. */
export const EMBEDDING_TEXTS_MAX = 64

/**
 * What became of one request. `failed`: the other side said no, or nothing was sent; `unknown`: anything else, an answer that cannot be
 * used among it, since it may have been charged (K3). `tokens`: as the provider counted, null where it did not.
 */
export type EmbeddingOutcome =
  | { type: 'done'; vectors: Float32Array[]; tokens: number | null }
  | { type: 'failed'; code: string; providerCode: string | null; status: number | null; retryable: boolean }
  | { type: 'unknown'; code: string; retryable: boolean }

/** An endpoint that gives vectors over the network. Held by the effect broker alone, which records each request. */
export interface EmbeddingEndpoint {
  readonly model: string
  /** Sends one request, once, of at most EMBEDDING_TEXTS_MAX texts; vectors are L2-normalised. Rejects for faults of ours alone. */
  request(texts: readonly string[], options: { signal?: AbortSignal }): Promise<EmbeddingOutcome>
  isDegenerate(vector: Float32Array): boolean
}

/**
 * There are no vectors. `outcome` is what stands in the record; `refused` was not sent: by the kill switch or for the budget. `retryable`:
 * nothing was wrong with the request, which may be made anew, as another effect.
 */
export class EmbeddingError extends Error {
  readonly outcome: 'refused' | 'failed' | 'unknown' | 'unfit'
  readonly code: string
  readonly retryable: boolean

  constructor({ outcome, code, retryable }: Pick<EmbeddingError, 'outcome' | 'code' | 'retryable'>) {
    super(`an embedding request brought no vectors: ${outcome}, ${code}`)
    this.name = 'EmbeddingError'
    this.outcome = outcome
    this.code = code
    this.retryable = retryable
  }
}
