import { useCallback, useEffect, useEffectEvent, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { ProblemNote } from '../../parts/problem-note.tsx'
import { Empty, Loading } from '../../parts/small.tsx'
import { addressWith, Link, navigate, paths, usePlace } from '../../routing/router.tsx'
import { phone } from '../../words/preferences.ts'
import { useFormat, useWords } from '../../words/words.ts'
import { layoutTree } from './layout.ts'
import { laneX, MapRowView, rowHeight } from './map-row.tsx'
import { useOutline } from './use-outline.ts'

const overscan = 12

/** The mirror tree as a map. Only the rows in view are drawn. */
export function TreeMap({ treeId }: { treeId: string }) {
  const words = useWords()
  const format = useFormat()
  const { route } = usePlace()
  const outline = useOutline(treeId)
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const pointedId = route.name === 'tree' ? route.node : null

  const headId = outline.data?.tree.head_node_id ?? null
  const rows = useMemo(() => {
    if (outline.data === undefined) return []
    const pinned = new Set([headId, pointedId].filter((id) => id !== null))
    return layoutTree({ nodes: outline.data.nodes, pathIds: new Set(outline.data.pathIds), pinnedIds: pinned, opened })
  }, [outline.data, opened, headId, pointedId])

  const toggle = useCallback((key: string) => {
    setOpened((before) => {
      const next = new Set(before)
      if (!next.delete(key)) next.add(key)
      return next
    })
  }, [])
  const go = useCallback(
    (nodeId: string) => navigate(addressWith({ drawer: window.matchMedia(phone).matches ? null : 'map' }, paths.node(treeId, nodeId))),
    [treeId],
  )

  if (outline.data === undefined) {
    if (outline.problem !== null) return <ProblemNote problem={outline.problem} onRetry={outline.reload} />
    return outline.progress === null ? (
      <Loading />
    ) : (
      <p role="status">{words.map.reading(format.number(outline.progress.read), format.number(outline.progress.all))}</p>
    )
  }
  if (outline.data.nodes.length <= 1) return <Empty title={words.map.emptyTitle} text={words.map.emptyText} />
  return (
    <div className="map">
      <div className="map-top">
        <Legend />
        <p className="faint">
          {words.map.nodes(format.number(outline.data.tree.node_count))}
          {pointedId !== null && (
            <>
              {' · '}
              <Link to={`${paths.tree(treeId)}?drawer=map`}>{words.map.toHere}</Link>
            </>
          )}
        </p>
      </div>
      <Rows rows={rows} headId={headId} pointedId={pointedId} onGo={go} onFold={toggle} label={words.map.list} />
    </div>
  )
}

type RowsProps = {
  rows: ReturnType<typeof layoutTree>
  headId: string | null
  pointedId: string | null
  onGo: (id: string) => void
  onFold: (key: string) => void
  label: string
}

function Rows({ rows, headId, pointedId, onGo, onFold, label }: RowsProps) {
  const scroller = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 800 })
  const measure = useCallback(() => {
    const element = scroller.current
    if (element !== null) setView({ top: element.scrollTop, height: element.clientHeight })
  }, [])

  useEffect(() => {
    const element = scroller.current
    if (element === null) return
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [measure])

  // The map opens at the place that is looked at.
  const focusId = pointedId ?? headId
  const focusAt = rows.findIndex((row) => row.kind === 'node' && row.node.id === focusId)
  const showFocus = useEffectEvent(() => {
    const element = scroller.current
    if (element === null) return
    const top = focusAt * rowHeight
    const inView = top >= element.scrollTop && top + rowHeight <= element.scrollTop + element.clientHeight
    if (!inView) element.scrollTop = top - element.clientHeight / 2
    measure()
  })
  const hasFocus = focusAt !== -1
  useLayoutEffect(() => {
    if (hasFocus) showFocus()
  }, [focusId, hasFocus])

  const first = Math.max(0, Math.floor(view.top / rowHeight) - overscan)
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / rowHeight) + overscan)
  const seen = rows.slice(first, last)
  return (
    <div className="map-scroll" ref={scroller} onScroll={measure}>
      <ol className="map-rows" style={{ height: rows.length * rowHeight }} aria-label={label}>
        {seen.map((row, index) => (
          <MapRowView
            key={row.key}
            row={row}
            top={(first + index) * rowHeight}
            here={row.kind === 'node' && row.node.id === headId}
            pointed={row.kind === 'node' && row.node.id === pointedId}
            onGo={onGo}
            onFold={onFold}
          />
        ))}
      </ol>
    </div>
  )
}

function Legend() {
  const words = useWords().map
  const edges = [
    ['canonical', words.legendCanonical],
    ['current', words.legendCurrent],
    ['side', words.legendSide],
    ['partial', words.legendPartial],
  ] as const
  return (
    <ul className="legend">
      {edges.map(([style, label]) => (
        <li key={style}>
          <svg width="26" height="12" aria-hidden="true">
            <path className={`edge edge-${style}`} d="M2 6H24" />
          </svg>
          {label}
        </li>
      ))}
      <li>
        <svg width={laneX(0) + 6} height="16" aria-hidden="true">
          <g className="fold-mark fold-mark-side">
            <rect x={3} y={1} width={12} height={14} rx={3} />
            <path d="M6 5h6M6 8h6M6 11h6" />
          </g>
        </svg>
        {words.legendFold}
      </li>
    </ul>
  )
}
