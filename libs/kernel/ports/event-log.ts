import type { EventRecord, EventType, NewEvent } from '#contracts'
import type { ChainedEvent, StreamHead } from '../record/chain.ts'

/** An event as it was read back: the canonical bytes are the truth, `record` is their parse. */
export type StoredEvent = { position: number; record: EventRecord; canonical: string; prev_hash: Uint8Array; hash: Uint8Array }

/** Deltas of a sprout that go with an append (decision 12). */
export type SegmentRow = { run_id: string; ordinal: number; part: number; kind: 'text' | 'reasoning'; body: string; salt: Uint8Array }

/** Events for the end of one stream. They may still wait for what the database answers: its head is asked for meanwhile. */
export type StreamAppend = { stream: string; ownerId: string | null; events: readonly NewEvent[] | Promise<readonly NewEvent[]> }

/** What one run appends under its fence. */
export type FencedAppend = { runId: string; fence: number; events: readonly ChainedEvent[]; segments: readonly SegmentRow[] }

/**
 * Where a reader of the global order stands: everything up to `position` was delivered. Plain data, so that a reader may keep it.
 * `horizon` is what it waits for: every position up to `horizon.position` was taken before the transaction `xid` of the cluster's `epoch`
 * began, so that none of them can still come once all transactions before `xid` have ended (decision 19).
 */
export type GlobalCursor = { position: number; horizon: { position: number; epoch: number; xid: string; since: string } | null }

export const GLOBAL_START: GlobalCursor = { position: 0, horizon: null }

/** `heldMs`: how long a transaction has been holding this reader back; 0 where none does. */
export type GlobalPage = { events: StoredEvent[]; next: GlobalCursor; heldMs: number }

/** The append-only log of everything (一炁). Both tiers pass one contract suite. */
export interface EventLog {
  /**
   * Appends to streams, each named once, inside the current unit of work, with their head rows locked. For every stream but a running
   * run's (decision 16). Creates a stream when it is new. Throws StreamQuarantinedError.
   */
  append(...appends: readonly StreamAppend[]): Promise<ChainedEvent[]>
  /** Writes chained events inside the current unit of work, where the caller holds each stream's head or its run's fence. Throws StaleHeadError. */
  write(events: readonly ChainedEvent[]): Promise<void>
  /**
   * Appends of many runs in one statement of its own: rows of a run whose (run, fence) is no longer the running one, or that is killed,
   * are left out and its id is missing from the answer (decision 17).
   */
  appendFenced(batch: readonly FencedAppend[]): Promise<Set<string>>
  head(stream: string): Promise<(StreamHead & { quarantined: boolean }) | null>
  /** Events of a stream after a sequence number, in order. */
  read(stream: string, options: { after?: number; limit?: number; types?: readonly EventType[] }): Promise<StoredEvent[]>
  /**
   * Events of all streams in the order of their positions, each once. One that commits late, after others with higher positions, is never
   * passed over: the reader waits before the gap until no transaction is left that could fill it (case Q4). Go on with `next`, also after
   * an empty page. A restore raises the epoch, and what was written before it is settled.
   */
  readGlobal(options: { after: GlobalCursor; limit?: number }): Promise<GlobalPage>
}

/** The stream's chain is broken and takes nothing until a person looked at it (decision 18). */
export class StreamQuarantinedError extends Error {
  constructor(stream: string) {
    super(`stream ${stream} is quarantined: its chain is broken`)
    this.name = 'StreamQuarantinedError'
  }
}

/** Somebody else appended meanwhile: the writer no longer knows the head. */
export class StaleHeadError extends Error {
  constructor(stream: string) {
    super(`stream ${stream} has moved on`)
    this.name = 'StaleHeadError'
  }
}
