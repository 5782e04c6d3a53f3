/** What the main thread and the database worker tell each other. */
import type { BackendSettings } from './backend.ts'

/** The worker's workerData. */
export interface WorkerTask {
  folder: string
  socketPath: string
  settings: BackendSettings
  /** See SharedCounters. */
  counters: SharedArrayBuffer
  /** Milliseconds after which an unused transaction that others wait for is cut. */
  stuckAfterMs: number
}

export type FromWorker =
  | { kind: 'ready' }
  | { kind: 'closed' }
  | { kind: 'transaction_cut'; unusedMs: number }
  | { kind: 'maintenance_failed'; reason: string }
  /** The last word of a worker whose WebAssembly code broke; it ends itself. */
  | { kind: 'trap'; reason: string }

export type ToWorker = { kind: 'close' }
