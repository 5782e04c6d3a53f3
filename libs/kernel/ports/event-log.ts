import type { EventRecord, EventType, NewEvent } from '#contracts'
import type { ChainedEvent, StreamHead } from '../record/chain.ts'

/** An event as it was read back: the canonical bytes are the truth, `record` is their parse. */
export type StoredEvent = { position: number; record: EventRecord; canonical: string; prev_hash: Uint8Array; hash: Uint8Array }

/** Deltas of a sprout that go with an append (decision 12). */
export type SegmentRow = { run_id: string; ordinal: number; part: number; kind: 'text' | 'reasoning'; body: string; salt: Uint8Array }

/** What one run appends under its fence. */
export type FencedAppend = { runId: string; fence: number; events: readonly ChainedEvent[]; segments: readonly SegmentRow[] }

/** The append-only log of everything (一炁). Both tiers pass one contract suite. */
export interface EventLog {
  /**
   * Appends to a stream inside the current unit of work, with the stream's head row locked. For every stream but a running run's
   * (decision 16). Creates the stream when it is new. Throws StreamQuarantinedError.
   */
  append(input: { stream: string; ownerId: string | null; events: readonly NewEvent[] }): Promise<ChainedEvent[]>
  /** Writes chained events inside the current unit of work, where the caller holds the run's fence there. Throws StaleHeadError. */
  write(events: readonly ChainedEvent[]): Promise<void>
  /**
   * Appends of many runs in one statement of its own: rows of a run whose (run, fence) is no longer the running one, or that is killed,
   * are left out and its id is missing from the answer (decision 17).
   */
  appendFenced(batch: readonly FencedAppend[]): Promise<Set<string>>
  head(stream: string): Promise<(StreamHead & { quarantined: boolean }) | null>
  /** Events of a stream after a sequence number, in order. */
  read(stream: string, options: { after?: number; limit?: number; types?: readonly EventType[] }): Promise<StoredEvent[]>
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
