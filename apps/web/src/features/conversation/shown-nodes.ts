import type { NodeView } from '#contracts'

let shown: { treeId: string; nodes: readonly NodeView[] } | null = null

/** The conversation tells what it shows, so that search can look through it. */
export function setShownNodes(treeId: string, nodes: readonly NodeView[]): void {
  shown = { treeId, nodes }
}

export function shownNodes(treeId: string): readonly NodeView[] {
  return shown?.treeId === treeId ? shown.nodes : []
}
