import { z } from 'zod'
import { Id } from '../ids.ts'
import { RunView } from './runs.ts'
import { pageOf } from './common.ts'

export const AdminRun = RunView.extend({
  owner_id: Id,
  owner_name: z.string(),
  character_name: z.string(),
  tree_title: z.string().nullable(),
}).meta({ id: 'AdminRun' })
export type AdminRun = z.infer<typeof AdminRun>
export const AdminRunPage = pageOf(AdminRun, 'AdminRunPage')

export const VerifyReport = z
  .object({
    streams: z.int(),
    events: z.int(),
    intact: z.boolean(),
    faults: z.array(
      z.object({
        /** `anchors` for a fault of the anchors themselves; `seq` is then the anchor's number. */
        stream: z.string(),
        seq: z.int(),
        fault: z.enum([
          'hash',
          'chain',
          'gap',
          'head',
          'content',
          'payload',
          'envelope',
          'anchored_head',
          'anchor_missing',
          'anchor_altered',
          'anchor_signature',
        ]),
      }),
    ),
    /** Signed anchors that were checked, and how many of them stand in the file outside the database. */
    anchors: z.object({ count: z.int(), filed: z.int() }),
    milliseconds: z.number(),
  })
  .meta({ id: 'VerifyReport' })
export type VerifyReport = z.infer<typeof VerifyReport>

export const OutboxRow = z
  .object({
    id: Id,
    topic: z.string(),
    attempts: z.int(),
    last_error: z.string().nullable(),
    created_at: z.string(),
    due_at: z.string(),
    closed_at: z.string().nullable(),
    outcome: z.string().nullable(),
  })
  .meta({ id: 'OutboxRow' })
export const OutboxPage = pageOf(OutboxRow, 'OutboxPage')

export const KillScope = z.enum(['global', 'owner', 'character'])
export const KillFlag = z.object({ scope: KillScope, scope_id: Id, set_by: Id, set_at: z.string() }).meta({ id: 'KillFlag' })
export type KillFlag = z.infer<typeof KillFlag>
export const KillFlags = z.object({ items: z.array(KillFlag) }).meta({ id: 'KillFlags' })

export const AuditEvent = z
  .object({
    position: z.int(),
    stream: z.string(),
    seq: z.int(),
    type: z.string(),
    visibility: z.string(),
    owner_id: Id.nullable(),
    run_id: Id.nullable(),
    at: z.string(),
    actor: z.string(),
    payload: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'AuditEvent' })
export type AuditEvent = z.infer<typeof AuditEvent>
export const AuditEventPage = pageOf(AuditEvent, 'AuditEventPage')
export const AuditQuery = z.object({
  stream: z.string().max(80).optional(),
  type: z.string().max(64).optional(),
  run_id: Id.optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
  before: z.coerce.number().int().min(1).optional(),
})
