import type { Ids, Scheduler } from '#kernel/ports/clock'
import { saltedDigest } from '#kernel/record/chain'

/** A piece of the answer on its way into the record. */
export type Segment = { kind: 'text' | 'reasoning'; body: string; salt: Uint8Array; digest: Uint8Array }

/** Least time between two deltas of a run (decision 12). */
const WINDOW_MS = 50

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
    const segments = this.#pending.map((piece) => {
      const salt = this.#ids.bytes(32)
      return { ...piece, salt, digest: saltedDigest(salt, piece.body) }
    })
    this.#pending = []
    this.#inFlight = true
    this.#flush(segments)
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
