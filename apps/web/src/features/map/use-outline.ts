import { useEffect, useState } from 'react'
import type { OutlineNode, TreeView } from '#contracts'
import { treeApi } from '../../api/endpoints.ts'
import { useResource } from '../../store/resource.ts'

const pageSize = 5000

export type WholeOutline = { tree: TreeView; nodes: OutlineNode[]; pathIds: string[] }

/** The shape of a whole tree, read in pages; `progress` = how many nodes are read of how many, while it goes on. */
export function useOutline(treeId: string) {
  const [progress, setProgress] = useState<{ read: number; all: number } | null>(null)
  const resource = useResource<WholeOutline>(`outline:${treeId}`, async () => {
    const nodes: OutlineNode[] = []
    for (let after = -1; ;) {
      const page = await treeApi.outline(treeId, { after_seq: after, limit: pageSize })
      nodes.push(...page.nodes)
      const last = page.nodes.at(-1)
      if (!page.more || last === undefined) return { tree: page.tree, nodes, pathIds: page.path_node_ids }
      after = last.seq
      setProgress({ read: nodes.length, all: page.tree.node_count })
    }
  })
  const { loading } = resource
  useEffect(() => {
    if (!loading) setProgress(null)
  }, [loading])
  return { ...resource, progress }
}
