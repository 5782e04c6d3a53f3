import type { NodePart } from '#contracts'
import type { ContentLayout } from '../ports/content-store.ts'

/** A content's ordered parts; one without a layout is a single text (decision 11). */
export function partsOf(content: { body: string | null; layout: ContentLayout | null }): NodePart[] {
  const { body, layout } = content
  if (body === null) return []
  if (!layout) return [{ kind: 'text', text: body }]
  return layout.parts.map((part) => ({ kind: part.kind, text: body.slice(part.from, part.to) }))
}

/** What a node says: its text parts, joined. Quoted, canonized, searched. */
export function textOf(parts: readonly NodePart[]): string {
  return parts
    .filter((part) => part.kind === 'text')
    .map((part) => part.text)
    .join('\n\n')
}
