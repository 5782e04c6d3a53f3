import type { CapabilityClass, Consequence, Constraint } from '#contracts'
import type { EffectEvent, EffectState } from '../effects/effect.ts'

/** One effect as the ledger keeps it: ids, numbers and digests; its arguments and its outcome are contents. */
export type EffectRow = {
  id: string
  owner_id: string
  character_id: string
  run_id: string
  action_id: string
  tool: string
  /** The version that was judged and asked about, and the only one that it is sent to; null: bound before versions were. */
  tool_version: string | null
  capability: CapabilityClass
  consequence: Consequence
  constraints: readonly Constraint[]
  /** What the effect acts on, and under which name of the action; unique together per owner. */
  resource: string
  idempotency_key: string
  arguments_content_id: string
  /** SHA-256 hex of the canonical arguments under their content's salt: it goes when they are erased (decision 10). */
  arguments_hash: string
  reserved_micros: number
  state: EffectState
  code: string | null
  outcome_content_id: string | null
  cost_micros: number | null
  claim_holder: string | null
  claim_fence: number
  created_at: Date
  settled_at: Date | null
}

export type NewEffect = Pick<
  EffectRow,
  | 'id'
  | 'owner_id'
  | 'character_id'
  | 'run_id'
  | 'action_id'
  | 'tool'
  | 'tool_version'
  | 'capability'
  | 'consequence'
  | 'constraints'
  | 'resource'
  | 'idempotency_key'
  | 'arguments_content_id'
  | 'arguments_hash'
  | 'reserved_micros'
>

/** The same key was bound to other arguments, another tool or another action before (cases E4, E5). */
export class EffectConflictError extends Error {
  readonly effectId: string

  constructor(effectId: string) {
    super(`the key is bound to another action as effect ${effectId}`)
    this.name = 'EffectConflictError'
    this.effectId = effectId
  }
}

export type EffectSettlement = { code: string | null; outcomeContentId: string | null; costMicros: number | null }

/** The durable record of everything that goes out (K3). The database refuses what the state machine does not know. */
export interface EffectLedger {
  /**
   * Binds an intent to its key, once, inside the unit of work that records it. The same action with the same arguments gets the row that is
   * there; anything else under that key throws EffectConflictError.
   */
  bind(effect: NewEffect): Promise<EffectRow>
  find(ownerId: string, effectId: string): Promise<EffectRow | null>
  get(effectId: string): Promise<EffectRow | null>
  /**
   * Takes an unclaimed intent, or one whose claim ran out, for sending. Null: somebody else has it, or it is no intent any more. `takesOver`:
   * one that is claimed still too, for whoever knows that its holder has lost it; what was claimed before can then no longer be sent.
   */
  claim(effectId: string, holder: string, options?: { takesOver: boolean }): Promise<{ fence: number } | null>
  /** From claim to the moment of sending: false when the claim is somebody else's by now. */
  markExecuting(effectId: string, fence: number): Promise<boolean>
  /** Gives an unsent claim back. */
  release(effectId: string, fence: number): Promise<void>
  /** One conditional write: false where the event does not follow the state (case E16). */
  settle(effectId: string, event: Exclude<EffectEvent, 'claimed'>, settlement: EffectSettlement): Promise<boolean>
  /** Effects of a run that are not settled. */
  open(runId: string): Promise<EffectRow[]>
  /** Unknown effects that wait for a person, of an owner. */
  unknown(ownerId: string, options: { limit: number }): Promise<EffectRow[]>
}
