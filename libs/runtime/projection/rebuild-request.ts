import { RequestPatch } from '#contracts'
import type { ContextPiece, Digest, EventPayload, Id, MessageRole, NodePart, NodeRole } from '#contracts'
import { applyPatch, UnfitPatchError } from './apply-patch.ts'
import type { RequestMessage, RequestRole } from './layout-1.ts'
import { layoutOf } from './layouts.ts'
import type { Layout } from './layouts.ts'
import { renderRequest } from './render-request.ts'
import { pathDigest, requestDigest } from './request-digest.ts'

export type Projected = EventPayload<'context.projected'>

/** A rewrite as recorded: its patch is content like any other text. */
export type RecordedRewrite = { patch_content_id: Id; digest: Digest }

/** A content as it stands now. `digest` is computed afresh from the bytes and their salt, never copied from a column. */
export type LoadedText = { text: string; digest: Digest }

/** A node as it stands now. The texts of `parts`, joined, are the bytes that `digest` covers; the same rule for `digest`. */
export type LoadedNode =
  { node_id: Id; erased: false; role: NodeRole; parts: readonly NodePart[]; digest: Digest } | { node_id: Id; erased: true; role: NodeRole }

/** Where references lead. `undefined` = there is no such thing, which is a fault; 'erased' = it was there. */
export type ReferenceLoader = {
  content(id: Id): LoadedText | 'erased' | undefined
  /** All nodes from `from_node_id` down to `to_node_id` on their path, oldest first, deleted and empty ones included. */
  path(range: { from_node_id: Id; to_node_id: Id }): readonly LoadedNode[] | 'erased' | undefined
}

/** A reference that does not lead to what was recorded. `reference` is the content's or the first node's id. */
export type ReferenceFault = { reference: Id; fault: 'missing' | 'digest' | 'role' | 'nodes' | 'patch' }

/** A message as rebuilt; null where its text is erased. */
export type RebuiltMessage = { role: RequestRole; content: string | null; json?: true }

type Found = {
  messages: RebuiltMessage[]
  /** Per path piece, in order: ids of the nodes that became messages, erased ones included. */
  ranges: Id[][]
}

/** `rebuilt`: every reference led to bytes with the recorded digest. `erased` lists content and node ids. Faults win over erasures. */
export type Rebuilt =
  | ({ result: 'rebuilt'; bodyText: string } & Found)
  | ({ result: 'erased'; erased: Id[] } & Found)
  | ({ result: 'different'; faults: ReferenceFault[] } & Found)

/** What has to be loaded before `rebuildRequest` can run. */
export function referencesOf(
  projected: Projected,
  rewrites: readonly RecordedRewrite[] = [],
): {
  contentIds: Id[]
  ranges: { from_node_id: Id; to_node_id: Id }[]
} {
  const contentIds = new Set<Id>([projected.frame_content_id, ...rewrites.map((rewrite) => rewrite.patch_content_id)])
  const ranges: { from_node_id: Id; to_node_id: Id }[] = []
  for (const piece of projected.pieces) {
    if (piece.kind !== 'path') contentIds.add(piece.content_id)
    else ranges.push({ from_node_id: piece.from_node_id, to_node_id: piece.to_node_id })
  }
  return { contentIds: [...contentIds], ranges }
}

/** In whose name the line of an erased node stands; its parts are gone, so it is one line. */
const erasedRoles: Record<NodeRole, RequestRole> = { none: 'user', user: 'user', character: 'assistant', narrator: 'system' }

/** The roles in which a piece of each kind may stand. */
const requestRoles: Record<'content' | 'message', Record<MessageRole, RequestRole | null>> = {
  content: { system: 'system', user: 'user', assistant: 'assistant', tool: null },
  message: { system: null, user: null, assistant: 'assistant', tool: 'tool' },
}

type Notes = Found & { erased: Id[]; faults: ReferenceFault[] }

