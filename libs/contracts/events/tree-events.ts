import { z } from 'zod'
import { Invariant, NodeKind, NodeRole } from '../enums.ts'
import { Id, Slug } from '../ids.ts'
import { count } from './definition.ts'
import type { EventDefinition } from './definition.ts'

/** What became of a tree’s nodes and its path. */
export const treeEvents = {
  'tree.created': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    payload: z.object({ realm_id: Id, root_node_id: Id, character_ids: z.array(Id) }),
  },
  'node.added': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    payload: z.object({
      node_id: Id,
      parent_id: Id.nullable(),
      kind: NodeKind,
      role: NodeRole,
      node_seq: count,
      content_id: Id.nullable(),
      run_id: Id.nullable(),
      edited_from_id: Id.nullable(),
    }),
  },
  'node.sealed': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    payload: z.object({ node_id: Id, content_id: Id, partial: z.boolean(), run_id: Id }),
  },
  'node.deleted': { version: 1, visibility: 'audit', stream: 'tree', payload: z.object({ node_id: Id, content_id: Id.nullable() }) },
  'head.moved': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    payload: z.object({ from_node_id: Id, to_node_id: Id, cause: z.enum(['ask', 'adopt', 'fork', 'edit', 'seal', 'delete']) }),
  },
  'candidate.adopted': { version: 1, visibility: 'internal', stream: 'tree', payload: z.object({ parent_id: Id, child_id: Id }) },
  'citation.created': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    payload: z.object({ citation_id: Id, node_id: Id, source_node_id: Id, snapshot_content_id: Id }),
  },
  'canon.extended': {
    version: 1,
    visibility: 'audit',
    stream: 'tree',
    payload: z.object({ canonization_id: Id, character_id: Id, from_node_id: Id, to_node_id: Id, diverges: z.boolean() }),
  },
  'canon.withdrawn': { version: 1, visibility: 'audit', stream: 'tree', payload: z.object({ canonization_id: Id }) },
  'invariant.refused': {
    version: 1,
    visibility: 'audit',
    stream: 'tree',
    payload: z.object({ invariant: Invariant, node_id: Id.nullable(), run_id: Id.nullable(), attempt: Slug }),
  },
  'compaction.started': {
    version: 1,
    visibility: 'internal',
    stream: 'tree',
    reserved: true,
    payload: z.object({ from_node_id: Id, to_node_id: Id }),
  },
  'compaction.finished': { version: 1, visibility: 'internal', stream: 'tree', reserved: true, payload: z.object({ content_id: Id }) },
} as const satisfies Record<string, EventDefinition>
