/**
 * Wakes whoever waits for something to have been written. Messages may be lost or doubled; the log is the truth, so a reader subscribes,
 * reads, then follows (decision 29). In process on the light tier, Redis on the full one.
 */
export interface Fanout {
  publish(channel: string, message: string): void
  /** Resolves when the subscription is in force; the answer ends it. */
  subscribe(channel: string, handler: (message: string) => void): Promise<() => void>
}
