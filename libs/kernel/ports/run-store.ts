import type { RunKind, RunState } from '#contracts'
import type { SegmentRow } from './event-log.ts'

export type RunRow = {
  id: string
  owner_id: string
  kind: RunKind
  seated: boolean
  character_id: string
  tree_id: string | null
  question_id: string | null
  candidate_id: string | null
  /** The ended run of the same question whose words and deeds this one begins with (K6). */
  continues_run_id: string | null
  state: RunState
  reason: string | null
  ticket: number | null
  queue_expires_at: Date | null
  fence: number
  holder: string | null
  persona_version_id: string | null
  profile_version_id: string | null
  trace_id: string
  /** `head_before`: where the tree's head was when the run took it to the question. */
  settings: { seed: number; effort?: string; head_before?: string }
  requested_at: Date
  started_at: Date | null
  ended_at: Date | null
}

export type NewRun = Pick<
  RunRow,
  'id' | 'owner_id' | 'kind' | 'seated' | 'character_id' | 'tree_id' | 'question_id' | 'candidate_id' | 'trace_id' | 'settings'
> & { continues_run_id?: string; parent_run_id?: string | null; queueExpiresAt: Date | null }

export type RunCommandRow = {
  id: string
  run_id: string
  seq: number
  kind: 'cancel' | 'steer' | 'approval'
  content_id: string | null
  accepted_at: Date
  recorded_at: Date | null
}

/** Runs, their queue, their seat and their commands; Postgres decides (decisions 16, 22, 23). */
export interface RunStore {
  /** Inserts a run with the seat's next ticket (seated kinds). Answers its place: 0 = next to run, n = n ahead of it. */
  insert(run: NewRun): Promise<{ ticket: number | null; ahead: number }>
  find(ownerId: string, runId: string): Promise<RunRow | null>
  /** As `find`, with the row locked until the unit of work ends. */
  lock(ownerId: string, runId: string): Promise<RunRow | null>
  /** Without an owner: for the loop itself and the admin. */
  get(runId: string): Promise<RunRow | null>
  list(options: {
    ownerId: string | null
    state?: RunState
    characterId?: string
    treeId?: string
    before?: { requestedAt: Date; id: string }
    limit: number
  }): Promise<RunRow[]>
  /** The live answer run below a question, if any. */
  liveUnder(questionId: string): Promise<RunRow | null>
  byCandidate(candidateId: string): Promise<RunRow | null>
  countWaiting(ownerId: string): Promise<number>
  /** How many runs stand before a queued one, the running one included. */
  ahead(run: RunRow): Promise<number>
  seatHolder(characterId: string): Promise<RunRow | null>

  /** Takes the character's next queued run if the seat is free: raises the fence, starts the lease. Inside a unit of work. */
  claimNext(characterId: string, holder: string): Promise<RunRow | null>
  /** Claims one run that needs no seat. */
  claimUnseated(runId: string, holder: string): Promise<RunRow | null>
  /** Takes a queued or suspended run out of its waiting (cancel, expiry), with a fence of its own so that its end can be recorded. */
  takeQueued(runId: string, holder: string): Promise<RunRow | null>
  /** Takes a run whose lease is over, or whose holder is `deadHolders`-not (light tier: other boots). Raises the fence. */
  takeOver(runId: string, fence: number, holder: string): Promise<RunRow | null>
  /** Extends the leases of these runs; answers those whose fence still stands, and whether the kill switch is set for them. */
  heartbeat(held: readonly { id: string; fence: number }[]): Promise<{ id: string; fence: number; killed: boolean }[]>
  expired(options: { holderPrefixAlive?: string }): Promise<RunRow[]>
  queueExpired(): Promise<RunRow[]>
  /** Characters with a queued run and a free seat. */
  startable(): Promise<string[]>
  /** Ends a run under its fence; false when somebody else has it. */
  end(run: { id: string; fence: number; state: 'finished' | 'interrupted' | 'failed'; reason: string | null }): Promise<boolean>
  /** A running run stops to wait, without its seat; false when somebody else has it. */
  suspend(run: { id: string; fence: number; reason: string }): Promise<boolean>
  /** What a suspended run waited for is there: it queues at the head of its character's line (decision 23). False when it is not suspended. */
  requeue(runId: string): Promise<boolean>
  /**
   * Suspended runs that wait for something other than a person and are worth another look, oldest first; each ever more seldom. Those of them
   * that were cancelled, at once.
   */
  waitingForEffect(limit: number): Promise<RunRow[]>
  /** Locks the run row under its fence inside a unit of work; false when somebody else has it. */
  holdFence(runId: string, fence: number): Promise<boolean>
  /** What a run is bound to from its start on (decision 21). Inside the unit of work that records the start. */
  pinVersions(runId: string, pinned: { personaVersionId: string | null; profileVersionId: string }): Promise<void>
  isKilled(run: Pick<RunRow, 'owner_id' | 'character_id'>): Promise<boolean>

  insertCommand(command: {
    id: string
    run_id: string
    owner_id: string
    kind: 'cancel' | 'steer'
    content_id: string | null
  }): Promise<void>
  openCommands(runId: string): Promise<RunCommandRow[]>
  countOpenSteers(runId: string): Promise<number>
  recordCommands(commandIds: readonly string[], used: boolean): Promise<void>

  segments(runId: string): Promise<SegmentRow[]>
  insertSegments(rows: readonly SegmentRow[]): Promise<void>
  deleteSegments(runId: string): Promise<void>
}
