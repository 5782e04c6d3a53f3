import { z } from 'zod'
import { Digest, Slug } from './ids.ts'

const bounded = (most: number) => z.int().min(1).max(most)

/**
 * The platform's own hard limits of one answer (K6). A bundle may lower them and never raise them; time in milliseconds.
 */
export const HARD_LIMITS = {
  max_turns: 32,
  max_wall_ms: 60 * 60_000,
  max_consecutive_tool_errors: 16,
  max_tries: 5,
  max_steers: 64,
} as const

/** A plugin as a bundle names it. */
export const BundlePlugin = z.strictObject({ name: Slug, version: Slug })
export type BundlePlugin = z.infer<typeof BundlePlugin>

/** The platform's layer of every profile, by content (K8): numbers, enums and slugs; no text that a model sees. */
export const BundleContent = z
  .strictObject({
    name: Slug,
    /** Formats and rules that it was made for; a replica that lacks one does not take its runs (decision 21). */
    protocol_version: z.int().min(1),
    layout_version: z.int().min(1),
    reducer_version: z.int().min(1),
    limits: z.strictObject({
      max_turns: bounded(HARD_LIMITS.max_turns),
      max_wall_ms: bounded(HARD_LIMITS.max_wall_ms),
      max_tokens: z.int().min(1).nullable(),
      max_consecutive_tool_errors: bounded(HARD_LIMITS.max_consecutive_tool_errors),
      max_tries: bounded(HARD_LIMITS.max_tries),
      max_steers: bounded(HARD_LIMITS.max_steers),
    }),
    /** Sampling temperature per effort. */
    temperatures: z.strictObject({ low: z.number().min(0).max(2), medium: z.number().min(0).max(2), high: z.number().min(0).max(2) }),
    /** Who listens to its runs, in this order; absent for nobody, so that there is one spelling of that. */
    plugins: z
      .array(BundlePlugin)
      .min(1)
      .max(64)
      .refine((plugins) => new Set(plugins.map(({ name }) => name)).size === plugins.length, { message: 'a plugin is named once' })
      .optional(),
  })
  .meta({ id: 'BundleContent' })
export type BundleContent = z.infer<typeof BundleContent>

export const BundleView = z
  .object({
    hash: Digest,
    content: BundleContent,
    /** As it was evaluated last; null: never. */
    accepted: z.boolean().nullable(),
    active: z.boolean(),
    created_at: z.string(),
  })
  .meta({ id: 'Bundle' })
export type BundleView = z.infer<typeof BundleView>
export const BundleList = z.object({ items: z.array(BundleView) }).meta({ id: 'BundleList' })

export const EvaluateBundle = z.strictObject({ accepted: z.boolean() }).meta({ id: 'EvaluateBundle' })
export type EvaluateBundle = z.infer<typeof EvaluateBundle>

/** `from` is the bundle that was active when the decision was made: somebody else's move in between is not overwritten. */
export const ActivateBundle = z.strictObject({ from: Digest, reason: z.enum(['promote', 'rollback']) }).meta({ id: 'ActivateBundle' })
export type ActivateBundle = z.infer<typeof ActivateBundle>
