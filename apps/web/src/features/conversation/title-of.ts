import { plainExcerpt } from '../../parts/plain-excerpt.ts'

const longest = 48

/** A name for a conversation that has none: the beginning of its first question, cut between words where it has any. */
export function titleOf(question: string): string {
  const line = plainExcerpt(question.trim().split('\n')[0] ?? '').replace(/\s+/g, ' ')
  const letters = [...line]
  if (letters.length <= longest) return line
  const cut = letters.slice(0, longest).join('')
  const space = cut.lastIndexOf(' ')
  return `${(space > longest / 2 ? cut.slice(0, space) : cut).trimEnd()}…`
}
