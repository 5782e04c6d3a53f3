import { z } from 'zod'
import { NodeAuthor, NodeKind, NodeRole, PartKind } from '../enums.ts'
import { Id } from '../ids.ts'
import { MessageText, PageQuery, Zone, pageOf } from './common.ts'

export const CreateTree = z
  .object({
    character_id: Id,
    title: z.string().trim().max(400).optional(),
    realm_id: Id.optional(),
    user_persona_version_id: Id.optional(),
    zone: Zone.default('UTC'),
  })
  .meta({ id: 'CreateTree' })
export type CreateTree = z.infer<typeof CreateTree>

export const TreeView = z
  .object({
    id: Id,
    title: z.string(),
    character_ids: z.array(Id),
    realm: z.object({ id: Id, kind: z.string(), name: z.string() }),
    root_node_id: Id,
    head_node_id: Id,
    revision: z.int(),
    node_count: z.int(),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'Tree' })
export type TreeView = z.infer<typeof TreeView>
export const TreePage = pageOf(TreeView, 'TreePage')
export const UpdateTree = z.object({ title: z.string().trim().min(1).max(400) }).meta({ id: 'UpdateTree' })
export type UpdateTree = z.infer<typeof UpdateTree>
export const TreeListQuery = PageQuery.extend({ character_id: Id.optional() })

/** A node without its text: enough to draw the map. */
export const OutlineNode = z
  .object({
    id: Id,
    parent_id: Id.nullable(),
    seq: z.int(),
    depth: z.int(),
    kind: NodeKind,
    role: NodeRole,
    sealed: z.boolean(),
    partial: z.boolean(),
    deleted: z.boolean(),
    canonical: z.boolean(),
    run_id: Id.nullable(),
    /** The first characters of its text, for a label. */
    label: z.string(),
  })
  .meta({ id: 'OutlineNode' })
export type OutlineNode = z.infer<typeof OutlineNode>
/** In order of `seq`; go on with `after_seq` = the last one's. */
export const Outline = z
  .object({ tree: TreeView, nodes: z.array(OutlineNode), path_node_ids: z.array(Id), more: z.boolean() })
  .meta({ id: 'Outline' })
export type Outline = z.infer<typeof Outline>
export const OutlineQuery = z.object({
  after_seq: z.coerce.number().int().min(-1).default(-1),
  limit: z.coerce.number().int().min(1).max(5000).default(2000),
})

export const CitationView = z
  .object({ id: Id, source_tree_id: Id, source_node_id: Id, text: z.string().nullable(), from: z.int(), to: z.int() })
  .meta({ id: 'Citation' })
export type CitationView = z.infer<typeof CitationView>

export const NodePart = z.object({ kind: PartKind, text: z.string() }).meta({ id: 'NodePart' })
export type NodePart = z.infer<typeof NodePart>

export const NodeView = z
  .object({
    id: Id,
    tree_id: Id,
    parent_id: Id.nullable(),
    kind: NodeKind,
    role: NodeRole,
    author: NodeAuthor,
    seq: z.int(),
    depth: z.int(),
    sealed: z.boolean(),
    partial: z.boolean(),
    deleted: z.boolean(),
    canonical: z.boolean(),
    speaker_character_id: Id.nullable(),
    speaker_name: z.string().nullable(),
    run_id: Id.nullable(),
    edited_from_id: Id.nullable(),
    /** Ordered parts; empty for a deleted or erased node (decision 11). */
    parts: z.array(NodePart),
    /** The text parts joined: what is quoted, canonized and searched. */
    text: z.string(),
    /** Ids of all live siblings of the same kind in order, itself included. */
    sibling_ids: z.array(Id),
    citations: z.array(CitationView),
    at: z.string(),
  })
  .meta({ id: 'Node' })
export type NodeView = z.infer<typeof NodeView>

/** Nodes from the oldest of this page to the leaf, root left out. `before` pages backwards. */
export const PathView = z
  .object({ tree: TreeView, leaf_id: Id, nodes: z.array(NodeView), before: Id.nullable(), live_run_id: Id.nullable() })
  .meta({ id: 'Path' })
export type PathView = z.infer<typeof PathView>
export const PathQuery = z.object({
  leaf: Id.optional(),
  before: Id.optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
})

/** A passage of a node: UTF-16 offsets into its text. */
export const CitationInput = z
  .object({ node_id: Id, from: z.int().min(0), to: z.int().min(1) })
  .refine((range) => range.to > range.from, { message: 'to must be greater than from', path: ['to'] })
export type CitationInput = z.infer<typeof CitationInput>

export const Effort = z.enum(['low', 'medium', 'high'])

export const Ask = z
  .object({
    text: MessageText,
    /** The node that is answered; absent = the head of the current path. */
    parent_id: Id.optional(),
    /** The tree revision the client last saw; an older one is told of the newer head (T3). */
    revision: z.int().min(1).optional(),
    citations: z.array(CitationInput).max(20).default([]),
    effort: Effort.optional(),
  })
  .meta({ id: 'Ask' })
export type Ask = z.infer<typeof Ask>

export const RunAccepted = z
  .object({
    run_id: Id,
    tree_id: Id,
    question: NodeView.nullable(),
    question_id: Id,
    /** Reserved: the answer's node will have this id (decision 23). */
    candidate_id: Id,
    state: z.enum(['queued', 'running', 'suspended', 'finished', 'interrupted', 'failed']),
    /** 0 = has the seat; n = n-th in line. */
    queue_position: z.int().min(0),
    revision: z.int(),
    /** True when the tree had moved on from the revision that the client named. */
    newer_head: z.boolean(),
    events_url: z.string(),
  })
  .meta({ id: 'RunAccepted' })
export type RunAccepted = z.infer<typeof RunAccepted>

export const Regenerate = z.object({ effort: Effort.optional() }).meta({ id: 'Regenerate' })
export type Regenerate = z.infer<typeof Regenerate>
export const EditNode = z.object({ text: MessageText, effort: Effort.optional() }).meta({ id: 'EditNode' })
export type EditNode = z.infer<typeof EditNode>
/** Editing a question forks and asks; editing an answer makes a sibling written by the owner (decision 40). */
export const Edited = z.object({ node: NodeView, run: RunAccepted.nullable() }).meta({ id: 'Edited' })
export type Edited = z.infer<typeof Edited>
export const HeadMoved = z.object({ tree: TreeView, head: NodeView }).meta({ id: 'HeadMoved' })
export type HeadMoved = z.infer<typeof HeadMoved>

export const CanonizationView = z
  .object({
    id: Id,
    tree_id: Id,
    character_id: Id,
    from_node_id: Id,
    to_node_id: Id,
    created_at: z.string(),
    withdrawn_at: z.string().nullable(),
  })
  .meta({ id: 'Canonization' })
export type CanonizationView = z.infer<typeof CanonizationView>
export const Canonized = z
  .object({ canonization: CanonizationView, warnings: z.array(z.object({ code: z.enum(['diverging_canon']), canonization_id: Id })) })
  .meta({ id: 'Canonized' })
export type Canonized = z.infer<typeof Canonized>
export const DeleteNodeQuery = z.object({ withdraw: z.stringbool().default(false) })
