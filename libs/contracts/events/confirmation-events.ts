import { z } from 'zod'
import { Id } from '../ids.ts'
import { PermissionMode } from '../tools.ts'
import type { EventDefinition } from './definition.ts'

/** What people decided about actions and grants. */
export const confirmationEvents = {
  'approval.decided': {
    version: 1,
    visibility: 'audit',
    stream: 'confirmation',
    payload: z.object({
      approval_id: Id,
      run_id: Id,
      action_id: Id,
      decision: z.enum(['approved', 'refused', 'expired', 'revoked']),
      by: Id.nullable(),
    }),
  },
  'reconciliation.decided': {
    version: 1,
    visibility: 'audit',
    stream: 'confirmation',
    payload: z.object({ effect_id: Id, run_id: Id, as: z.enum(['done', 'failed']), by: Id }),
  },
  'grant.changed': {
    version: 1,
    visibility: 'audit',
    stream: 'confirmation',
    payload: z.object({
      scope: z.enum(['owner', 'character', 'tree']),
      scope_id: Id,
      version: z.int().min(1),
      mode: PermissionMode,
      by: Id,
    }),
  },
} as const satisfies Record<string, EventDefinition>
