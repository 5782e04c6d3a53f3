/** Numbers that the database worker counts and the main thread reads without asking: they stay right while the worker is stuck. */

const FSYNCS = 0
const BEATS = 1
const COUNTERS = 2

export class SharedCounters {
  /** Give this to the worker. */
  readonly buffer: SharedArrayBuffer
  readonly #cells: BigUint64Array

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(COUNTERS * BigUint64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer
    this.#cells = new BigUint64Array(buffer)
  }

  /** Counts an fsync of the data folder. */
  countFsync(): void {
    Atomics.add(this.#cells, FSYNCS, 1n)
  }

  get fsyncs(): number {
    return Number(Atomics.load(this.#cells, FSYNCS))
  }

  /** Says that the worker's event loop turns. */
  beat(): void {
    Atomics.add(this.#cells, BEATS, 1n)
  }

  get beats(): bigint {
    return Atomics.load(this.#cells, BEATS)
  }
}
