import type { Explanation } from '#contracts'
import { useFormat, useWords } from '../../words/words.ts'

const barWidth = 1000
const barHeight = 34
const thinnest = 3

type WindowBarProps = {
  explanation: Explanation
  lit: number | null
  onLight: (index: number | null) => void
  onChoose: (index: number) => void
}

/** One bar as long as the window, cut into what was sent, what is kept for the answer, and what stayed empty. */
export function WindowBar({ explanation, lit, onLight, onChoose }: WindowBarProps) {
  const words = useWords()
  const format = useFormat()
  const { tokens, entities } = explanation
  const scale = barWidth / Math.max(1, tokens.window)
  let x = 0
  const pieces = entities.map((entity, index) => {
    const width = entity.tokens === 0 ? 0 : Math.max(entity.tokens * scale, thinnest)
    const piece = {
      index,
      x,
      width,
      source: entity.source,
      title: `${words.why.source[entity.source]} · ${words.common.tokens(format.number(entity.tokens))}`,
    }
    x += width
    return piece
  })
  const toolsWidth = tokens.tools * scale
  const reserveWidth = tokens.reserve * scale
  return (
    <figure className="window">
      <svg
        className="window-bar"
        viewBox={`0 0 ${barWidth} ${barHeight}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={words.why.windowUse(format.number(tokens.used), format.number(tokens.window))}
      >
        <rect className="window-free" x={0} y={0} width={barWidth} height={barHeight} />
        {pieces.map((piece) => (
          <rect
            key={piece.index}
            className={`source source-${piece.source}${piece.index === lit ? ' source-lit' : ''}`}
            x={piece.x}
            y={0}
            width={piece.width}
            height={barHeight}
            onMouseEnter={() => onLight(piece.index)}
            onMouseLeave={() => onLight(null)}
            onClick={() => onChoose(piece.index)}
          >
            <title>{piece.title}</title>
          </rect>
        ))}
        {toolsWidth > 0 && (
          <rect className="source source-tool_schema" x={x} y={0} width={toolsWidth} height={barHeight}>
            <title>{words.why.tools}</title>
          </rect>
        )}
        <rect className="window-reserve" x={barWidth - reserveWidth} y={0} width={reserveWidth} height={barHeight}>
          <title>{`${words.why.reserve} · ${words.common.tokens(format.number(tokens.reserve))}`}</title>
        </rect>
      </svg>
      <figcaption>
        <span>{words.why.windowUse(format.number(tokens.used), format.number(tokens.window))}</span>
        <span className="faint">
          {words.why.reserve} {format.number(tokens.reserve)}
        </span>
      </figcaption>
    </figure>
  )
}
