import { z } from 'zod'
import { Digest, Id, Slug } from '../ids.ts'
import { CapabilityClass, Consequence, PermissionMode, Verdict } from '../tools.ts'
import { PageQuery, pageOf } from './common.ts'

export const ApprovalStateName = z.enum(['pending', 'approved', 'refused', 'expired', 'revoked', 'used'])

/** A question to the owner: one action, with exactly these arguments; null once erased. */
export const ApprovalView = z
  .object({
    id: Id,
    character_id: Id,
    run_id: Id,
    action_id: Id,
    tool: Slug,
    capability: CapabilityClass,
    /** Why the owner is asked, as the verdict says. */
    reason: z.string(),
    arguments: z.string().nullable(),
    arguments_hash: Digest,
    state: ApprovalStateName,
    expires_at: z.string(),
    decided_at: z.string().nullable(),
    created_at: z.string(),
  })
  .meta({ id: 'Approval' })
export type ApprovalView = z.infer<typeof ApprovalView>
export const ApprovalPage = pageOf(ApprovalView, 'ApprovalPage')
export const ApprovalListQuery = PageQuery.extend({ state: ApprovalStateName.optional() })

/** The answer names what was read: a yes to other arguments is no yes (case E4), nor is one that says more than is understood (case E17). */
export const DecideApproval = z
  .strictObject({ decision: z.enum(['approve', 'refuse']), arguments_hash: Digest })
  .meta({ id: 'DecideApproval' })
export type DecideApproval = z.infer<typeof DecideApproval>

/** What a place grants. `tools` null: does not narrow by name (a character without names has no tools at all). */
export const GrantView = z
  .object({
    scope: z.enum(['owner', 'character', 'tree']),
    scope_id: Id,
    mode: PermissionMode,
    classes: z.array(CapabilityClass),
    tools: z.array(Slug).nullable(),
    exact: z.array(Slug).nullable(),
    class_rules: z.array(z.object({ capability: CapabilityClass, verdict: Verdict })),
    max_cost_micros: z.int().min(0).nullable(),
    /** 0: nothing was set here yet. */
    version: z.int().min(0),
  })
  .meta({ id: 'Grant' })
export type GrantView = z.infer<typeof GrantView>

export const SetGrant = z
  .strictObject({
    mode: PermissionMode,
    classes: z.array(CapabilityClass).max(5),
    tools: z.array(Slug).max(200).nullable(),
    exact: z.array(Slug).max(200).nullable(),
    class_rules: z
      .array(z.strictObject({ capability: CapabilityClass, verdict: Verdict }))
      .max(20)
      .default([]),
    max_cost_micros: z.int().min(0).nullable().default(null),
    /** The version that was read; somebody else's change in between is not overwritten. */
    version: z.int().min(0),
  })
  .meta({ id: 'SetGrant' })
export type SetGrant = z.infer<typeof SetGrant>

/** Something that went out and whose outcome nobody knows: it waits for a person (K3). */
export const EffectView = z
  .object({
    id: Id,
    character_id: Id,
    run_id: Id,
    action_id: Id,
    tool: Slug,
    capability: CapabilityClass,
    consequence: Consequence,
    state: z.enum(['intent', 'executing', 'done', 'failed', 'denied', 'unknown', 'reconciled_done', 'reconciled_failed', 'abandoned']),
    code: z.string().nullable(),
    arguments: z.string().nullable(),
    created_at: z.string(),
    settled_at: z.string().nullable(),
  })
  .meta({ id: 'Effect' })
export type EffectView = z.infer<typeof EffectView>
export const EffectList = z.object({ items: z.array(EffectView) }).meta({ id: 'EffectList' })

/** What a person found out about it. */
export const ReconcileEffect = z.strictObject({ as: z.enum(['done', 'failed']) }).meta({ id: 'ReconcileEffect' })
export type ReconcileEffect = z.infer<typeof ReconcileEffect>
