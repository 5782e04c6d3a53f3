/** What the provider says, known to both ends. */
export const CHUNKS = 60
const PER_SECOND = 40
export const PIECE_MS = 1000 / PER_SECOND

export function questionOf(key: number): string {
  return `Tell me about the evening. (number ${key})`
}

export function keyOf(question: string): number {
  const found = /\(number (\d+)\)\s*$/.exec(question)
  if (!found) throw new Error('the question has no number')
  return Number(found[1])
}

/** A word of its own for each piece of each answer. */
export function pieceOf(key: number, index: number): string {
  return `${((key * 7919 + index * 104_729) % 1_679_616).toString(36)}${index % 7 === 6 ? '灯 ' : ' '}`
}

export function answerOf(key: number): string {
  return Array.from({ length: CHUNKS }, (_, index) => pieceOf(key, index)).join('')
}
