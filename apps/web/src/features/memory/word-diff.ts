export type DiffPiece = { kind: 'same' | 'added' | 'removed'; text: string }

const mostCells = 250_000

/** Words, single Han characters, and what is between them. */
function cut(text: string): string[] {
  return text.match(/\p{Script=Han}|[\p{L}\p{N}'’]+|\s+|[^\p{L}\p{N}\s]/gu) ?? []
}

/** What changed from one wording to the next, word by word; very long texts are shown as replaced. */
export function wordDiff(before: string, after: string): DiffPiece[] {
  const a = cut(before)
  const b = cut(after)
  if (a.length * b.length > mostCells)
    return [
      { kind: 'removed', text: before },
      { kind: 'added', text: after },
    ]
  const width = b.length + 1
  // lengths[i * width + j]: the longest common run of words of a from i on and b from j on.
  const lengths = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const below = lengths[(i + 1) * width + j] ?? 0
      const right = lengths[i * width + j + 1] ?? 0
      lengths[i * width + j] = a[i] === b[j] ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(below, right)
    }
  }
  const pieces: DiffPiece[] = []
  const add = (kind: DiffPiece['kind'], text: string) => {
    const last = pieces.at(-1)
    if (last?.kind === kind) last.text += text
    else pieces.push({ kind, text })
  }
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    const left = a[i]
    const right = b[j]
    if (left !== undefined && left === right) {
      add('same', left)
      i += 1
      j += 1
    } else if (left !== undefined && (right === undefined || (lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0))) {
      add('removed', left)
      i += 1
    } else if (right !== undefined) {
      add('added', right)
      j += 1
    }
  }
  return pieces
}
