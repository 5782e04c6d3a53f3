import { RequestPatch } from '#contracts'
import type { ContextPiece, EventPayload, ModelPurpose } from '#contracts'
import type { Ids } from '#kernel/ports/clock'
import type { RunRow } from '#kernel/ports/run-store'
import { canonicalJson } from '#kernel/record/canonical-json'
import { saltedDigest } from '#kernel/record/chain'
import type { ListenerVeto, Rewrite } from '#kernel/reducer/commands'
import { RefusedChangeError } from '../bus/guards.ts'
import type { Guards } from '../bus/guards.ts'
import type { NodeValue, ShownRun } from '../bus/nodes.ts'
import { applyPatch, UnfitPatchError } from '../projection/apply-patch.ts'
import type { PatchableMessage } from '../projection/apply-patch.ts'
import type { RequestMessage } from '../projection/layout-1.ts'
import { layoutOf } from '../projection/layouts.ts'
import type { CountTokens } from '../prompt/entity.ts'
import { MESSAGE_TOKENS, REQUEST_TOKENS } from '../prompt/prepare-entities.ts'
import type { SourceNode } from './context-sources.ts'
import type { PendingContent } from './ports.ts'

/** Patches that one listener may answer with. */
const PATCHES_MAX = 16
const Patches = RequestPatch.array().max(PATCHES_MAX)

export type RewriteInput = {
  run: RunRow
  guards: Guards
  turn: number
  purpose: ModelPurpose
  projection: EventPayload<'context.projected'>
  /** As assembled: what the projection's pieces render to. */
  messages: readonly RequestMessage[]
  nodes: readonly SourceNode[]
  countTokens: CountTokens
  ids: Ids
}

/** A request after its listeners: what is sent, how it came to be, and the no, where there is one. `used`: tokens of what is sent. */
export type Rewritten = {
  messages: readonly RequestMessage[]
  rewrites: Rewrite[]
  contents: PendingContent[]
  used: number
  veto: ListenerVeto | null
}

/** The run as listeners see it. */
export function shownRun({ id, kind, owner_id, character_id, tree_id }: RunRow): ShownRun {
  return { id, kind, owner_id, character_id, tree_id }
}

/**
 * `llm.pre_request`: each listener is shown the messages as they are by then and answers with patches, or says no (spec/1, step 5). Each patch
 * is content, derived from all that its listener was shown, so that it goes when any of that is erased. Our own contract stays, the question
 * is asked, and what comes out still fits the window; the trust of the context stays what it was, whatever was taken out of it.
 */
export async function rewriteRequest(input: RewriteInput): Promise<Rewritten> {
  const { run, guards, turn, purpose, projection, ids } = input
  const { tokens, trust } = projection
  if (!guards.listensOn('llm.pre_request')) {
    return { messages: input.messages, rewrites: [], contents: [], used: tokens.used, veto: null }
  }
  let messages = patchable(input)
  let used = tokens.used
  const first: NodeValue<'llm.pre_request'> = { run: shownRun(run), turn, purpose, trust, messages: messages.map(shown) }
  const passed = await guards.pass('llm.pre_request', first, (value, change) => {
    const rewritten = patchesOf(change).reduce<readonly PatchableMessage[]>(patched, messages)
    const needed = rewritten.reduce((sum, { content }) => sum + MESSAGE_TOKENS + input.countTokens(content), REQUEST_TOKENS)
    if (needed > tokens.window - tokens.reserve - tokens.tools) throw new RefusedChangeError('context_overflow')
    messages = rewritten
    used = needed
    return { ...value, messages: messages.map(shown) }
  })
  const derivedFrom = contentsShown(input)
  const contents: PendingContent[] = []
  const rewrites = passed.taken.flatMap(({ plugin, version, change }) =>
    patchesOf(change).map((patch): Rewrite => {
      const salt = ids.bytes(32)
      const text = canonicalJson(patch)
      const id = ids.next()
      contents.push({ id, owner_id: run.owner_id, media_type: 'application/json', content: text, salt, derived_from: derivedFrom })
      const digest = Buffer.from(saltedDigest(salt, text)).toString('hex')
      return { plugin, plugin_version: version, reference: patch.reference, patch_content_id: id, digest }
    }),
  )
  return { messages, rewrites, contents, used, veto: passed.veto }
}

/** The patches that a listener answered with; what is none counts as a no. */
function patchesOf(change: unknown): RequestPatch[] {
  const parsed = Patches.safeParse(change)
  if (!parsed.success) throw new RefusedChangeError('not_a_patch')
  return parsed.data
}

function patched(messages: readonly PatchableMessage[], patch: RequestPatch): readonly PatchableMessage[] {
  try {
    return applyPatch(messages, patch)
  } catch (error) {
    if (error instanceof UnfitPatchError) throw new RefusedChangeError(error.fault)
    throw error
  }
}

function shown({ role, content, json, reference = null }: PatchableMessage): NodeValue<'llm.pre_request'>['messages'][number] {
  return { role, text: content, is_text: !json, reference }
}

/** The messages with where each comes from, and what of them nobody changes: our own contract; and the question, which is always asked. */
function patchable({ projection, messages, nodes }: RewriteInput): readonly PatchableMessage[] {
  const isOurs = new Set(
    projection.entities.flatMap(({ source, forbid_override, content_id: id }) =>
      source === 'system_contract' && forbid_override ? [id] : [],
    ),
  )
  const question = projection.entities.find(({ identifier }) => identifier === 'question')?.source_id ?? null
  const references = referencesOf(projection, nodes)
  return messages.map((message, index): PatchableMessage => {
    const reference = references[index] ?? null
    return {
      ...message,
      reference,
      ...(reference !== null && isOurs.has(reference) ? { fixed: true as const } : {}),
      ...(reference !== null && reference === question ? { kept: true as const } : {}),
    }
  })
}

/** Where each message comes from: its content, or the node on the path. */
function referencesOf({ pieces, layout_version }: RewriteInput['projection'], nodes: readonly SourceNode[]): string[] {
  const layout = layoutOf(layout_version)
  return pieces.flatMap((piece) =>
    piece.kind === 'path' ? nodesOf(piece, nodes).flatMap((node) => layout.nodeMessages(node).map(() => node.node_id)) : [piece.content_id],
  )
}

/** Every content whose text is in a request, and so in front of whoever is shown it. */
export function contentsShown({ projection, nodes }: Pick<RewriteInput, 'projection' | 'nodes'>): string[] {
  const ids = projection.pieces.flatMap((piece) =>
    piece.kind === 'path' ? nodesOf(piece, nodes).map((node) => node.content_id) : [piece.content_id],
  )
  return [...new Set(ids.filter((id) => id !== null))]
}

/** The living nodes of a piece of the path. */
function nodesOf({ from_node_id, to_node_id }: Extract<ContextPiece, { kind: 'path' }>, nodes: readonly SourceNode[]): SourceNode[] {
  const from = nodes.findIndex(({ node_id }) => node_id === from_node_id)
  const to = nodes.findIndex(({ node_id }) => node_id === to_node_id)
  return from === -1 ? [] : nodes.slice(from, to + 1).filter(({ deleted }) => !deleted)
}
