import { highlight } from './highlight.ts'

type Position = { start: { offset?: number }; end: { offset?: number } }
type HastNode = {
  type: string
  tagName?: string
  value?: string
  properties?: Record<string, unknown>
  children?: HastNode[]
  position?: Position
}

/**
 * Cuts rendered text into spans that know which letters of the source they show, so that a selection on the page can be cited exactly;
 * code blocks are highlighted on the way. `base` = where this source begins in the whole message; null adds no spans.
 */
export function sourceSpans(base: number | null) {
  return () => (tree: HastNode) => visit(tree, base, false)
}

function visit(node: HastNode, base: number | null, inPre: boolean): void {
  if (node.children === undefined) return
  node.children = node.children.map((child) => {
    if (child.type !== 'text') {
      visit(child, base, inPre || node.tagName === 'pre')
      return child
    }
    const value = child.value ?? ''
    if (value.trim() === '') return child
    const letters = inPre && node.tagName === 'code' ? highlight(value).map(tokenSpan) : [child]
    const position = child.position ?? node.position
    const from = position?.start.offset
    const to = position?.end.offset
    if (base === null || from === undefined || to === undefined)
      return { type: 'element', tagName: 'span', properties: {}, children: letters }
    return { type: 'element', tagName: 'span', properties: { dataFrom: base + from, dataTo: base + to }, children: letters }
  })
}

function tokenSpan(token: { kind: string | null; text: string }): HastNode {
  const text = { type: 'text', value: token.text }
  return token.kind === null
    ? text
    : { type: 'element', tagName: 'span', properties: { className: [`code-${token.kind}`] }, children: [text] }
}
