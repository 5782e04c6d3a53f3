import type { CapabilityClass, Consequence, Constraint, Egress, Trust } from '#contracts'
import type { JsonObject } from './model-gateway.ts'

/**
 * What a tool is, for admission and for the model: its contract is fixed when it is registered and belongs to the one who configured it,
 * never to the far side (K1, K2). `parameters` is a JSON schema of an object.
 */
export type ToolContract = {
  /** Slug, unique among the tools of an owner: `clock`, `http/weather.today`, `mcp/files.read_file`. */
  name: string
  description: string
  parameters: JsonObject
  capability: CapabilityClass
  consequence: Consequence
  egress: Egress
  /** A version or checkpoint lets what it does be undone. */
  undoable: boolean
  /** What one call is charged at most, in micro-units; null where nobody said (a bound on cost then fails closed, K6). */
  priceMicros: number | null
  /** The argument by which a call says what it gives away at most, micro-units: its price, where the contract has none. */
  priceArgument?: string
  /** Digest of description and parameters as the owner saw them; a far side that changes them is another tool (rug pull). */
  version: string
}

/** One admitted action on its way out. Arguments are parsed and fit the contract's schema. */
export type EffectCall = {
  effectId: string
  ownerId: string
  characterId: string
  runId: string
  treeId: string | null
  tool: string
  arguments: JsonObject
  /** The owner's scope, the resource and the logical action; the same for every try of one action. */
  idempotencyKey: string
  /** SHA-256 hex of the canonical arguments, for a target that binds its keys to them. */
  argumentsHash: string
  /** The meet of all that the arguments were made from, for a target that keeps them (K1); absent counts as untrusted. */
  trust?: Trust
  /** The content that the arguments are stored as: a target that keeps a digest of them forgets its salt when that is erased. */
  argumentsContentId?: string
  constraints: readonly Constraint[]
  signal: AbortSignal
}

/** What came back, attested: by whom, when, how far it is trusted. Text, scrubbed of nothing yet; ≤ 1 MB (longer is cut and says so). */
export type Observation = {
  mediaType: 'text/plain' | 'application/json'
  text: string
  /** Where it came from: a slug for built-in tools, else host or server name. */
  source: string
  /** The application's time, ISO 8601. */
  at: string
  /** As the source states it; null where it does not. */
  licence: string | null
  trust: Trust
  truncated: boolean
  /** Contents of ours that the text was read from: it goes with any of them (decision 13). */
  derivedFrom?: readonly string[]
}

/**
 * - `done`: it happened, once.
 * - `failed`: authoritatively nothing happened; `code` is a slug.
 * - `unknown`: it may have happened; it is never sent again by itself (K3).
 * `costMicros`: what the target itself says that it cost; null where it says nothing, and then the most that it can cost is charged.
 * A target answers; it throws only for faults of our own, which count as unknown.
 */
export type EffectOutcome =
  | { type: 'done'; observation: Observation; costMicros: number | null }
  | { type: 'failed'; code: string; observation: Observation | null }
  | { type: 'unknown'; code: string }

/** What the target knows of a key. `absent` is no proof that nothing happened (case E9). */
export type LookUp =
  { type: 'committed'; argumentsHash: string | null; observation: Observation | null } | { type: 'absent' } | { type: 'unavailable' }

/** Where effects happen: built-in tools, HTTP tools, MCP servers, the sandbox, sub-agents (port, spec/1). One per kind of tool. */
export interface EffectTarget {
  /** The constraints that this target can hold a call to; a call with any other is not sent. */
  enforces(contract: ToolContract): ReadonlySet<Constraint>
  /** Asks the target what became of a key. `null`: it keeps no such record. */
  lookUp(call: Omit<EffectCall, 'signal'>): Promise<LookUp | null>
  execute(call: EffectCall): Promise<EffectOutcome>
}

/** Tools that an owner has, whatever kind. Both sides of a tool, found by name. */
export interface ToolCatalogue {
  /** The tools that exist for an owner, contracts only, in name order. */
  list(ownerId: string): Promise<readonly ToolContract[]>
  find(ownerId: string, name: string): Promise<{ contract: ToolContract; target: EffectTarget } | null>
}
