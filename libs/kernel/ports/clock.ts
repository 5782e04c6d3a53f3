/** The application's time. Faked everywhere but end to end (decision 41). */
export interface Clock {
  now(): Date
}

/** Identifiers and randomness. Faked where a test needs them fixed. */
export interface Ids {
  /** A UUIDv7. */
  next(): string
  /** Cryptographic random bytes. */
  bytes(length: number): Uint8Array
  /** A seed for draws: an integer in [0, 2^31). */
  seed(): number
}

/** Calls back later; the answer takes it back. */
export interface Scheduler {
  after(milliseconds: number, callback: () => void): () => void
}
