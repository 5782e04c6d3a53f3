import type { SignedAnchor } from '#contracts'
import type { AnchoredHead } from '#kernel/record/anchor'

/** Anchors and the heads that they cover, in the database. */
export interface AnchorStore {
  /** Takes the right to anchor until the unit of work ends; false while another has it. */
  claim(): Promise<boolean>
  instance(): Promise<{ id: string; epoch: number }>
  latest(): Promise<SignedAnchor | null>
  /** Anchors after a number, in order. */
  list(after: number, limit: number): Promise<SignedAnchor[]>
  /** Whether any head moved since the anchor that covered it last. */
  hasNews(): Promise<boolean>
  /** Puts the heads that moved under an anchor's number. Inside the unit of work that inserts the anchor. */
  cover(seq: number): Promise<void>
  /** Heads under an anchor, in the order of the bytes of their names. */
  heads(seq: number, after: string, limit: number): Promise<AnchoredHead[]>
  insert(anchor: SignedAnchor): Promise<void>
  /** Heads under an anchor whose event is gone or has another hash by now. */
  unproven(seq: number): Promise<AnchoredHead[]>
  /** The highest number that the log itself says an anchor was given; 0 for none. */
  lastRecorded(): Promise<number>
}

/** Anchors on file from a number on that are of a time which a restore took back. `epoch`: theirs. */
export type AnchorFork = { from: number; count: number; epoch: number }

/** The file outside the database that holds every anchor too. */
export interface AnchorFile {
  /** Oldest first. Lines that a crash cut off are left out. */
  read(): AsyncIterable<SignedAnchor>
  last(): Promise<SignedAnchor | null>
  append(anchors: readonly SignedAnchor[]): Promise<void>
  /** Moves the anchors from a number on to the end of a file beside this one, which is named after their epoch. Answers its path. */
  setAside(fork: Pick<AnchorFork, 'from' | 'epoch'>): Promise<string>
}
