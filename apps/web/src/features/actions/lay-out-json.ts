/**
 * JSON on lines of its own, for reading, every letter of it kept: nothing is parsed and written again, so that a long number, a doubled key
 * or an escape stands there as it was sent. A text that is no JSON stays as it is.
 */
export function layOutJson(text: string): string {
  if (!isJson(text)) return text
  let laidOut = ''
  let depth = 0
  for (const token of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    const [piece] = token
    const following = text.slice(token.index + piece.length).trimStart()[0]
    switch (piece) {
      case '{':
      case '[':
        depth += 1
        laidOut += following === '}' || following === ']' ? piece : piece + lineAt(depth)
        break
      case '}':
      case ']':
        depth -= 1
        laidOut += laidOut.endsWith('{') || laidOut.endsWith('[') ? piece : lineAt(depth) + piece
        break
      case ',':
        laidOut += piece + lineAt(depth)
        break
      case ':':
        laidOut += ': '
        break
      default:
        laidOut += piece
    }
  }
  return laidOut
}

function lineAt(depth: number): string {
  return `\n${'  '.repeat(depth)}`
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false // shown as it came
  }
}

/** Letters that show nothing or turn the direction of others: a text that is to be judged must not hide behind them. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\u00a0\u115f\u1160\u2800\u3164\uffa0]/gu

/** Cuts a text at its unseen letters; those become their numbers, so that a reader meets them. Line ends and tabs stay what they are. */
export function showUnseen(text: string): { text: string; isUnseen: boolean }[] {
  const pieces: { text: string; isUnseen: boolean }[] = []
  let from = 0
  for (const { 0: letter, index } of text.matchAll(unseen)) {
    if (letter === '\n' || letter === '\t') continue
    if (index > from) pieces.push({ text: text.slice(from, index), isUnseen: false })
    pieces.push({ text: `U+${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`, isUnseen: true })
    from = index + letter.length
  }
  if (from < text.length) pieces.push({ text: text.slice(from), isUnseen: false })
  return pieces
}
