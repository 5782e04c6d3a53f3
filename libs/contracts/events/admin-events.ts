import { z } from 'zod'
import { Digest, Id, Slug } from '../ids.ts'
import { CapabilityClass } from '../tools.ts'
import { count } from './definition.ts'
import type { EventDefinition } from './definition.ts'

/** What became of characters, and of the instance. */
export const adminEvents = {
  'character.created': {
    version: 1,
    visibility: 'internal',
    stream: 'character',
    payload: z.object({ persona_version_id: Id, card_content_id: Id }),
  },
  'character.versioned': {
    version: 1,
    visibility: 'audit',
    stream: 'character',
    payload: z.object({ persona_version_id: Id, card_content_id: Id }),
  },
  'character.accepted': { version: 1, visibility: 'audit', stream: 'character', payload: z.object({ persona_version_id: Id }) },
  'character.deleted': { version: 1, visibility: 'audit', stream: 'character', payload: z.object({}) },
  'owner.created': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ owner_id: Id, role: z.enum(['user', 'admin']) }),
  },
  'token.issued': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ token_id: Id, owner_id: Id }) },
  'token.revoked': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ token_id: Id, owner_id: Id }) },
  'tool_source.added': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ source_id: Id, kind: z.enum(['http', 'openapi', 'mcp']), offered: count }),
  },
  'tool_source.accepted': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ source_id: Id, tools: z.array(z.object({ name: Slug, version: Digest, capability: CapabilityClass })) }),
  },
  /** Seen to offer other tools than before; `lost` had been accepted and are tools no longer. */
  'tool_source.changed': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ source_id: Id, changed: count, lost: count }),
  },
  'tool_source.removed': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ source_id: Id }) },
  'session.opened': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ session_id: Id, owner_id: Id }) },
  'content.read_by_admin': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ admin_id: Id, owner_id: Id, run_id: Id }),
  },
  'kill.set': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ scope: z.enum(['global', 'owner', 'character']), scope_id: Id, by: Id }),
  },
  'kill.lifted': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ scope: z.enum(['global', 'owner', 'character']), scope_id: Id, by: Id }),
  },
  /** Everything was read from an archive; what its ledger says was erased since, is (decision 6). */
  'archive.restored': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ archive_digest: Digest, from_epoch: z.int().min(1), to_epoch: z.int().min(2), erased: count }),
  },
  /** A signed statement of all heads; it covers this event too (decision 18). `key`: digest of the public key. */
  'anchor.signed': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ anchor: z.int().min(1), previous_hash: Digest, key: Digest }),
  },
  'bundle.proposed': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ hash: Digest, by: Id }) },
  'bundle.evaluated': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ hash: Digest, accepted: z.boolean(), by: Id.nullable() }),
  },
  /** The active pointer moved: from, to, why, and by whom; nobody for what a release brings (K8). */
  'bundle.activated': {
    version: 1,
    visibility: 'audit',
    stream: 'admin',
    payload: z.object({ from: Digest.nullable(), to: Digest, reason: z.enum(['release', 'promote', 'rollback']), by: Id.nullable() }),
  },
  'content.erased': { version: 1, visibility: 'audit', stream: 'admin', payload: z.object({ content_id: Id, cause: Slug }) },
} as const satisfies Record<string, EventDefinition>
