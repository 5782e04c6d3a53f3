import type { OutlineNode } from '#contracts'
import { describe, expect, it } from 'vitest'
import { layoutTree } from './layout.ts'
import type { MapRow } from './layout.ts'

/** Nodes by short names: `parent>child`; a leading `q` makes a question. */
function outline(edges: readonly string[], change: (node: OutlineNode) => Partial<OutlineNode> = () => ({})): OutlineNode[] {
  const depths = new Map<string, number>()
  return edges.map((edge, seq) => {
    const [parent, id] = edge.split('>') as [string, string]
    const depth = parent === '' ? 0 : (depths.get(parent) ?? 0) + 1
    depths.set(id, depth)
    const kind = parent === '' ? ('root' as const) : id.startsWith('q') ? ('question' as const) : ('candidate' as const)
    const role = kind === 'root' ? ('none' as const) : kind === 'question' ? ('user' as const) : ('character' as const)
    const node: OutlineNode = {
      id,
      parent_id: parent === '' ? null : parent,
      seq,
      depth,
      kind,
      role,
      sealed: true,
      partial: false,
      deleted: false,
      canonical: false,
      run_id: null,
      label: id,
    }
    return { ...node, ...change(node) }
  })
}

function chain(length: number): string[] {
  const edges = ['>root']
  let parent = 'root'
  for (let at = 0; at < length; at += 1) {
    const id = at % 2 === 0 ? `q${at}` : `c${at}`
    edges.push(`${parent}>${id}`)
    parent = id
  }
  return edges
}

const names = (rows: readonly MapRow[]) =>
  rows.map((row) => (row.kind === 'node' ? `${row.lane}:${row.node.id}` : `${row.lane}:[${row.rounds}]`))

function layout(nodes: OutlineNode[], input: { path?: string[]; pinned?: string[]; opened?: string[] } = {}) {
  return layoutTree({ nodes, pathIds: new Set(input.path), pinnedIds: new Set(input.pinned), opened: new Set(input.opened) })
}

describe('layoutTree', () => {
  it('puts side branches below the place where they leave and lets the current path go straight on', () => {
    const nodes = outline(['>root', 'root>g', 'g>q1', 'q1>c1', 'q1>c2', 'c1>q2', 'q1>c3'])
    const rows = layout(nodes, { path: ['root', 'g', 'q1', 'c1', 'q2'] })
    expect(names(rows)).toEqual(['0:root', '0:g', '0:q1', '1:c2', '1:c3', '0:c1', '0:q2'])
    expect(rows.find((row) => row.key === 'c2')?.through).toEqual(['current'])
    expect(rows.find((row) => row.key === 'q2')?.out).toBe(null)
  })

  it('draws a partial dashed and the canonical before the current', () => {
    const nodes = outline(['>root', 'root>c1', 'root>c2'], (node) => ({ partial: node.id === 'c1', canonical: node.id === 'c2' }))
    const rows = layout(nodes, { path: ['root', 'c2'] })
    expect(rows.map((row) => row.edge)).toEqual([null, 'partial', 'canonical'])
  })

  it('folds a run without branches, counts its rounds, and opens it', () => {
    const nodes = outline(chain(12))
    expect(names(layout(nodes))).toEqual(['0:root', '0:[6]', '0:c11'])
    const [, fold] = layout(nodes)
    if (fold?.kind !== 'fold') throw new Error('a fold was expected')
    expect(layout(nodes, { opened: [fold.foldKey] }).length).toBe(13)
  })

  it('keeps what is looked at and what broke off out of folds', () => {
    const nodes = outline(chain(20), (node) => ({ partial: node.id === 'q8' }))
    const rows = names(layout(nodes, { pinned: ['q14'] }))
    expect(rows).toContain('0:q14')
    expect(rows).toContain('0:q8')
  })

  it('opens a long run in pieces', () => {
    const nodes = outline(chain(1000))
    const [, fold] = layout(nodes)
    if (fold?.kind !== 'fold') throw new Error('a fold was expected')
    const opened = layout(nodes, { opened: [fold.foldKey] })
    expect(opened.length).toBeLessThan(30)
    expect(opened.every((row) => row.kind === 'fold' || ['root', 'c999'].includes(row.node.id))).toBe(true)
  })

  it('loses no message of a tree, however it branches, and draws every line to an open lane', () => {
    let state = 7
    const random = (below: number) => {
      state = (state * 48271) % 2147483647
      return state % below
    }
    const ids = ['root']
    const edges = ['>root']
    for (let at = 0; at < 3000; at += 1) {
      const parent = ids[random(3) === 0 ? random(ids.length) : ids.length - 1] ?? 'root'
      const id = `${parent.startsWith('q') ? 'c' : 'q'}${at}`
      ids.push(id)
      edges.push(`${parent}>${id}`)
    }
    const rows = layout(outline(edges))
    expect(rows.reduce((count, row) => count + (row.kind === 'node' ? 1 : row.messages), 0)).toBe(3001)
    for (const [at, row] of rows.entries()) {
      if (at === 0) continue
      // The edge comes down the parent's lane: it passes this row there, or begins in the row above.
      const above = rows[at - 1]
      const reaches = row.lane === row.parentLane ? true : row.through[row.parentLane] != null
      expect(reaches || row.parentLane >= 40 || above?.lane === row.parentLane).toBe(true)
    }
  })

  it('takes a path of 10,000 messages without running out of stack', () => {
    expect(layout(outline(chain(10_000))).length).toBe(3)
  })
})
