import { gfmTableFromMarkdown } from 'mdast-util-gfm-table'
import { gfmTable } from 'micromark-extension-gfm-table'

type Extensions = { micromarkExtensions?: unknown[]; fromMarkdownExtensions?: unknown[] }

/** Teaches Markdown tables: a remark plugin. */
export function tables(this: { data(): object }): void {
  // The parser keeps its extensions under these names.
  const data = this.data() as Extensions
  const { micromarkExtensions = [], fromMarkdownExtensions = [] } = data
  data.micromarkExtensions = [...micromarkExtensions, gfmTable()]
  data.fromMarkdownExtensions = [...fromMarkdownExtensions, gfmTableFromMarkdown()]
}

const mostCells = 50_000

/**
 * Whether the tables of a text may be laid out. Every row is filled up to its table's width, so that a few kilobytes of a wide head over
 * many short rows would become millions of cells: such a text is shown as it is written.
 */
export function mayHaveTables(text: string): boolean {
  if (!text.includes('|')) return false
  const lines = text.split('\n')
  let widest = 0
  for (const line of lines) widest = Math.max(widest, line.split('|').length)
  return widest * lines.length <= mostCells
}