function rebuildContent(piece: Exclude<ContextPiece, { kind: 'path' }>, loader: ReferenceLoader, notes: Notes): void {
  const role = requestRoles[piece.kind][piece.role]
  if (role === null) {
    notes.faults.push({ reference: piece.content_id, fault: 'role' })
    return
  }
  const loaded = loader.content(piece.content_id)
  if (loaded === undefined) notes.faults.push({ reference: piece.content_id, fault: 'missing' })
  else if (loaded === 'erased') notes.erased.push(piece.content_id)
  else if (loaded.digest !== piece.digest) notes.faults.push({ reference: piece.content_id, fault: 'digest' })
  const content = loaded === undefined || loaded === 'erased' ? null : loaded.text
  notes.messages.push({ role, content, ...(piece.kind === 'message' ? { json: true as const } : {}) })
}

function rebuildPath(piece: Extract<ContextPiece, { kind: 'path' }>, loader: ReferenceLoader, layout: Layout, notes: Notes): void {
  const loaded = loader.path({ from_node_id: piece.from_node_id, to_node_id: piece.to_node_id })
  if (loaded === undefined || loaded === 'erased') {
    if (loaded === 'erased') notes.erased.push(piece.from_node_id, ...(piece.to_node_id === piece.from_node_id ? [] : [piece.to_node_id]))
    else notes.faults.push({ reference: piece.from_node_id, fault: 'missing' })
    notes.ranges.push([])
    notes.messages.push({ role: 'user', content: null })
    return
  }
  if (loaded[0]?.node_id !== piece.from_node_id || loaded.at(-1)?.node_id !== piece.to_node_id) {
    notes.faults.push({ reference: piece.from_node_id, fault: 'nodes' })
  }
  const living: Extract<LoadedNode, { erased: false }>[] = []
  for (const node of loaded) if (!node.erased && layout.nodeMessages(node).length > 0) living.push(node)
  const erased = loaded.filter((node) => node.erased)
  // An erased node was either part of the request, or deleted before it was made and part of nothing: the recorded count tells.
  const whole = living.length === piece.nodes
  const contributed = new Set<Id>()
  if (whole) {
    if (pathDigest(living) !== piece.digest) notes.faults.push({ reference: piece.from_node_id, fault: 'digest' })
  } else if (living.length > piece.nodes || living.length + erased.length < piece.nodes) {
    notes.faults.push({ reference: piece.from_node_id, fault: 'nodes' })
  } else {
    for (const node of erased) {
      notes.erased.push(node.node_id)
      contributed.add(node.node_id)
    }
  }
  for (const node of living) contributed.add(node.node_id)
  notes.ranges.push(loaded.filter((node) => contributed.has(node.node_id)).map((node) => node.node_id))
  for (const node of loaded) {
    if (!node.erased) notes.messages.push(...layout.nodeMessages(node))
    else if (contributed.has(node.node_id)) notes.messages.push({ role: erasedRoles[node.role], content: null })
  }
}

/** The patch that a rewrite names; null where it is gone or not what was recorded, which is noted. */
function findPatch({ patch_content_id: reference, digest }: RecordedRewrite, loader: ReferenceLoader, notes: Notes): RequestPatch | null {
  const loaded = loader.content(reference)
  if (loaded === 'erased') {
    notes.erased.push(reference)
    return null
  }
  if (loaded === undefined || loaded.digest !== digest) {
    notes.faults.push({ reference, fault: loaded === undefined ? 'missing' : 'digest' })
    return null
  }
  const patch = RequestPatch.safeParse(parsedJson(loaded.text))
  if (!patch.success) notes.faults.push({ reference, fault: 'patch' })
  return patch.data ?? null
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // No JSON is no patch, which is what the caller asks.
    return null
  }
}

