import { z } from 'zod'
import { RunKind, Trust } from './enums.ts'
import { Slug } from './ids.ts'

/** What an effect is able to do, mildest first; a closed list (K2). */
export const CapabilityClass = z.enum(['read_only', 'reversible_local', 'code_executing', 'trust_mutating', 'irreversible_external'])
export type CapabilityClass = z.infer<typeof CapabilityClass>

/** One scale for every decision, mildest first (spec/2): by oneself (自省), within rules (循律), ask the owner (请命), forbidden (禁域). */
export const Verdict = z.enum(['autonomous', 'rule_bound', 'ask', 'forbidden'])
export type Verdict = z.infer<typeof Verdict>

/** `plan` denies everything above read_only; `auto` lifts the question before code_executing alone (K2). */
export const PermissionMode = z.enum(['default', 'plan', 'auto'])
export type PermissionMode = z.infer<typeof PermissionMode>

/** What is left behind when an outcome stays unknown: `none` is abandoned and charged, anything else waits for a person (decision 20). */
export const Consequence = z.enum(['none', 'lasting'])
export type Consequence = z.infer<typeof Consequence>

/** Whether a tool's own arguments can say where its data goes: nowhere, to the place its owner declared, or anywhere. */
export const Egress = z.enum(['none', 'declared', 'free'])
export type Egress = z.infer<typeof Egress>

/** What a permission is bound to; an executor that cannot hold one does not run (spec/2 "Run loop"). */
export const Constraint = z.enum(['no_egress', 'undoable', 'exact_arguments', 'single_use'])
export type Constraint = z.infer<typeof Constraint>

/** Layers of grants; they intersect (K2). */
export const GrantScope = z.enum(['owner', 'bundle', 'character', 'tree', 'task'])
export type GrantScope = z.infer<typeof GrantScope>

/**
 * One layer's grant. `tools` null: this layer does not narrow by name. `exact` names tools that may act without a question; null: this
 * layer does not narrow what the others name. The owner's layer must be there, and its nulls grant nothing by name.
 */
export const GrantLayer = z.object({
  scope: GrantScope,
  classes: z.array(CapabilityClass),
  tools: z.array(Slug).nullable(),
  exact: z.array(Slug).nullable(),
})
export type GrantLayer = z.infer<typeof GrantLayer>

/** Judgement on four dimensions (四维), each on the verdict scale; the strictest wins. */
export const Arbitration = z.object({ capability: Verdict, data: Verdict, consequence: Verdict, situation: Verdict })
export type Arbitration = z.infer<typeof Arbitration>

/** A person's yes as it stands at the moment of the decision: what it was given for, compared with what is about to happen. */
export const ApprovalFacts = z.object({
  state: z.enum(['pending', 'approved', 'refused', 'expired', 'revoked', 'used']),
  same_action: z.boolean(),
  same_arguments: z.boolean(),
  same_versions: z.boolean(),
  by_owner: z.boolean(),
})
export type ApprovalFacts = z.infer<typeof ApprovalFacts>

/** Everything that the verdict on one proposed action reads; no wording, no model, no database (K2). Stored with the decision. */
export const AdmissionFacts = z.object({
  tool: Slug,
  /** Null: there is no such tool, or its contract names none of the classes. */
  capability: CapabilityClass.nullable(),
  /** The class that these arguments raise it to; never lowers. */
  argument_capability: CapabilityClass.nullable(),
  egress: Egress,
  undoable: z.boolean(),
  arguments_valid: z.boolean(),
  run_kind: RunKind,
  mode: PermissionMode.nullable(),
  grants: z.array(GrantLayer),
  /** Verdicts per class that an owner or operator set; they only tighten. */
  class_rules: z.array(z.object({ capability: CapabilityClass, verdict: Verdict })),
  /** The meet of everything that the model saw. */
  context_trust: Trust,
  arbitration: Arbitration,
  /** Of listeners on tool.pre_execute, in any order. */
  listeners: z.array(Verdict),
  killed: z.boolean(),
  approval: ApprovalFacts.nullable(),
})
export type AdmissionFacts = z.infer<typeof AdmissionFacts>

/** Why a verdict is what it is; the first reason of the strictest kind. */
export const AdmissionReason = z.enum([
  'read_only',
  'undoable_within_rules',
  'operator_mode_auto',
  'exact_grant',
  'approved',
  'class_asks',
  'not_undoable',
  'untrusted_context',
  'arbitration',
  'class_rule',
  'listener',
  'unknown_tool',
  'unknown_mode',
  'unknown_value',
  'arguments_invalid',
  'not_granted',
  'plan_mode',
  'killed',
  'egress_under_untrusted',
  'code_with_egress',
  'maintenance_run_writes_canon',
  'approval_refused',
  'approval_expired',
  'approval_does_not_fit',
])
export type AdmissionReason = z.infer<typeof AdmissionReason>

/** The decision on one action. A rule_bound one carries what it is bound to, never nothing (case E17). */
export const AdmissionDecision = z
  .object({
    verdict: Verdict,
    reason: AdmissionReason,
    /** The class that was judged, after raising; null for an unknown tool. */
    capability: CapabilityClass.nullable(),
    constraints: z.array(Constraint),
    policy_version: z.int().min(1),
  })
  .refine(({ verdict, constraints }) => (verdict === 'rule_bound') === constraints.length > 0, {
    message: 'only what is permitted within rules has constraints, and it always has',
    path: ['constraints'],
  })
export type AdmissionDecision = z.infer<typeof AdmissionDecision>
