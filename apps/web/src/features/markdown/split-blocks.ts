/** Cuts Markdown at blank lines outside fenced code, so that finished blocks need no further reading while more text comes. */
export function splitBlocks(text: string): string[] {
  const blocks: string[] = []
  let current: string[] = []
  let fence: string | null = null
  for (const line of text.split('\n')) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (mark !== undefined) {
      if (fence === null) fence = mark
      else if (mark.startsWith(fence)) fence = null
    }
    if (fence === null && line.trim() === '' && current.length > 0) {
      blocks.push(current.join('\n'))
      current = []
    } else if (line.trim() !== '' || current.length > 0) {
      current.push(line)
    }
  }
  if (current.length > 0) blocks.push(current.join('\n'))
  return blocks
}
