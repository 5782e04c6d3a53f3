import { useCallback, useEffect, useRef, useState } from 'react'
import type { NodeView, PathView, TreeView } from '#contracts'
import { treeApi } from '../../api/endpoints.ts'
import { put } from '../../store/resource.ts'
import { setShownNodes } from './shown-nodes.ts'

const firstPage = 60
const pageSize = 100
const largestPage = 500
const mostPages = 30

export type ShownPath = {
  tree: TreeView
  nodes: NodeView[]
  /** Where to page backwards from; null at the beginning. */
  before: string | null
  liveRunId: string | null
  /** True when another place than the present path is shown. */
  aside: boolean
}

export type PathHandle = {
  path: ShownPath | null
  problem: unknown
  loadingEarlier: boolean
  /** Reads again all that is shown. */
  reload: () => Promise<void>
  /** Reads again the end of the path alone and joins it to what is shown; all of it where the two do not join. */
  reloadEnd: () => Promise<void>
  loadEarlier: () => Promise<void>
  /** Shows a new question at once, after its parent. */
  append: (question: NodeView) => void
  /** Takes what another call said of the tree. */
  setTree: (tree: TreeView) => void
}

/** The path to show: the tree's present one, or the one that ends at a node which is not on it. */
export function usePath(treeId: string, nodeId: string | null): PathHandle {
  const [path, setPath] = useState<ShownPath | null>(null)
  const [problem, setProblem] = useState<unknown>(null)
  const [loadingEarlier, setLoadingEarlier] = useState(false)
  const ticket = useRef(0)
  const latest = useRef<ShownPath | null>(null)

  const show = useCallback(
    (next: ShownPath) => {
      latest.current = next
      setShownNodes(treeId, next.nodes)
      put(`tree:${treeId}`, next.tree)
      setPath(next)
    },
    [treeId],
  )

  const read = useCallback(
    async (endAlone: boolean) => {
      const mine = (ticket.current += 1)
      const current = latest.current
      try {
        const joined = endAlone && nodeId === null && current?.aside === false ? await readEnd(treeId, current) : null
        const next =
          joined ??
          (await readShown({
            treeId,
            nodeId,
            reach: current?.nodes[0]?.id ?? null,
            count: Math.max(firstPage, current?.nodes.length ?? 0),
          }))
        if (mine !== ticket.current) return
        setProblem(null)
        show({ ...next, nodes: reuse(current?.nodes ?? [], next.nodes) })
      } catch (error) {
        if (mine === ticket.current) setProblem(error)
      }
    },
    [treeId, nodeId, show],
  )
  const reload = useCallback(() => read(false), [read])
  const reloadEnd = useCallback(() => read(true), [read])

  useEffect(() => {
    // A node that is shown already needs no reading, only a look at it.
    if (nodeId !== null && latest.current?.nodes.some((node) => node.id === nodeId) === true) return
    void read(false)
  }, [nodeId, read])

  useEffect(() => {
    let readAt = Date.now()
    const refresh = () => {
      if (document.visibilityState !== 'visible' || Date.now() - readAt < 5000) return
      readAt = Date.now()
      void read(true)
    }
    window.addEventListener('focus', refresh)
    return () => window.removeEventListener('focus', refresh)
  }, [read])

  const loadEarlier = useCallback(async () => {
    const current = latest.current
    if (current === null || current.before === null) return
    const mine = ticket.current
    setLoadingEarlier(true)
    try {
      const leaf = current.nodes.at(-1)?.id
      const page = await treeApi.path(treeId, { leaf, before: current.before, limit: pageSize })
      const now = latest.current
      if (mine === ticket.current && now !== null) show({ ...now, nodes: [...page.nodes, ...now.nodes], before: page.before })
    } catch (error) {
      if (mine === ticket.current) setProblem(error)
    } finally {
      setLoadingEarlier(false)
    }
  }, [treeId, show])

  const append = useCallback(
    (question: NodeView) => {
      const current = latest.current
      if (current === null || current.nodes.some((node) => node.id === question.id)) return
      ticket.current += 1
      const parentAt = current.nodes.findIndex((node) => node.id === question.parent_id)
      show({ ...current, nodes: [...(parentAt === -1 ? current.nodes : current.nodes.slice(0, parentAt + 1)), question] })
    },
    [show],
  )

  const setTree = useCallback(
    (tree: TreeView) => {
      if (latest.current !== null) show({ ...latest.current, tree })
    },
    [show],
  )

  return { path, problem, loadingEarlier, reload, reloadEnd, loadEarlier, append, setTree }
}

async function readShown(input: { treeId: string; nodeId: string | null; reach: string | null; count: number }): Promise<ShownPath> {
  const present = await readBackTo({ ...input, leaf: undefined })
  if (input.nodeId === null || present.nodes.some((node) => node.id === input.nodeId)) return { ...present, aside: false }
  const aside = await readBackTo({ ...input, leaf: input.nodeId })
  return { ...aside, liveRunId: present.liveRunId, aside: true }
}

/** Pages backwards until the node `reach` is in, or `count` nodes where it is not on this path. */
async function readBackTo({
  treeId,
  leaf,
  reach,
  count,
}: {
  treeId: string
  leaf: string | undefined
  reach: string | null
  count: number
}): Promise<Omit<ShownPath, 'aside'>> {
  let page: PathView = await treeApi.path(treeId, { leaf, limit: Math.min(count, largestPage) })
  const { tree, live_run_id: liveRunId } = page
  let nodes = page.nodes
  for (
    let pages = 1;
    pages < mostPages && page.before !== null && nodes.length < count && !nodes.some((node) => node.id === reach);
    pages += 1
  ) {
    page = await treeApi.path(treeId, { leaf: leaf ?? tree.head_node_id, before: page.before, limit: largestPage })
    nodes = [...page.nodes, ...nodes]
  }
  return { tree, liveRunId, nodes, before: page.before }
}

/** The newest page put after the older nodes that are shown; null where it does not follow on any of them. */
async function readEnd(treeId: string, shown: ShownPath): Promise<ShownPath | null> {
  const page = await treeApi.path(treeId, { limit: firstPage })
  const first = page.nodes[0]
  const common = { tree: page.tree, liveRunId: page.live_run_id, aside: false }
  if (page.before === null || first === undefined) return { ...common, nodes: page.nodes, before: page.before }
  const at = shown.nodes.findIndex((node) => node.id === first.parent_id)
  return at === -1 ? null : { ...common, nodes: [...shown.nodes.slice(0, at + 1), ...page.nodes], before: shown.before }
}

/** Keeps the objects of messages that have not changed, so that they are not drawn again. */
function reuse(before: readonly NodeView[], now: NodeView[]): NodeView[] {
  const known = new Map(before.map((node) => [node.id, node]))
  return now.map((node) => {
    const same = known.get(node.id)
    return same !== undefined && (same === node || JSON.stringify(same) === JSON.stringify(node)) ? same : node
  })
}
