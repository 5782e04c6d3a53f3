/**
 * The quick side of the seat (命台): Postgres holds the truth (one seated run per character, fence, lease), this port carries wake-ups so that
 * waiting costs Postgres nothing (decision 22). Losing its messages costs latency alone (case Q5).
 */
export interface Seat {
  /** The character's seat may be free, or its queue may have changed: whoever can run its next run should try. */
  announce(characterId: string): void
  /** Called for each announcement, on every replica. */
  onAnnounce(handler: (characterId: string) => void): void
  /** Notes who holds the seat, until `ttlMs` from now; a hint for readers, never a decision. */
  note(characterId: string, runId: string, ttlMs: number): void
  close(): Promise<void>
}
