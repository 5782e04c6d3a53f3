import { memo } from 'react'
import { plainExcerpt } from '../../parts/plain-excerpt.ts'
import { PartialMark, Seal } from '../../parts/small.tsx'
import { testIds } from '../../test-ids.ts'
import { languageOfText } from '../../words/text-language.ts'
import { useWords } from '../../words/words.ts'
import type { EdgeStyle, MapRow } from './layout.ts'

export const rowHeight = 32
const middle = rowHeight / 2
const wideLanes = 8

/** Where a lane stands: the first lanes apart, deeper ones close together, so that a narrow drawer holds them. */
export function laneX(lane: number): number {
  return 12 + Math.min(lane, wideLanes) * 18 + Math.max(0, Math.min(lane, 40) - wideLanes) * 5
}

type MapRowProps = {
  row: MapRow
  top: number
  here: boolean
  pointed: boolean
  onGo: (nodeId: string) => void
  onFold: (key: string) => void
}

export const MapRowView = memo(function MapRowView({ row, top, here, pointed, onGo, onFold }: MapRowProps) {
  const words = useWords().map
  const isFold = row.kind === 'fold'
  const classes = ['map-row']
  if (row.onPath) classes.push('map-row-current')
  if (here) classes.push('map-row-here')
  if (pointed) classes.push('map-row-pointed')
  const foldWords = isFold ? (row.rounds > 0 ? words.rounds(row.rounds) : words.steps(row.messages)) : ''
  return (
    <li
      className={classes.join(' ')}
      style={{ top }}
      data-testid={testIds.mapRow}
      data-kind={isFold ? 'fold' : row.node.kind}
      data-node-id={isFold ? undefined : row.node.id}
    >
      <RowDrawing row={row} here={here} />
      {isFold ? (
        <button
          type="button"
          className="map-label map-label-fold"
          title={words.open}
          aria-expanded={false}
          onClick={() => onFold(row.foldKey)}
        >
          <span className="map-fold-count">{foldWords}</span>
          <span className="map-text map-fold-text">{plainExcerpt(row.first.label)}</span>
        </button>
      ) : row.node.kind === 'root' ? (
        <span className="map-label map-label-root">{words.root}</span>
      ) : (
        <button
          type="button"
          className={`map-label map-label-${row.node.kind}`}
          aria-current={here ? 'true' : undefined}
          onClick={() => onGo(row.node.id)}
        >
          {row.node.canonical && row.node.kind === 'candidate' && <Seal size="small" />}
          {row.node.partial && <PartialMark />}
          <span className={row.node.deleted ? 'map-text map-text-deleted' : 'map-text'} lang={languageOfText(row.node.label)}>
            {row.node.deleted ? words.deleted : plainExcerpt(row.node.label) || '…'}
          </span>
          {here && <span className="map-here">{words.here}</span>}
        </button>
      )}
      {!isFold && row.refold !== null && (
        <button type="button" className="map-refold" onClick={() => row.refold !== null && onFold(row.refold)}>
          {words.fold}
        </button>
      )}
    </li>
  )
})

function RowDrawing({ row, here }: { row: MapRow; here: boolean }) {
  const x = laneX(row.lane)
  const parentX = laneX(row.parentLane)
  const width = x + 12
  return (
    <svg className="map-drawing" width={width} height={rowHeight} aria-hidden="true" focusable="false">
      {row.through.map((style, lane) => style !== null && <Edge key={lane} style={style} d={`M${laneX(lane)} 0V${rowHeight}`} />)}
      {row.edge !== null && (
        <Edge
          style={row.edge}
          d={
            row.lane === row.parentLane
              ? `M${x} 0V${middle}`
              : `M${parentX} 0V2C${parentX} ${middle - 1} ${parentX + 4} ${middle} ${x} ${middle}`
          }
        />
      )}
      {row.out !== null && <Edge style={row.out} d={`M${x} ${middle}V${rowHeight}`} />}
      {row.kind === 'fold' ? <FoldMark x={x} canonical={row.canonical} onPath={row.onPath} /> : <NodeMark row={row} x={x} here={here} />}
    </svg>
  )
}

function Edge({ style, d }: { style: EdgeStyle; d: string }) {
  return <path className={`edge edge-${style}`} d={d} />
}

function NodeMark({ row, x, here }: { row: Extract<MapRow, { kind: 'node' }>; x: number; here: boolean }) {
  const { node } = row
  const tone = node.canonical ? 'canonical' : row.onPath ? 'current' : 'side'
  const classes = `dot dot-${node.kind} dot-${tone}${node.partial ? ' dot-partial' : ''}`
  return (
    <>
      {here && <circle className="dot-here" cx={x} cy={middle} r={8} />}
      <circle className={classes} cx={x} cy={middle} r={node.kind === 'candidate' ? 5 : 3} />
    </>
  )
}

function FoldMark({ x, canonical, onPath }: { x: number; canonical: boolean; onPath: boolean }) {
  const tone = canonical ? 'canonical' : onPath ? 'current' : 'side'
  return (
    <g className={`fold-mark fold-mark-${tone}`}>
      <rect x={x - 6} y={middle - 8} width={12} height={16} rx={3} />
      <path d={`M${x - 3} ${middle - 3}h6M${x - 3} ${middle}h6M${x - 3} ${middle + 3}h6`} />
    </g>
  )
}
