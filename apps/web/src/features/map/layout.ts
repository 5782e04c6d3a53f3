import type { OutlineNode } from '#contracts'

/** How an edge looks: canonical before current before side; partial is dashed. */
export type EdgeStyle = 'canonical' | 'current' | 'side' | 'partial'

type RowBase = {
  key: string
  lane: number
  parentLane: number
  /** The edge that comes from the parent; null at the root. */
  edge: EdgeStyle | null
  /** Edges of outer lanes that pass this row, by lane. */
  through: readonly (EdgeStyle | null)[]
  /** The edge that goes on downwards in this lane. */
  out: EdgeStyle | null
}
export type MapRow =
  | (RowBase & {
      kind: 'node'
      node: OutlineNode
      onPath: boolean
      /** Folds the run together again that this row begins. */ refold: string | null
    })
  | (RowBase & {
      kind: 'fold'
      foldKey: string
      first: OutlineNode
      last: OutlineNode
      messages: number
      rounds: number
      onPath: boolean
      canonical: boolean
    })

const shortestFold = 6
/** A longer run opens in pieces: so many at most, and none smaller than this many messages. */
const longestOpen = 80
const piecesOfLongRun = 20
const smallestPiece = 20
/** Lanes beyond this are drawn on top of each other; keeps rows small in trees that branch off branches without end. */
export const mostLanes = 40

type LayoutInput = {
  nodes: readonly OutlineNode[]
  pathIds: ReadonlySet<string>
  pinnedIds: ReadonlySet<string>
  opened: ReadonlySet<string>
}

/**
 * A tree as rows, top down: the branches that leave a path stand below the place where they leave, indented by one lane; the path itself
 * goes straight on. Runs without any branching are folded to one row. Works without recursion: a path may be 10,000 messages long.
 */
export function layoutTree({ nodes, pathIds, pinnedIds, opened }: LayoutInput): MapRow[] {
  const childrenOf = new Map<string | null, OutlineNode[]>()
  for (const node of nodes) {
    const siblings = childrenOf.get(node.parent_id)
    if (siblings === undefined) childrenOf.set(node.parent_id, [node])
    else siblings.push(node)
  }
  for (const siblings of childrenOf.values()) siblings.sort((a, b) => a.seq - b.seq)

  const mainChild = (node: OutlineNode): OutlineNode | undefined => {
    const children = childrenOf.get(node.id) ?? []
    return (
      children.find((child) => pathIds.has(child.id)) ?? children.findLast((child) => child.canonical && !child.deleted) ?? children.at(-1)
    )
  }
  const styleOf = (node: OutlineNode): EdgeStyle =>
    node.partial ? 'partial' : node.canonical ? 'canonical' : pathIds.has(node.id) ? 'current' : 'side'
  const foldable = (node: OutlineNode) =>
    node.kind !== 'root' &&
    node.sealed &&
    !node.partial &&
    !node.deleted &&
    !pinnedIds.has(node.id) &&
    childrenOf.get(node.id)?.length === 1

  const rows: MapRow[] = []
  const active: (EdgeStyle | null)[] = []
  type Visit = { node: OutlineNode; lane: number; parentLane: number }
  const stack: Visit[] = (childrenOf.get(null) ?? []).map((node) => ({ node, lane: 0, parentLane: 0 })).reverse()

  const baseOf = (visit: Visit, key: string, last: OutlineNode): RowBase => {
    const main = mainChild(last)
    const out = main === undefined ? null : styleOf(main)
    active.length = Math.min(visit.lane, active.length)
    const through = active.slice(0, mostLanes)
    active[visit.lane] = out
    return {
      key,
      lane: visit.lane,
      parentLane: visit.parentLane,
      edge: visit.node.parent_id === null ? null : styleOf(visit.node),
      through,
      out,
    }
  }

  const emitNode = (visit: Visit, refold: string | null) => {
    rows.push({ ...baseOf(visit, visit.node.id, visit.node), kind: 'node', node: visit.node, onPath: pathIds.has(visit.node.id), refold })
  }

  const emitRun = (run: readonly OutlineNode[], lane: number, parentLane: number, level: number) => {
    const first = run[0]
    const last = run.at(-1)
    if (first === undefined || last === undefined) return
    const foldKey = `${first.id}:${level}`
    if (!opened.has(foldKey)) {
      const rounds = run.reduce((count, node) => count + (node.kind === 'question' ? 1 : 0), 0)
      const base = baseOf({ node: first, lane, parentLane }, `fold ${foldKey}`, last)
      rows.push({
        ...base,
        kind: 'fold',
        foldKey,
        first,
        last,
        messages: run.length,
        rounds,
        onPath: pathIds.has(first.id),
        canonical: first.canonical,
      })
    } else if (run.length > longestOpen) {
      const size = Math.max(smallestPiece, Math.ceil(run.length / piecesOfLongRun / 2) * 2)
      for (let at = 0; at < run.length; at += size) emitRun(run.slice(at, at + size), lane, at === 0 ? parentLane : lane, level + 1)
    } else {
      run.forEach((node, index) => emitNode({ node, lane, parentLane: index === 0 ? parentLane : lane }, index === 0 ? foldKey : null))
    }
  }

  for (let visit = stack.pop(); visit !== undefined; visit = stack.pop()) {
    const { node, lane, parentLane } = visit
    let last = node
    const run = collectRun(node)
    if (run.length >= shortestFold) {
      emitRun(run, lane, parentLane, 0)
      last = run.at(-1) ?? node
    } else {
      emitNode(visit, null)
    }
    const main = mainChild(last)
    if (main === undefined) continue
    stack.push({ node: main, lane, parentLane: lane })
    const sides = (childrenOf.get(last.id) ?? []).filter((child) => child !== main)
    for (const side of sides.reverse()) stack.push({ node: side, lane: lane + 1, parentLane: lane })
  }
  return rows

  /** The nodes from here on that follow each other without a branch and look the same. */
  function collectRun(start: OutlineNode): OutlineNode[] {
    const run: OutlineNode[] = []
    for (let node: OutlineNode | undefined = start; node !== undefined && foldable(node); node = childrenOf.get(node.id)?.[0]) {
      if (node.canonical !== start.canonical || pathIds.has(node.id) !== pathIds.has(start.id)) break
      run.push(node)
    }
    return run
  }
}
