import type { ContentStore, StoredContent } from '#kernel/ports/content-store'
import { saltedDigest } from '#kernel/record/chain'
import { referencesOf } from '../projection/rebuild-request.ts'
import type { LoadedNode, LoadedText, Projected, RecordedRewrite, ReferenceLoader } from '../projection/rebuild-request.ts'
import type { ContextSources, SourceNode } from './context-sources.ts'

/** A stored content with its digest computed afresh from its bytes and salt. */
export function loadedText(content: StoredContent): LoadedText | 'erased' {
  if (content.erased || content.body === null || content.salt === null) return 'erased'
  return { text: content.body, digest: Buffer.from(saltedDigest(content.salt, content.body)).toString('hex') }
}

export function loadedNode(node: SourceNode): LoadedNode {
  if (node.deleted || node.digest === null) return { node_id: node.node_id, erased: true, role: node.role }
  return { node_id: node.node_id, erased: false, role: node.role, parts: node.parts, digest: node.digest }
}

/** Loads, from what is stored now, everything that a recorded projection refers to: for the explanation and the replay (M10). */
export async function loadReferences(input: {
  projected: Projected
  rewrites: readonly RecordedRewrite[]
  ownerId: string
  contents: ContentStore
  sources: Pick<ContextSources, 'range'>
}): Promise<{ loader: ReferenceLoader; contents: Map<string, StoredContent> }> {
  const { contentIds, ranges } = referencesOf(input.projected, input.rewrites)
  const entityIds = input.projected.entities.flatMap((entity) => entity.content_id ?? [])
  const contents = await input.contents.get([...contentIds, ...entityIds])
  const nodes = new Map<string, LoadedNode[] | undefined>()
  for (const range of ranges) {
    const found = await input.sources.range(input.ownerId, range.from_node_id, range.to_node_id)
    nodes.set(rangeKey(range), found?.map(loadedNode))
  }
  return {
    contents,
    loader: {
      content: (id) => {
        const content = contents.get(id)
        return content === undefined ? undefined : loadedText(content)
      },
      path: (range) => nodes.get(rangeKey(range)),
    },
  }
}

export function rangeKey(range: { from_node_id: string; to_node_id: string }): string {
  return `${range.from_node_id}/${range.to_node_id}`
}
