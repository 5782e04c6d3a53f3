import type { NodeView } from '#contracts'
import type { DraftCitation } from './drafts.ts'

/**
 * The passage of a message that is selected on the page, as UTF-16 offsets into the node's text. Rendered text is cut into spans that carry
 * the offsets of their source (`data-from`, `data-to`); where a span's text is not its source letter by letter (escapes, entities), the
 * passage takes the whole span. Null when nothing of this message is selected.
 */
export function selectedPassage(element: Element, node: Pick<NodeView, 'id' | 'text'>): DraftCitation | null {
  const selection = document.getSelection()
  if (selection === null || selection.rangeCount === 0 || selection.isCollapsed) return null
  const range = selection.getRangeAt(0)
  const spans = [...element.querySelectorAll<HTMLElement>('[data-from]')].filter((span) => touches(range, span))
  const first = spans[0]
  const last = spans.at(-1)
  if (first === undefined || last === undefined) return null
  const from = offsetIn(first, range.startContainer, range.startOffset) ?? Number(first.dataset.from)
  const to = offsetIn(last, range.endContainer, range.endOffset) ?? Number(last.dataset.to)
  const text = node.text.slice(from, to)
  if (to <= from || text.trim() === '') return null
  return { node_id: node.id, from, to, text, whole: false }
}

export function wholeMessage(node: Pick<NodeView, 'id' | 'text'>): DraftCitation | null {
  return node.text === '' ? null : { node_id: node.id, from: 0, to: node.text.length, text: node.text, whole: true }
}

/** Whether some letter of the span lies in the range; a range that only ends at its border does not touch it. */
function touches(range: Range, span: HTMLElement): boolean {
  if (!range.intersectsNode(span)) return false
  const letters = span.firstChild
  if (range.endContainer === letters && range.endOffset === 0) return false
  return !(range.startContainer === letters && range.startOffset === (letters?.textContent?.length ?? 0))
}

function offsetIn(span: HTMLElement, container: Node, offset: number): number | null {
  if (container !== span.firstChild) return null
  const from = Number(span.dataset.from)
  const to = Number(span.dataset.to)
  return (span.textContent?.length ?? 0) === to - from ? from + offset : null
}
