import type { EmbeddingCause } from './embedder.ts'

/** A request that leaves, as the ledger keeps it: ids, numbers and a salt that goes with the first erasure (K3, decision 10). */
export type NewEmbeddingRequest = EmbeddingCause & {
  /** The effect's id, ours. */
  id: string
  texts: number
  reservedTokens: number
  /** What it is charged at most, in micro-units; null without a price card. */
  reservedMicros: number | null
  salt: Uint8Array
  /** Names the process that sends it. */
  holder: string
  /** Milliseconds until it has given up for certain, by the database's clock. */
  dueInMs: number
}

/** What a request is judged by before it may leave (K6, K8). */
export type EmbeddingLimits = {
  /** The kill switch of everything, of the owner or of the character is on. */
  killed: boolean
  /** The bound on cost that its run was pinned to, and what the run has spent and reserved so far; null where nothing bounds it. */
  cost: { boundMicros: number; spentMicros: number } | null
}

/** A request without a terminal, whose sender is gone. */
export type LeftEmbeddingRequest = Pick<
  NewEmbeddingRequest,
  'id' | 'ownerId' | 'characterId' | 'runId' | 'reservedTokens' | 'reservedMicros'
>

export type EmbeddingSettlement = {
  state: 'completed' | 'failed' | 'unknown'
  code: string | null
  chargedTokens: number
  chargedMicros: number | null
}

/** The durable ledger of embedding requests. The database refuses a second terminal. */
export interface EmbeddingLedger {
  /** What bounds a request now; read in the unit of work that records its intent. */
  limits(cause: EmbeddingCause): Promise<EmbeddingLimits>
  /** Writes the intent down, inside the unit of work that records it. */
  open(request: NewEmbeddingRequest): Promise<void>
  /** One conditional write: false where it has its terminal already. */
  settle(id: string, settlement: EmbeddingSettlement): Promise<boolean>
  /** Open ones that are past their time, or that another process than `aliveHolder` left where there can be no other. Oldest first. */
  left(options: { aliveHolder: string | null; limit: number }): Promise<LeftEmbeddingRequest[]>
  /** What a run's requests were charged so far, open ones at their reservation, in micro-units. */
  spentBy(runId: string): Promise<number>
}
