import { z } from 'zod'
import { EntitySource, Pivot, Trust } from './enums.ts'
import { Digest, Id, Slug } from './ids.ts'
import { CapabilityClass } from './tools.ts'

/**
 * What stands between the Kernel and everything that may be exchanged (spec/2 "ABI"). Frozen: abi.snapshot.json holds its form, and a change
 * of it is another PROTOCOL_VERSION (K7). Nothing here carries a handle, a credential or free text; unknown members are refused.
 */

/** `<domain>/<role>`; open, so that a new one changes nothing here. */
export const Slot = z.string().regex(/^[a-z][a-z0-9_-]{0,30}\/[a-z][a-z0-9_-]{0,30}$/)
export type Slot = z.infer<typeof Slot>

/** The slots of the nine pivots (九枢). */
export const pivotSlots: readonly Slot[] = Object.freeze(Pivot.options.map((pivot) => `lingtai/${pivot}`))

/** Names stored content and proves it; whoever holds one may do nothing by it. `bytes`: of the content as stored. */
export const ArtifactRef = z.strictObject({
  content_id: Id,
  digest: Digest,
  media_type: z.string().regex(/^[a-z]+\/[a-z0-9.+-]{1,60}$/),
  bytes: z.int().min(0),
})
export type ArtifactRef = z.infer<typeof ArtifactRef>

/** Hard limits of a task (K6); null = honestly not promised. */
export const TaskBudget = z.strictObject({
  max_turns: z.int().min(1),
  max_wall_ms: z.int().min(1),
  max_cost_micros: z.int().min(0).nullable(),
  max_tokens: z.int().min(0).nullable(),
  max_consecutive_tool_errors: z.int().min(1),
})
export type TaskBudget = z.infer<typeof TaskBudget>

/** Classes as a set: in order of the lattice, none twice. */
export const ClassSet = z
  .array(CapabilityClass)
  .max(CapabilityClass.options.length)
  .refine(
    (classes) =>
      classes.every(
        (one, at) => at === 0 || CapabilityClass.options.indexOf(one) > CapabilityClass.options.indexOf(classes[at - 1] ?? one),
      ),
    { message: 'a set has no member twice and one order' },
  )
export type ClassSet = z.infer<typeof ClassSet>

/** One ask, from a client to the Kernel. `acceptance`: what counts as done, as content; null where only its owner can say. */
export const TaskEnvelope = z.strictObject({
  task_id: Id,
  protocol_version: z.int().min(1),
  input: z.array(ArtifactRef).min(1),
  trust: Trust,
  acceptance: ArtifactRef.nullable(),
  budget: TaskBudget,
  /** Nothing above it is granted, whoever asks. */
  ceiling: ClassSet,
})
export type TaskEnvelope = z.infer<typeof TaskEnvelope>

/** A plugin asks for context: where from, at most how many bytes, and how far it may be believed at most. */
export const ContextRequest = z.strictObject({
  request_id: Id,
  slot: Slot,
  selectors: z.array(z.strictObject({ source: EntitySource, ids: z.array(Id).max(1_000), limit: z.int().min(1).max(1_000) })).max(100),
  max_bytes: z.int().min(0),
  trust_ceiling: Trust,
})
export type ContextRequest = z.infer<typeof ContextRequest>

/** What an audited resolver made of it. */
export const ContextGrant = z.strictObject({
  request_id: Id,
  segments: z.array(z.strictObject({ source: EntitySource, content: ArtifactRef, trust: Trust })),
  bytes: z.int().min(0),
})
export type ContextGrant = z.infer<typeof ContextGrant>

/** A plugin or the model wants something done. It admits nothing: `admitted` has one value. */
export const ToolIntent = z.strictObject({
  proposed_by: Slot,
  call: z.strictObject({ tool: Slug, arguments: ArtifactRef }),
  purity: z.enum(['pure', 'effecting']),
  admitted: z.literal('none'),
  argument_trust: Trust,
})
export type ToolIntent = z.infer<typeof ToolIntent>

/** What the Kernel alone makes of an intent that it admitted; arguments are the scrubbed ones. */
export const EffectProposal = z.strictObject({
  id: Id,
  tool_use_id: Id,
  tool: Slug,
  admitted: ClassSet.min(1),
  arguments: ArtifactRef,
  workspace: z.strictObject({ owner_id: Id, character_id: Id, run_id: Id, tree_id: Id.nullable() }),
})
export type EffectProposal = z.infer<typeof EffectProposal>

/** Everything that is frozen, by name. */
export const abi = { ArtifactRef, TaskEnvelope, ContextRequest, ContextGrant, ToolIntent, EffectProposal } as const
