import type { Ids, Scheduler } from '#kernel/ports/clock'
import { saltedDigest } from '#kernel/record/chain'

/** A piece of the answer on its way into the record. */
export type Segment = { kind: 'text' | 'reasoning'; body: string; salt: Uint8Array; digest: Uint8Array }

/** Least time between two deltas of a run (decision 12). */
const WINDOW_MS = 50
/** UTF-16 units of a segment, and units and segments of a delta at most, so that a statement stays small whatever comes in a window (decision 7). */
const SEGMENT_UNITS = 32 * 1024
const DELTA_UNITS = 8 * SEGMENT_UNITS
const DELTA_SEGMENTS = 256
/** What may wait to be written; whoever brings more waits for room (K9). */
const WAITING_UNITS = 4 * DELTA_UNITS
const WAITING_SEGMENTS = 4 * DELTA_SEGMENTS

/**
 * Coalesces what the model says into deltas: the first one leaves at once, the next ones when the window is over and the last one is
 * durable, so that a slow database widens the window instead of filling a queue. What comes faster than it can be written is waited for.
 */
export class DeltaWriter {
  readonly #ids: Ids
  readonly #scheduler: Scheduler
  readonly #flush: (segments: Segment[]) => void
  #pending: Piece[] = []
  #pendingUnits = 0
  #windowOpen = false
  #inFlight = 0
  #onRoom: (() => void)[] = []

  constructor({ ids, scheduler, flush }: { ids: Ids; scheduler: Scheduler; flush: (segments: Segment[]) => void }) {
    this.#ids = ids
    this.#scheduler = scheduler
    this.#flush = flush
  }

  push(kind: Piece['kind'], text: string): void {
    if (text === '') return
    const last = this.#pending.at(-1)
    if (last?.kind === kind && last.body.length < SEGMENT_UNITS) last.body += text
    else this.#pending.push({ kind, body: text })
    this.#pendingUnits += text.length
    this.#offer()
  }

  /** Resolves when no more is waiting to be written than may be. */
  async room(): Promise<void> {
    while (this.#pending.length > WAITING_SEGMENTS || this.#pendingUnits > WAITING_UNITS) {
      await new Promise<void>((resolve) => this.#onRoom.push(resolve))
    }
  }

  /** A delta is durable. */
  acknowledge(): void {
    this.#inFlight = Math.max(0, this.#inFlight - 1)
    this.#offer()
    for (const resolve of this.#onRoom.splice(0)) resolve()
  }

  /** Hands over what is pending now, whatever the window says: before a turn ends or is cut off. */
  flushNow(): void {
    while (this.#pending.length > 0) this.#handOver()
  }

  #offer(): void {
    if (this.#pending.length === 0 || this.#inFlight > 0 || this.#windowOpen) return
    this.#windowOpen = true
    this.#scheduler.after(WINDOW_MS, () => {
      this.#windowOpen = false
      this.#offer()
    })
    this.#handOver()
  }

  /** One delta, from what has waited longest. */
  #handOver(): void {
    const segments: Segment[] = []
    let units = 0
    for (let next = this.#pending[0]; next && segments.length < DELTA_SEGMENTS; next = this.#pending[0]) {
      const body = beginning(next.body, SEGMENT_UNITS)
      if (segments.length > 0 && units + body.length > DELTA_UNITS) break
      if (body.length === next.body.length) this.#pending.shift()
      else next.body = next.body.slice(body.length)
      const salt = this.#ids.bytes(32)
      segments.push({ kind: next.kind, body, salt, digest: saltedDigest(salt, body) })
      units += body.length
    }
    this.#pendingUnits -= units
    this.#inFlight += 1
    this.#flush(segments)
  }
}

type Piece = { kind: 'text' | 'reasoning'; body: string }

/** As much of a text as may be, cut between characters. */
function beginning(text: string, units: number): string {
  if (text.length <= units) return text
  const isHighSurrogate = (text.charCodeAt(units - 1) & 0xfc00) === 0xd800
  return text.slice(0, isHighSurrogate ? units - 1 : units)
}
