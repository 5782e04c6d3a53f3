import type { CapabilityClass, GrantLayer, PermissionMode, Verdict } from '#contracts'
import type { RunLoopState } from '../reducer/state.ts'

export type ApprovalState = 'pending' | 'approved' | 'refused' | 'expired' | 'revoked' | 'used'

/** A question to the owner about one action with exactly these arguments (spec/2 "Run loop"). */
export type ApprovalRow = {
  id: string
  owner_id: string
  character_id: string
  run_id: string
  action_id: string
  tool: string
  tool_version: string
  capability: CapabilityClass
  reason: string
  arguments_content_id: string
  arguments_hash: string
  profile_hash: string
  policy_version: number
  state: ApprovalState
  expires_at: Date
  decided_by: string | null
  decided_at: Date | null
  created_at: Date
}

export type NewApproval = Omit<ApprovalRow, 'state' | 'decided_by' | 'decided_at' | 'created_at'>

/** Questions and answers; the database keeps what a question is bound to, and that a yes serves once. */
export interface ApprovalStore {
  ask(approval: NewApproval): Promise<void>
  find(ownerId: string, approvalId: string): Promise<ApprovalRow | null>
  /** With the row locked, inside a unit of work. */
  lock(ownerId: string, approvalId: string): Promise<ApprovalRow | null>
  /** Whose question it is, for an admin. */
  ownerOf(approvalId: string): Promise<string | null>
  ofAction(runId: string, actionId: string): Promise<ApprovalRow | null>
  /** Newest first; without an owner: everybody's, for an admin. */
  list(
    ownerId: string | null,
    options: { state: ApprovalState | null; before: { createdAt: Date; id: string } | null; limit: number },
  ): Promise<ApprovalRow[]>
  /** One conditional write; false where the question is no longer in `from`. */
  move(approvalId: string, change: { from: ApprovalState; to: ApprovalState; by: string | null; at: Date }): Promise<boolean>
  /** The run is over: nobody has to answer any more. */
  revokeOf(runId: string, at: Date): Promise<void>
  /** Pending questions whose time is over, oldest first; those that are named come after all others. */
  due(now: Date, limit: number, last: readonly string[]): Promise<ApprovalRow[]>
}

/** Where a suspended run stands. */
export type Checkpoint = {
  id: string
  run_id: string
  owner_id: string
  event_offset: number
  reducer_version: number
  state: RunLoopState
  spent_wall_ms: number
}

export interface CheckpointStore {
  write(checkpoint: Checkpoint): Promise<void>
  latest(runId: string): Promise<Checkpoint | null>
}

/** One place's grant as a person set it. */
export type GrantRow = {
  owner_id: string
  scope: 'owner' | 'character' | 'tree'
  scope_id: string
  mode: PermissionMode
  classes: CapabilityClass[]
  tools: string[] | null
  exact: string[] | null
  class_rules: { capability: CapabilityClass; verdict: Verdict }[]
  max_cost_micros: number | null
  version: number
  set_by: string
  set_at: Date
}

/** One layer as a run meets it: what a person set for a place, or what the task that a run works on narrows it to. */
export type GrantLayerRow = Omit<GrantRow, 'scope'> & { scope: GrantRow['scope'] | 'task' }

/** What is granted where; layers are read together and only narrow each other (K2). */
export interface GrantStore {
  find(ownerId: string, scope: GrantRow['scope'], scopeId: string): Promise<GrantRow | null>
  /** Replaces a place's grant where its version is still the one given (0: there is none yet); null where it is not. */
  set(grant: Omit<GrantRow, 'version'>, expectedVersion: number): Promise<GrantRow | null>
  /** The layers that apply to a run, outermost first. */
  layers(place: { ownerId: string; characterId: string; treeId: string | null }): Promise<GrantLayerRow[]>
}

/** A grant row as admission reads it. */
export function grantLayer({ scope, classes, tools, exact }: GrantLayerRow): GrantLayer {
  return { scope, classes, tools, exact }
}