/** Applies what listeners changed, in their order. Where anything is missing its places are not what they were, and nothing is applied. */
function rewrite(rewrites: readonly RecordedRewrite[], loader: ReferenceLoader, notes: Notes): void {
  const patches = rewrites.map((one) => findPatch(one, loader, notes))
  if (notes.faults.length > 0 || notes.erased.length > 0 || !notes.messages.every(hasText)) return
  let messages: RequestMessage[] = notes.messages.filter(hasText)
  for (const [index, patch] of patches.entries()) {
    try {
      if (patch) messages = applyPatch(messages, patch)
    } catch (error) {
      if (!(error instanceof UnfitPatchError)) throw error
      notes.faults.push({ reference: rewrites[index]?.patch_content_id ?? '', fault: 'patch' })
      return
    }
  }
  notes.messages = messages
}

const hasText = (message: RebuiltMessage): message is RequestMessage => message.content !== null

/**
 * From a recorded projection, its references and what listeners changed of it back to the bytes that were sent: what the assertion before each model call, the
 * explanation and the replay use. Runs no assembler, no lore, no tokenizer (decision 14). Throws UnknownLayoutError.
 */
export function rebuildRequest(projected: Projected, loader: ReferenceLoader, rewrites: readonly RecordedRewrite[] = []): Rebuilt {
  const layout = layoutOf(projected.layout_version)
  const notes: Notes = { messages: [], ranges: [], erased: [], faults: [] }
  const frame = loader.content(projected.frame_content_id)
  if (frame === undefined) notes.faults.push({ reference: projected.frame_content_id, fault: 'missing' })
  else if (frame === 'erased') notes.erased.push(projected.frame_content_id)
  else if (frame.digest !== projected.frame_digest) notes.faults.push({ reference: projected.frame_content_id, fault: 'digest' })
  for (const piece of projected.pieces) {
    if (piece.kind !== 'path') rebuildContent(piece, loader, notes)
    else rebuildPath(piece, loader, layout, notes)
  }
  rewrite(rewrites, loader, notes)
  const { messages, ranges, erased, faults } = notes
  if (faults.length > 0) return { result: 'different', faults, messages, ranges }
  const texts = messages.filter(hasText)
  if (erased.length > 0 || frame === undefined || frame === 'erased' || texts.length < messages.length) {
    return { result: 'erased', erased: [...new Set(erased)], messages, ranges }
  }
  const bodyText = renderRequest({ frame: frame.text, messages: texts, layoutVersion: projected.layout_version })
  return { result: 'rebuilt', bodyText, messages, ranges }
}

/** Outcome of a replay, in the words of the API. `bodyText` is null unless every byte was found. */
export type Replayed = { result: 'identical' | 'different' | 'erased'; bodyText: string | null; rebuiltDigest: Digest; rebuilt: Rebuilt }

/**
 * Rebuilds a past request and compares it with the digest that llm.requested recorded. Identical digests mean identical bytes: each part's
 * digest was computed afresh from what was found, and the request's digest covers them all. An erased part is no difference (M10).
 */
export function replayRequest(input: {
  projected: Projected
  rewrites?: readonly RecordedRewrite[]
  /** Null where nothing was requested with it in the end. */
  recordedDigest: Digest | null
  loader: ReferenceLoader
}): Replayed {
  const { projected, rewrites = [], loader } = input
  const rebuilt = rebuildRequest(projected, loader, rewrites)
  const patches = rewrites.map(({ digest }) => digest)
  const rebuiltDigest = requestDigest(projected, patches)
  const sameDigest = input.recordedDigest === null || rebuiltDigest === input.recordedDigest
  const bodyText = rebuilt.result === 'rebuilt' ? rebuilt.bodyText : null
  if (!sameDigest || rebuilt.result === 'different') return { result: 'different', bodyText, rebuiltDigest, rebuilt }
  return { result: rebuilt.result === 'erased' ? 'erased' : 'identical', bodyText, rebuiltDigest, rebuilt }
}
