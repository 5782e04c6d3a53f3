import { gfmTableFromMarkdown } from 'mdast-util-gfm-table'
import { gfmTable } from 'micromark-extension-gfm-table'

type Extensions = { micromarkExtensions?: unknown[]; fromMarkdownExtensions?: unknown[] }

function teachTables(this: { data(): object }): void {
  // The parser keeps its extensions under these names.
  const data = this.data() as Extensions
  const { micromarkExtensions = [], fromMarkdownExtensions = [] } = data
  data.micromarkExtensions = [...micromarkExtensions, gfmTable()]
  data.fromMarkdownExtensions = [...fromMarkdownExtensions, gfmTableFromMarkdown()]
}

/** Remark plugins for a text with tables. */
export const tables = [teachTables]

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
