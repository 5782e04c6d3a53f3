/** The space a vector lives in; vectors of different spaces are never compared (spec/5). `id` = model, version and dimensions in one slug. */
export type EmbeddingSpace = { id: string; model: string; version: string; dimensions: number }

/** Turns texts into L2-normalised vectors of one space. */
export interface Embedder {
  readonly space: EmbeddingSpace
  /** One vector per text, same order. Rejects with the adapter's typed error; on abort with the signal's reason. */
  embed(texts: readonly string[], options?: { signal?: AbortSignal }): Promise<Float32Array[]>
  /** True where a vector says nothing (no known feature): such a leg stays out of a query (spec/5). */
  isDegenerate(vector: Float32Array): boolean
}
