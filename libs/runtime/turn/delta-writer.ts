import type { Ids, Scheduler } from '#kernel/ports/clock'
import { saltedDigest } from '#kernel/record/chain'

/** A piece of the answer on its way into the record. */
export type Segment = { kind: 'text' | 'reasoning'; body: string; salt: Uint8Array; digest: Uint8Array }

/** Least time between two deltas of a run (decision 12). */
const WINDOW_MS = 50
/** UTF-16 units of a segment and segments of a delta at most, so that a statement stays small whatever comes in a window (decision 7). */
const SEGMENT_UNITS = 32 * 1024
const DELTA_SEGMENTS = 8

/**
 * Coalesces what the model says into deltas: the first one leaves at once, the next ones when the window is over and the last one is
 * durable, so that a slow database widens the window instead of filling a queue.
 */
export class DeltaWriter {
  readonly #ids: Ids
  readonly #scheduler: Scheduler
  readonly #flush: (segments: Segment[]) => void
  #pending: { kind: 'text' | 'reasoning'; body: string }[] = []
  #windowOpen = false
  #inFlight = false

  constructor({ ids, scheduler, flush }: { ids: Ids; scheduler: Scheduler; flush: (segments: Segment[]) => void }) {
    this.#ids = ids
    this.#scheduler = scheduler
    this.#flush = flush
  }

  push(kind: 'text' | 'reasoning', text: string): void {
    if (text === '') return
    const last = this.#pending.at(-1)
    if (last?.kind === kind) last.body += text
    else this.#pending.push({ kind, body: text })
    this.#offer()
  }

  /** The last delta is durable. */
  acknowledge(): void {
    this.#inFlight = false
    this.#offer()
  }

  /** Hands over what is pending now, whatever the window says: before a turn ends or is cut off. */
  flushNow(): void {
    if (this.#pending.length === 0) return
    const segments = this.#pending.flatMap(pieces).map((piece) => {
      const salt = this.#ids.bytes(32)
      return { ...piece, salt, digest: saltedDigest(salt, piece.body) }
    })
    this.#pending = []
    this.#inFlight = true
    for (let at = 0; at < segments.length; at += DELTA_SEGMENTS) this.#flush(segments.slice(at, at + DELTA_SEGMENTS))
  }

  #offer(): void {
    if (this.#pending.length === 0 || this.#inFlight || this.#windowOpen) return
    this.#windowOpen = true
    this.#scheduler.after(WINDOW_MS, () => {
      this.#windowOpen = false
      this.#offer()
    })
    this.flushNow()
  }
}

/** A text in pieces of bounded length, cut between characters. */
function pieces({ kind, body }: { kind: 'text' | 'reasoning'; body: string }): { kind: 'text' | 'reasoning'; body: string }[] {
  const cut: { kind: 'text' | 'reasoning'; body: string }[] = []
  for (let from = 0; from < body.length;) {
    let to = Math.min(body.length, from + SEGMENT_UNITS)
    const isHighSurrogate = (body.charCodeAt(to - 1) & 0xfc00) === 0xd800
    if (to < body.length && isHighSurrogate) to -= 1
    cut.push({ kind, body: body.slice(from, to) })
    from = to
  }
  return cut
}
