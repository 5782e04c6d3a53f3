import { z } from 'zod'
import { SuspendReason, Trust } from '../enums.ts'
import { Digest, Id, Instant, Slug } from '../ids.ts'
import { CapabilityClass, Consequence, Constraint } from '../tools.ts'
import { count } from './definition.ts'
import type { EventDefinition } from './definition.ts'

/** What a run tells of what it does: proposed, asked about, sent, seen, waited for. */
export const actionEvents = {
  'run.suspended': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({ reason: SuspendReason, checkpoint_id: Id }),
  },
  'run.resumed': { version: 1, visibility: 'public', stream: 'run', payload: z.object({ fence: z.int().min(1), checkpoint_id: Id }) },
  /** What the model proposed, before anybody judged it. */
  'tool.pre_execute': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    payload: z.object({ action_id: Id, tool: Slug, turn: z.int().min(1), content_id: Id, after_segments: count }),
  },
  'approval.requested': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({ approval_id: Id, action_id: Id, tool: Slug, capability: CapabilityClass, expires_at: Instant }),
  },
  /** Write-ahead: durable before anything is sent (K3). */
  'effect.intent': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    payload: z.object({
      effect_id: Id,
      action_id: Id,
      tool: Slug,
      /** The only version of the tool that it is sent to. */
      tool_version: Digest.optional(),
      capability: CapabilityClass,
      consequence: Consequence,
      constraints: z.array(Constraint),
      /** The question that was answered with yes for it, and is used up by it. */
      approval_id: Id.nullable(),
      content_id: Id,
      arguments_hash: Digest,
    }),
  },
  'tool.done': { version: 1, visibility: 'internal', stream: 'run', payload: z.object({ effect_id: Id, content_id: Id.nullable() }) },
  'effect.done': {
    version: 1,
    visibility: 'internal',
    stream: 'run',
    reserved: true,
    payload: z.object({ effect_id: Id, content_id: Id.nullable() }),
  },
  'effect.failed': { version: 1, visibility: 'internal', stream: 'run', payload: z.object({ effect_id: Id, code: Slug }) },
  'effect.unknown': { version: 1, visibility: 'internal', stream: 'run', payload: z.object({ effect_id: Id, code: Slug }) },
  'effect.reconciled': {
    version: 1,
    visibility: 'audit',
    stream: 'run',
    payload: z.object({ effect_id: Id, as: z.enum(['done', 'failed', 'abandoned']), by: z.enum(['target', 'person', 'kernel']) }),
  },
  /** What the loop saw of an action: attested and scrubbed, or the reason why there is nothing to see. */
  'tool.executed': {
    version: 1,
    visibility: 'public',
    stream: 'run',
    payload: z.object({
      action_id: Id,
      tool: Slug,
      status: z.enum(['done', 'failed', 'denied', 'unknown']),
      reason: Slug.nullable(),
      content_id: Id.nullable(),
      trust: Trust,
      after_segments: count,
    }),
  },
} as const satisfies Record<string, EventDefinition>
